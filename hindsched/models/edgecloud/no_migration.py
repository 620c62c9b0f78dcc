"""Problem (2) without migration as a mixed-integer program: what A_online is allowed to do.

============  ==================================================================================
``x[j,w]``    chunks of job j on edge worker w
``xc[j]``     chunks of job j in the cloud while zeta = 0
``s[j,z,t]``  chunks that start in the cloud in slot t, z = zeta; only where they may have to wait
============  ==================================================================================

and those of `shared_rules`, where a place is a worker. Chunks of a job are identical and so is
their order on a worker, so no chunk index is needed. (2e) and (2f) bind only where the cloud's PSs
are finite, because n_j for zeta = 0 does not depend on where the PS stands.
"""

from __future__ import annotations

import pyomo.environ as pyo

from hindsched.models.algebra import Expr, Model
from hindsched.models.edgecloud.sets import Sets
from hindsched.models.edgecloud.shared_rules import (
    add_mean_busy_time,
    add_parameter_servers,
    add_shared_rules,
    add_shared_variables,
    add_storage,
    unfinished,
    whole,
)


def no_migration(f: Sets, relax: bool = False) -> Model:
    """The program of the facts of some open jobs."""
    m = pyo.ConcreteModel("edgecloud_no_migration")
    add_shared_variables(m, f, relax)
    length = {(j, z): (f.edge_slots, f.cloud_slots)[z][j] for j in f.jobs for z in (0, 1)}
    begun = {j: f.begun_in_cloud(j) for j in f.jobs}
    starts = [
        (j, z, t)
        for j, z in length
        if f.waits[j] and f.instance.has_cloud(f.instance.jobs[j])
        for t in range(f.from_cloud[j], f.last[j] - length[j, z] + 2)
    ]
    m.x = pyo.Var(
        list(f.slots), domain=whole(relax), bounds=lambda _, j, w: (0, f.chunks[j]),
        doc="(2c) chunks on an edge worker",
    )  # fmt: skip
    m.xc = pyo.Var(
        f.jobs, domain=whole(relax), bounds=lambda _, j: (0, f.chunks[j]),
        doc="(2c) chunks in the cloud while the PS is elsewhere",
    )  # fmt: skip
    m.s = pyo.Var(starts, domain=whole(relax), doc="(2) chunks that start in the cloud")
    for j in f.jobs:
        if not f.instance.has_cloud(f.instance.jobs[j]):
            m.xc[j].fix(0)

    @m.Constraint(f.jobs, doc="(2c) every chunk has one home")
    def eq_2c(m: Model, j: int) -> Expr:
        at_edge = pyo.quicksum(m.x[j, w] for w in f.places[j])
        return at_edge + m.xc[j] + f.chunks[j] * m.zeta[j] == f.chunks[j]

    @m.Constraint(list(f.slots), doc="(2b) on it, a chunk is trained for all epochs")
    def eq_2b(m: Model, j: int, w: int) -> Expr:
        trained = sum(f.done[j].get(w, ())) + pyo.quicksum(m.y[j, w, t] for t in f.slots[j, w])
        return trained == f.edge_slots[j] * m.x[j, w]

    for j, w in f.slots:
        m.x[j, w].setlb(len(f.done[j].get(w, ())))  # what has started on a worker stays there

    @m.Constraint([j for j in f.jobs if begun[j]], doc="(ours) and what has in the cloud, too")
    def no_migration(m: Model, j: int) -> Expr:
        return m.xc[j] + f.chunks[j] * m.zeta[j] >= len(begun[j])

    # Nothing is preempted in the cloud: a start fixes the end.
    going_on = {(j, z, done) for j in f.jobs for done in begun[j] for z in (0, 1)}
    going_on = {key for key in going_on if key[2] < length[key[:2]]}

    @m.Constraint(sorted(going_on), doc="(2j) unfinished until what runs in the cloud has ended")
    def eq_2j_running(m: Model, j: int, z: int, done: int) -> Expr:
        end = f.past.now - done - 1 + length[j, z]
        if end <= f.known[j]:
            return pyo.Constraint.Skip
        return (m.zeta[j] if z else 1 - m.zeta[j]) <= unfinished(m, f, j, end)

    at_once = [(j, z) for j, z in length if not f.waits[j] and len(begun[j]) < f.chunks[j]]

    @m.Constraint(at_once, doc="(2j) unfinished until its chunks in the cloud have ended")
    def eq_2j_cloud(m: Model, j: int, z: int) -> Expr:
        end = f.from_cloud[j] + length[j, z] - 1
        if end <= f.known[j]:
            return pyo.Constraint.Skip
        share = m.zeta[j] if z else (m.xc[j] - len(begun[j])) / f.chunks[j]
        return share <= unfinished(m, f, j, end)

    @m.Constraint(list(m.s), doc="(2j) unfinished until what starts in the cloud has ended")
    def eq_2j_start(m: Model, j: int, z: int, t: int) -> Expr:
        end = t + length[j, z] - 1
        if end <= f.known[j]:
            return pyo.Constraint.Skip
        return m.s[j, z, t] / f.chunks[j] <= unfinished(m, f, j, end)

    waiting = [key for key in length if f.waits[key[0]]]
    starts_of: dict[tuple[int, int], list[int]] = {key: [] for key in waiting}
    for j, z, t in starts:
        starts_of[j, z].append(t)

    @m.Constraint(waiting, doc="(2b) every chunk in the cloud starts once")
    def eq_2b_cloud(m: Model, j: int, z: int) -> Expr:
        started = len(begun[j])
        fresh = pyo.quicksum(m.s[j, z, t] for t in starts_of[j, z])
        if z:
            return fresh == (f.chunks[j] - started) * m.zeta[j]
        return fresh == m.xc[j] - started * (1 - m.zeta[j])

    cloud = _in_cloud(m, f, length)
    add_shared_rules(m, f, cloud)

    def cloud_time(j: int) -> Expr:
        """Mean over the job's chunks of when those in the cloud end."""
        D, r = f.chunks[j], f.arrival[j]
        if not f.waits[j]:
            ready = f.from_cloud[j] - r
            mixed = (ready + f.edge_slots[j]) / D * m.xc[j]
            return mixed + (ready + f.cloud_slots[j]) * m.zeta[j]
        return pyo.quicksum(
            (t + length[j, z] - r) / D * m.s[j, z, t] for z in (0, 1) for t in starts_of[j, z]
        )

    add_mean_busy_time(m, f, {j: cloud_time(j) for j in f.jobs})
    runs: dict[tuple[int, int], list[tuple[Expr, float]]] = {}
    for j in f.jobs:
        if f.instance.cloud_ps(f.instance.jobs[j].ps_type) is not None:
            for w in f.places[j]:
                for t in f.slots[j, w]:
                    runs.setdefault((j, t), []).append((m.y[j, w, t], 1.0))
            for t in (t for i, t in cloud if i == j):
                runs.setdefault((j, t), []).append((pyo.quicksum(cloud[j, t]), f.chunks[j]))
    add_parameter_servers(m, f, runs, relax)
    here = {
        (j, s): pyo.quicksum(m.x[j, w] for w in f.places[j] if f.server[w] == s)
        for j, s in f.limited_storage()
    }
    add_storage(m, f, here)
    return m


def _in_cloud(
    m: Model, f: Sets, length: dict[tuple[int, int], int]
) -> dict[tuple[int, int], list[Expr]]:
    """Chunks in the cloud by (job, slot), where they may have to wait."""
    found: dict[tuple[int, int], list[Expr]] = {}
    for j, z, t in m.s:
        for slot in range(t, t + length[j, z]):
            found.setdefault((j, slot), []).append(m.s[j, z, t])
    for j in f.jobs:
        for done in f.begun_in_cloud(j) if f.waits[j] else ():
            for z, share in ((0, 1 - m.zeta[j]), (1, m.zeta[j])):
                for slot in range(f.past.now, f.past.now + length[j, z] - done):
                    found.setdefault((j, slot), []).append(share)
    return found
