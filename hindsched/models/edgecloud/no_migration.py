"""Problem (2) without migration as a mixed-integer program: what A_online is allowed to do.

============  ==================================================================================
``x[j,w]``    chunks of job j on edge worker w
``xc[j]``     chunks of job j in the cloud while zeta = 0
``s[j,z,t]``  chunks that start in the cloud in slot t, z = zeta; only where they may have to wait
============  ==================================================================================

and those of `rules`, where a place is a worker. Chunks of a job are identical and so is their order
on a worker, so no chunk index is needed. (2e) and (2f) bind only where the cloud's PSs are finite,
because n_j for zeta = 0 does not depend on where the PS stands.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.models.algebra import Expr, Model, whole
from hindsched.models.edgecloud import rules
from hindsched.models.edgecloud.rules import unfinished
from hindsched.models.edgecloud.sets import Sets


def no_migration(f: Sets, relax: bool = False) -> Model:
    """The program of the facts of some open jobs."""
    m = pyo.ConcreteModel("edgecloud_no_migration")
    rules.add_variables(m, f, relax)
    # a job is at the edge as well (z = 0) or wholly in the cloud (z = 1)
    length = {(j, z): (f.edge_slots, f.cloud_slots)[z][j] for j in f.jobs for z in (0, 1)}
    begun = {j: f.begun_in_cloud(j) for j in f.jobs}
    has_cloud = {j: f.instance.has_cloud(f.instance.jobs[j]) for j in f.jobs}
    starts_of = {
        (j, z): list(range(f.from_cloud[j], f.last[j] - slots + 2)) if has_cloud[j] else []
        for (j, z), slots in length.items()
        if f.waits[j]
    }
    m.x = pyo.Var(
        list(f.slots), domain=whole(relax),
        bounds=lambda _, j, w: (len(f.done[j].get(w, ())), f.chunks[j]),
        doc="(2c) chunks on an edge worker, at least those that have started there",
    )  # fmt: skip
    m.xc = pyo.Var(
        f.jobs, domain=whole(relax), bounds=lambda _, j: (0, f.chunks[j]),
        doc="(2c) chunks in the cloud while the PS is elsewhere",
    )  # fmt: skip
    m.s = pyo.Var(
        [(*key, t) for key, slots in starts_of.items() for t in slots], domain=whole(relax),
        doc="(2) chunks that start in the cloud",
    )  # fmt: skip
    for j in f.jobs:
        if not has_cloud[j]:
            m.xc[j].fix(0)

    @m.Constraint(f.jobs, doc="(2c) every chunk has one home")
    def eq_2c(m: Model, j: int) -> Expr:
        at_edge = total(m.x[j, w] for w in f.places[j])
        return at_edge + m.xc[j] + f.chunks[j] * m.zeta[j] == f.chunks[j]

    @m.Constraint(list(f.slots), doc="(2b) on it, a chunk is trained for all epochs")
    def eq_2b(m: Model, j: int, w: int) -> Expr:
        trained = sum(f.done[j].get(w, ())) + total(m.y[j, w, t] for t in f.slots[j, w])
        return trained == f.edge_slots[j] * m.x[j, w]

    @m.Constraint([j for j in f.jobs if begun[j]], doc="(ours) what has begun in the cloud stays")
    def no_migration(m: Model, j: int) -> Expr:
        return m.xc[j] + f.chunks[j] * m.zeta[j] >= len(begun[j])

    @m.Constraint(list(starts_of), doc="(2b) every chunk in the cloud starts once")
    def eq_2b_cloud(m: Model, j: int, z: int) -> Expr:
        started = len(begun[j])
        fresh = total(m.s[j, z, t] for t in starts_of[j, z])
        if z:
            return fresh == (f.chunks[j] - started) * m.zeta[j]
        return fresh == m.xc[j] - started * (1 - m.zeta[j])

    # Nothing is preempted in the cloud: a start fixes the end.
    def until(m: Model, j: int, share: Expr, end: int) -> Expr:
        return pyo.Constraint.Skip if end <= f.known[j] else share <= unfinished(m, f, j, end)

    going_on = {(j, z, d) for j, z in length for d in begun[j] if d < length[j, z]}

    @m.Constraint(sorted(going_on), doc="(2j) unfinished until what runs in the cloud has ended")
    def eq_2j_running(m: Model, j: int, z: int, done: int) -> Expr:
        end = f.past.now - done - 1 + length[j, z]
        return until(m, j, m.zeta[j] if z else 1 - m.zeta[j], end)

    at_once = [(j, z) for j, z in length if not f.waits[j] and len(begun[j]) < f.chunks[j]]

    @m.Constraint(at_once, doc="(2j) unfinished until its chunks in the cloud have ended")
    def eq_2j_cloud(m: Model, j: int, z: int) -> Expr:
        share = m.zeta[j] if z else (m.xc[j] - len(begun[j])) / f.chunks[j]
        return until(m, j, share, f.from_cloud[j] + length[j, z] - 1)

    @m.Constraint(list(m.s), doc="(2j) unfinished until what starts in the cloud has ended")
    def eq_2j_start(m: Model, j: int, z: int, t: int) -> Expr:
        return until(m, j, m.s[j, z, t] / f.chunks[j], t + length[j, z] - 1)

    in_cloud: dict[tuple[int, int], list[Expr]] = {}  # chunks there, where they may have to wait
    for j, z, t in m.s:
        for slot in range(t, t + length[j, z]):
            in_cloud.setdefault((j, slot), []).append(m.s[j, z, t])
    for (j, z), done in ((key, done) for key in starts_of for done in begun[key[0]]):
        for slot in range(f.past.now, f.past.now + length[j, z] - done):
            in_cloud.setdefault((j, slot), []).append(m.zeta[j] if z else 1 - m.zeta[j])

    def cloud_time(j: int) -> Expr:
        """Mean over the job's chunks of when those in the cloud end."""
        D, r = f.chunks[j], f.arrival[j]
        if f.waits[j]:
            return total(
                (t + length[j, z] - r) / D * m.s[j, z, t] for z in (0, 1) for t in starts_of[j, z]
            )
        ready = f.from_cloud[j] - r
        mixed = (ready + f.edge_slots[j]) / D * m.xc[j]
        return mixed + (ready + f.cloud_slots[j]) * m.zeta[j]

    runs: dict[tuple[int, int], list[tuple[Expr, float]]] = {}
    for j in (j for j in f.jobs if f.instance.cloud_ps(f.instance.jobs[j].ps_type) is not None):
        for w in f.places[j]:
            for t in f.slots[j, w]:
                runs.setdefault((j, t), []).append((m.y[j, w, t], 1.0))
        for t in (t for i, t in in_cloud if i == j):
            runs.setdefault((j, t), []).append((total(in_cloud[j, t]), f.chunks[j]))
    rules.add_capacities(m, f, in_cloud)
    rules.add_completion(m, f)
    rules.add_mean_busy_time(m, f, {j: cloud_time(j) for j in f.jobs})
    rules.add_parameter_servers(m, f, runs, relax)
    rules.add_storage(m, f, {
        (j, s): total(m.x[j, w] for w in f.places[j] if f.server[w] == s)
        for j, s in f.limited_storage
    })  # fmt: skip
    return m
