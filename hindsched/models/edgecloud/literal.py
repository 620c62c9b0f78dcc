"""Problem (2) as printed, with one named constraint per equation number.

============  ==================================================================================
``k[j,t]``    cloud workers that train job j in slot t while zeta = 0
``k1[j,t]``   the same while zeta = 1; only where they may have to wait for a worker or a PS
``N[j,s]``    chunks of job j that server s stores; only where storage is limited (7)
============  ==================================================================================

and those of `rules`, where a place is a group of identical workers. Nothing in (2) names a chunk,
so that work may move and split between workers from slot to slot; identical workers are counted,
which loses nothing. (2a) and (2i) are kept by the index sets.
"""

from __future__ import annotations

from collections import Counter

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.models.algebra import Expr, Model, whole
from hindsched.models.edgecloud import rules
from hindsched.models.edgecloud.rules import share, unfinished
from hindsched.models.edgecloud.sets import Sets


def literal(f: Sets, relax: bool = False) -> Model:
    """The program of the facts of some open jobs."""
    m = pyo.ConcreteModel("edgecloud_literal")
    rules.add_variables(m, f, relax)
    in_cloud = [
        (j, t)
        for j in f.jobs
        if f.instance.has_cloud(f.instance.jobs[j])
        for t in range(f.from_cloud[j], f.last[j] + 1)
    ]
    most = {"domain": whole(relax), "bounds": lambda _, j, t: (0, f.chunks[j])}
    m.k = pyo.Var(in_cloud, **most, doc="(2) cloud workers while the PS is elsewhere")
    m.k1 = pyo.Var(
        [(j, t) for j, t in in_cloud if f.waits[j]], **most,
        doc="(2) cloud workers while everything is there",
    )  # fmt: skip
    at_edge: dict[tuple[int, int], list[Expr]] = {}
    for j, g, t in m.y:
        at_edge.setdefault((j, t), []).append(m.y[j, g, t])
    mixed = {
        (j, t): [*at_edge.get((j, t), ()), *([m.k[j, t]] if (j, t) in m.k else ())]
        for j, t in sorted({*at_edge, *m.k})
    }
    slots_of: dict[int, list[int]] = {j: [] for j in f.jobs}
    for j, t in mixed:
        slots_of[j].append(t)
    done = {j: sum(map(sum, f.done[j].values())) for j in f.jobs}
    open_ = [j for j in f.jobs if not m.zeta[j].fixed]

    @m.Constraint(f.jobs, doc="(2b) all epochs over all chunks are trained")
    def eq_2b(m: Model, j: int) -> Expr:
        need = f.chunks[j] * f.edge_slots[j]
        trained = total(part for t in slots_of[j] for part in mixed[j, t])
        return trained + need * m.zeta[j] >= need - done[j]

    @m.Constraint(
        [j for j in open_ if f.waits[j]], doc="(2b) all of them, where everything is in the cloud"
    )
    def eq_2b_cloud(m: Model, j: int) -> Expr:
        trained = total(m.k1[j, t] for t in slots_of[j] if (j, t) in m.k1) + done[j]
        return trained >= f.chunks[j] * f.cloud_slots[j] * m.zeta[j]

    @m.Constraint(list(mixed), doc="(2c) one worker a chunk at most, none after the completion")
    def eq_2c(m: Model, j: int, t: int) -> Expr:
        return total(mixed[j, t]) <= f.chunks[j] * unfinished(m, f, j, t)

    @m.Constraint(list(m.k1), doc="(2c) the same in the cloud")
    def eq_2c_cloud(m: Model, j: int, t: int) -> Expr:
        return m.k1[j, t] <= f.chunks[j] * unfinished(m, f, j, t)

    @m.Constraint(list(mixed), doc="(2g) nothing at the edge while everything is in the cloud")
    def eq_2g(m: Model, j: int, t: int) -> Expr:
        if m.zeta[j].fixed:
            return pyo.Constraint.Skip
        return total(mixed[j, t]) <= f.chunks[j] * (1 - m.zeta[j])

    @m.Constraint(list(m.k1), doc="(2h) nothing of the kind unless everything is in the cloud")
    def eq_2h(m: Model, j: int, t: int) -> Expr:
        return m.k1[j, t] <= f.chunks[j] * m.zeta[j]

    @m.Constraint(
        [j for j in open_ if not f.waits[j]], doc="(2j) unfinished until the cloud's work has ended"
    )
    def eq_2j_cloud(m: Model, j: int) -> Expr:
        left = f.chunks[j] * f.cloud_slots[j] - done[j]
        end = f.from_cloud[j] + -(-left // f.chunks[j]) - 1
        if end <= f.known[j]:
            return pyo.Constraint.Skip
        return m.zeta[j] <= unfinished(m, f, j, end)

    def cloud_time(j: int) -> Expr:
        """What the cloud adds to the mean busy time of the job's chunks."""
        slots = [t for t in slots_of[j] if (j, t) in m.k]
        time = total(share(f, j, t, f.edge_slots[j]) * m.k[j, t] for t in slots)
        if f.waits[j]:
            return time + total(share(f, j, t, f.cloud_slots[j]) * m.k1[j, t] for t in slots)
        return time + (f.from_cloud[j] - f.arrival[j] + f.cloud_slots[j]) * m.zeta[j]

    runs: dict[tuple[int, int], list[tuple[Expr, float]]] = {}
    for j, t in mixed:
        if f.instance.cloud_ps(f.instance.jobs[j].ps_type) is not None:
            parts = [total(at_edge[j, t])] if (j, t) in at_edge else []
            parts += [k[j, t] for k in (m.k, m.k1) if (j, t) in k]
            runs[j, t] = [(part, float(f.chunks[j])) for part in parts]
    rules.add_capacities(m, f, {(j, t): [m.k[j, t], m.k1[j, t]] for j, t in m.k1})
    rules.add_completion(m, f)
    rules.add_mean_busy_time(m, f, {j: cloud_time(j) for j in f.jobs})
    rules.add_parameter_servers(m, f, runs, relax)
    before = _stored_before(f)
    used = {(j, f.server[g]) for (j, g), slots in f.slots.items() if slots}
    m.N = pyo.Var(
        [key for key in f.limited_storage if key in used],
        bounds=lambda _, j, s: (before.get((j, s), 0), f.chunks[j]),
        doc="(7) chunks that a server stores",
    )

    @m.Constraint(
        [(j, g, t) for j, g, t in m.y if (j, f.server[g]) in m.N],
        doc="(7a) a server stores what it trains",
    )
    def eq_7a_peak(m: Model, j: int, g: int, t: int) -> Expr:
        return m.N[j, f.server[g]] >= m.y[j, g, t]

    rules.add_storage(m, f, dict(m.N.items()))
    return m


def _stored_before(f: Sets) -> dict[tuple[int, int], int]:
    """Most workers of a server that have trained a job at once so far, by (job, server)."""
    workers = f.instance.worker_list
    units = Counter(
        (j, workers[place][0], t)
        for j, _, place, first, last in f.past.rows
        if place < len(workers)
        for t in range(first, min(last, f.past.now - 1) + 1)
    )
    most: dict[tuple[int, int], int] = {}
    for (j, s, _), count in units.items():
        most[j, s] = max(most.get((j, s), 0), count)
    return most
