"""The rules of problem (2) that hold with and without migration.

``y[j,p,t]``       workers of place p that train job j in slot t
``zeta[j]``        1 if the whole job, with its PS, is in the cloud
``C[j,t]``         1 while job j is unfinished
``a``, ``a_cloud`` [j,t]: 1 if the job needs a PS, and in the cloud; where the cloud's are finite
``S[j,s,t]``       the job's chunks that server s stores; where storage is limited
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.decimals import common_step, exactly
from hindsched.models.algebra import Expr, Model, binary, whole
from hindsched.models.edgecloud.sets import Sets

Running = Mapping[tuple[int, int], list[Expr]]
"""What counts a job's workers, by (job, slot)."""
MOST_STEPS = 10_000
"""Largest coefficient of a row of whole numbers: solvers' tolerances are far below 1 there."""


def unfinished(m: Model, f: Sets, j: int, t: int) -> Expr:
    """C[j, t]: 1 where that is known, 0 behind the last slot."""
    return 1.0 if t <= f.known[j] else m.C[j, t] if t <= f.last[j] else 0.0


def job_time(m: Model, f: Sets, j: int) -> Expr:
    """Completion - arrival + 1."""
    later = total(m.C[j, t] for t in range(f.known[j] + 1, f.last[j] + 1))
    return f.known[j] - f.arrival[j] + 1 + later


def add_variables(m: Model, f: Sets, relax: bool) -> None:
    """What runs at the edge, what is unfinished and what is wholly in the cloud."""
    m.y = pyo.Var(
        f.cells, domain=whole(relax), bounds=lambda _, j, p, t: (0, min(f.chunks[j], f.size[p])),
        doc="(2) workers of a place that train the job",
    )  # fmt: skip
    m.zeta = pyo.Var(
        f.jobs, domain=binary(relax), doc="(2g) the whole job, with its PS, is in the cloud"
    )
    ends = [(j, t) for j in f.jobs for t in range(f.known[j] + 1, f.last[j] + 1)]
    m.C = pyo.Var(ends, domain=binary(relax), doc="(2j) the job is unfinished in this slot")
    for j in f.jobs:
        job = f.instance.jobs[j]
        closed = not f.instance.has_cloud(job) or f.instance.cloud_ps(job.ps_type) == 0
        if closed or j in f.past.on_edge:
            m.zeta[j].fix(0)


def add_capacities(m: Model, f: Sets, cloud: Running) -> None:
    """(2d), at the edge and for what runs in a limited cloud."""
    at: dict[tuple[int, int], list[int]] = {}
    for j, place, t in m.y:
        at.setdefault((place, t), []).append(j)
    in_cloud: dict[tuple[str, int], list[Expr]] = {}
    for (j, t), parts in cloud.items():
        kind = f.instance.jobs[j].worker_type
        if f.instance.cloud_workers(kind) is not None:
            in_cloud.setdefault((kind, t), []).extend(parts)
    locked = Counter(
        (f.instance.jobs[j].worker_type, t)
        for j, first, last in f.past.cloud_busy
        for t in range(first, last + 1)
    )

    @m.Constraint(list(at), doc="(2d) a worker trains one job at a time")
    def eq_2d(m: Model, place: int, t: int) -> Expr:
        return total(m.y[j, place, t] for j in at[place, t]) <= f.size[place] - f.taken[place, t]

    @m.Constraint(list(in_cloud), doc="(2d) the cloud's workers of a type")
    def eq_2d_cloud(m: Model, kind: str, t: int) -> Expr:
        return total(in_cloud[kind, t]) <= (f.instance.cloud_workers(kind) or 0) - locked[kind, t]


def add_completion(m: Model, f: Sets) -> None:
    """(2j) and the objective (2)."""

    @m.Constraint(list(m.y), doc="(2j) a job that runs is unfinished")
    def eq_2j(m: Model, j: int, place: int, t: int) -> Expr:
        if t <= f.known[j]:
            return pyo.Constraint.Skip
        return m.y[j, place, t] <= min(f.chunks[j], f.size[place]) * m.C[j, t]

    @m.Constraint(list(m.C), doc="(2j) what is unfinished was so before")
    def eq_2j_order(m: Model, j: int, t: int) -> Expr:
        return m.C[j, t] >= m.C[j, t + 1] if t < f.last[j] else pyo.Constraint.Skip

    ends = f.past.locked_ends()
    decided = sum(end - int(f.instance.arrivals[j]) + 1 for j, end in ends.items())
    m.objective = pyo.Objective(
        expr=total(job_time(m, f, j) for j in f.jobs) + float(decided),
        doc="(2) total completion time of the jobs",
    )


def share(f: Sets, j: int, t: int, work: int) -> float:
    """What a worker's slot adds to the mean of "mean busy time + p / 2" over the job's chunks."""
    return ((t + 0.5 - f.arrival[j]) / work + 0.5) / f.chunks[j]


def add_mean_busy_time(m: Model, f: Sets, cloud_time: Mapping[int, Expr]) -> None:
    """Implied by integrality: with rate at most 1 / p a slot, completion >= mean busy time + p / 2.

    `cloud_time` is what the cloud adds to the mean, by job.
    """

    @m.Constraint(f.jobs, doc="(ours) a job takes the mean busy time and half a chunk")
    def cut_mean_busy_time(m: Model, j: int) -> Expr:
        if f.done[j]:
            return pyo.Constraint.Skip
        at_edge = total(
            share(f, j, t, f.edge_slots[j]) * m.y[j, p, t]
            for p in f.places[j]
            for t in f.slots[j, p]
        )
        return job_time(m, f, j) >= at_edge + cloud_time[j]


def add_parameter_servers(
    m: Model, f: Sets, runs: Mapping[tuple[int, int], list[tuple[Expr, float]]], relax: bool
) -> None:
    """Enough PSs for all running jobs, where the cloud's are finite (2e), (2f).

    A placement of PSs exists exactly when in each slot the jobs with zeta = 1 find a PS in the
    cloud and all running jobs together a PS somewhere, because (2) lets a PS change between slots.
    Those that locked jobs hold stay where they are. `runs` tells that a job runs, by (job, slot):
    expressions with their upper bounds.
    """
    if not runs:
        return
    instance = f.instance
    m.a = pyo.Var(list(runs), domain=binary(relax), doc="(2e) the job needs a PS")
    m.a_cloud = pyo.Var(list(runs), domain=binary(relax), doc="(2e) it needs one in the cloud")
    by_type: dict[tuple[str, int], list[int]] = {}
    for j, t in runs:
        by_type.setdefault((instance.jobs[j].ps_type, t), []).append(j)
    in_cloud = {kind: instance.cloud_ps(kind) or 0 for kind, _ in by_type}
    held = Counter(
        (instance.jobs[j].ps_type, server == len(instance.servers), t)
        for j, server, first, last in f.past.ps_busy
        for t in range(first, last + 1)
    )

    @m.Constraint(
        [(*key, part) for key, parts in runs.items() for part in range(len(parts))],
        doc="(2e) a running job has a PS",
    )
    def eq_2e(m: Model, j: int, t: int, part: int) -> Expr:
        running, most = runs[j, t][part]
        return running <= most * m.a[j, t]

    @m.Constraint(list(runs), doc="(2e) where everything is in the cloud, it is there")
    def eq_2e_cloud(m: Model, j: int, t: int) -> Expr:
        return m.a_cloud[j, t] >= m.a[j, t] + m.zeta[j] - 1

    @m.Constraint(list(by_type), doc="(2f) no more PSs than there are")
    def eq_2f(m: Model, kind: str, t: int) -> Expr:
        there = sum(n for (_, own), n in instance.ps_counts.items() if own == kind)
        left = in_cloud[kind] + there - held[kind, False, t] - held[kind, True, t]
        return total(m.a[j, t] for j in by_type[kind, t]) <= left

    @m.Constraint(list(by_type), doc="(2f) no more in the cloud than there are")
    def eq_2f_cloud(m: Model, kind: str, t: int) -> Expr:
        left = in_cloud[kind] - held[kind, True, t]
        return total(m.a_cloud[j, t] for j in by_type[kind, t]) <= left


def add_storage(m: Model, f: Sets, here: Mapping[tuple[int, int], Expr]) -> None:
    """What a server stores fits (7b); chunks are stored from arrival to completion (7a), (7c).

    A chunk that is placed later than its job arrived needs its room from the arrival on, too.
    `here` are the chunks that a server ever stores, by (job, server).
    """
    if not here:
        return
    room = {s: exactly(float(f.instance.storage_gb[s])) for _, s in here}
    size = {j: exactly(float(f.instance.chunk_gb[j])) for j, _ in here}
    keys = [(j, s, t) for j, s in here for t in range(f.arrival[j], f.last[j] + 1)]
    by_server: dict[tuple[int, int], list[int]] = {}
    for j, s, t in keys:
        by_server.setdefault((s, t), []).append(j)
    locked = _stored_by_locked_jobs(f)
    m.S = pyo.Var(
        keys, bounds=lambda _, j, s, t: (0, min(f.chunks[j], room[s] // size[j])),
        doc="(7) chunks stored on a server",
    )  # fmt: skip

    @m.Constraint(keys, doc="(7a), (7c) chunks are stored from arrival to completion")
    def eq_7a(m: Model, j: int, s: int, t: int) -> Expr:
        return m.S[j, s, t] >= here[j, s] - f.chunks[j] * (1 - unfinished(m, f, j, t))

    @m.Constraint(list(by_server), doc="(7b) what a server stores fits")
    def eq_7b(m: Model, s: int, t: int) -> Expr:
        sizes = {j: size[j] for j in by_server[s, t]}
        step = common_step(sizes.values())  # what is stored is a whole multiple of it: no hair fits
        unit = max(sizes.values()) if max(sizes.values()) > MOST_STEPS * step else step
        used = total(float(gb / unit) * m.S[j, s, t] for j, gb in sizes.items())
        return used <= float((room[s] - locked.get((s, t), 0)) // step * step / unit)


def _stored_by_locked_jobs(f: Sets) -> dict[tuple[int, int], Fraction]:
    """GB that locked jobs hold, by (server, slot)."""
    stored: dict[tuple[int, int], Fraction] = {}
    for j, s, end in f.past.stored_by_locked(f.instance):
        for t in range(int(f.instance.arrivals[j]), end + 1):
            stored[s, t] = stored.get((s, t), Fraction()) + exactly(float(f.instance.chunk_gb[j]))
    return stored
