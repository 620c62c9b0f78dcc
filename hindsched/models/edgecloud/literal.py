"""Problem (2) as printed, with one named constraint per equation number.

============  ==================================================================================
``k[j,t]``    cloud workers that train job j in slot t while zeta = 0
``k1[j,t]``   the same while zeta = 1; only where they may have to wait for a worker or a PS
``N[j,s]``    chunks of job j that server s stores; only where storage is limited (7)
============  ==================================================================================

and those of `shared_rules`, where a place is a group of identical workers. Nothing in (2) names a
chunk, so that work may move and split between workers from slot to slot; identical workers are
counted, which loses nothing. (2a) and (2i) are kept by the index sets.
"""

from __future__ import annotations

from collections import Counter

import pyomo.environ as pyo

from hindsched.models.algebra import Expr, Model
from hindsched.models.edgecloud.sets import Sets
from hindsched.models.edgecloud.shared_rules import (
    add_mean_busy_time,
    add_parameter_servers,
    add_shared_rules,
    add_shared_variables,
    add_storage,
    edge_share,
    unfinished,
    whole,
)


def literal(f: Sets, relax: bool = False) -> Model:
    """The program of the facts of some open jobs."""
    m = pyo.ConcreteModel("edgecloud_literal")
    add_shared_variables(m, f, relax)
    in_cloud = [
        (j, t)
        for j in f.jobs
        if f.instance.has_cloud(f.instance.jobs[j])
        for t in range(f.from_cloud[j], f.last[j] + 1)
    ]
    m.k = pyo.Var(
        in_cloud, domain=whole(relax), bounds=lambda _, j, t: (0, f.chunks[j]),
        doc="(2) cloud workers that train it while the PS is elsewhere",
    )  # fmt: skip
    m.k1 = pyo.Var(
        [(j, t) for j, t in in_cloud if f.waits[j]], domain=whole(relax),
        bounds=lambda _, j, t: (0, f.chunks[j]),
        doc="(2) cloud workers that train it while everything is there",
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
    together = [j for j in f.jobs if f.waits[j] and not m.zeta[j].fixed]

    @m.Constraint(f.jobs, doc="(2b) all epochs over all chunks are trained")
    def eq_2b(m: Model, j: int) -> Expr:
        need = f.chunks[j] * f.edge_slots[j]
        trained = (part for t in slots_of[j] for part in mixed[j, t])
        return pyo.quicksum(trained) + need * m.zeta[j] >= need - done[j]

    @m.Constraint(together, doc="(2b) all of them, where everything is in the cloud")
    def eq_2b_cloud(m: Model, j: int) -> Expr:
        trained = pyo.quicksum(m.k1[j, t] for t in slots_of[j] if (j, t) in m.k1) + done[j]
        return trained >= f.chunks[j] * f.cloud_slots[j] * m.zeta[j]

    @m.Constraint(list(mixed), doc="(2c) one worker a chunk at most, none after the completion")
    def eq_2c(m: Model, j: int, t: int) -> Expr:
        return pyo.quicksum(mixed[j, t]) <= f.chunks[j] * unfinished(m, f, j, t)

    @m.Constraint(list(m.k1), doc="(2c) the same in the cloud")
    def eq_2c_cloud(m: Model, j: int, t: int) -> Expr:
        return m.k1[j, t] <= f.chunks[j] * unfinished(m, f, j, t)

    @m.Constraint(list(mixed), doc="(2g) nothing at the edge while everything is in the cloud")
    def eq_2g(m: Model, j: int, t: int) -> Expr:
        if m.zeta[j].fixed:
            return pyo.Constraint.Skip
        return pyo.quicksum(mixed[j, t]) <= f.chunks[j] * (1 - m.zeta[j])

    @m.Constraint(list(m.k1), doc="(2h) nothing of the kind unless everything is in the cloud")
    def eq_2h(m: Model, j: int, t: int) -> Expr:
        return m.k1[j, t] <= f.chunks[j] * m.zeta[j]

    at_once = [j for j in f.jobs if not f.waits[j] and not m.zeta[j].fixed]

    @m.Constraint(at_once, doc="(2j) unfinished until its work in the cloud has ended")
    def eq_2j_cloud(m: Model, j: int) -> Expr:
        left = f.chunks[j] * f.cloud_slots[j] - done[j]
        end = f.from_cloud[j] + -(-left // f.chunks[j]) - 1
        if end <= f.known[j]:
            return pyo.Constraint.Skip
        return m.zeta[j] <= unfinished(m, f, j, end)

    add_shared_rules(m, f, {(j, t): [m.k[j, t], m.k1[j, t]] for j, t in m.k1})

    def cloud_time(j: int) -> Expr:
        """What the cloud adds to the mean busy time of the job's chunks."""
        slots = [t for t in slots_of[j] if (j, t) in m.k]
        time = pyo.quicksum(edge_share(f, j, t, f.edge_slots[j]) * m.k[j, t] for t in slots)
        if not f.waits[j]:
            return time + (f.from_cloud[j] - f.arrival[j] + f.cloud_slots[j]) * m.zeta[j]
        own = (edge_share(f, j, t, f.cloud_slots[j]) * m.k1[j, t] for t in slots)
        return time + pyo.quicksum(own)

    add_mean_busy_time(m, f, {j: cloud_time(j) for j in f.jobs})
    runs: dict[tuple[int, int], list[tuple[Expr, float]]] = {}
    for j, t in mixed:
        if f.instance.cloud_ps(f.instance.jobs[j].ps_type) is not None:
            parts = [pyo.quicksum(at_edge[j, t])] if (j, t) in at_edge else []
            parts += [k[j, t] for k in (m.k, m.k1) if (j, t) in k]
            runs[j, t] = [(part, float(f.chunks[j])) for part in parts]
    add_parameter_servers(m, f, runs, relax)

    limited = [
        (j, s)
        for j, s in f.limited_storage()
        if any(f.slots[j, g] for g in f.places[j] if f.server[g] == s)
    ]
    before = _stored_before(f)
    m.N = pyo.Var(
        limited, bounds=lambda _, j, s: (before.get((j, s), 0), f.chunks[j]),
        doc="(7) chunks that a server stores",
    )  # fmt: skip
    stored = [(j, g, t) for j, g, t in m.y if (j, f.server[g]) in m.N]

    @m.Constraint(stored, doc="(7a) a server stores what it trains")
    def eq_7a_peak(m: Model, j: int, g: int, t: int) -> Expr:
        return m.N[j, f.server[g]] >= m.y[j, g, t]

    add_storage(m, f, {key: m.N[key] for key in limited})
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
