"""The rules of problem (2) that hold with and without migration.

``y[j,p,t]`` are the workers of place p that train job j in slot t, ``C[j,t]`` is 1 while job j is
unfinished, ``zeta[j]`` is 1 if the whole job, with its PS, is in the cloud. Where PSs are finite
``a[j,t]`` is 1 if the job needs one, ``a_cloud[j,t]`` if it needs one in the cloud; where storage
is limited ``S[j,s,t]`` are the job's chunks that server s stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pyomo.environ as pyo

from hindsched.instances.decimals import common_step, exactly
from hindsched.models.algebra import Expr, Model
from hindsched.models.edgecloud.sets import Sets

Cloud = Mapping[tuple[int, int], list[Expr]]
"""What counts a job's workers in the cloud, by (job, slot)."""
MOST_STEPS = 10_000
"""Largest coefficient of a row of whole numbers: solvers' tolerances are far below 1 there."""


def whole(relax: bool) -> object:
    """Domain of what is counted."""
    return pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers


def binary(relax: bool) -> object:
    """Domain of what is or is not."""
    return pyo.UnitInterval if relax else pyo.Binary


def unfinished(m: Model, f: Sets, j: int, t: int) -> Expr:
    """C[j, t]: 1 where that is known, 0 behind the last slot."""
    return 1.0 if t <= f.known[j] else m.C[j, t] if t <= f.last[j] else 0.0


def job_time(m: Model, f: Sets, j: int) -> Expr:
    """Completion - arrival + 1."""
    later = pyo.quicksum(m.C[j, t] for t in range(f.known[j] + 1, f.last[j] + 1))
    return f.known[j] - f.arrival[j] + 1 + later


def add_shared_variables(m: Model, f: Sets, relax: bool) -> None:
    """What runs at the edge, what is unfinished and what is wholly in the cloud."""
    instance = f.instance
    cells = [(j, place, t) for (j, place), slots in f.slots.items() for t in slots]
    m.y = pyo.Var(
        cells, domain=whole(relax), bounds=lambda _, j, p, t: (0, min(f.chunks[j], f.size[p])),
        doc="(2) workers of a place that train the job",
    )  # fmt: skip
    m.zeta = pyo.Var(
        f.jobs, domain=binary(relax), doc="(2g) the whole job, with its PS, is in the cloud"
    )
    for j in f.jobs:
        job = instance.jobs[j]
        closed = not instance.has_cloud(job) or instance.cloud_ps(job.ps_type) == 0
        if closed or j in f.past.on_edge:
            m.zeta[j].fix(0)
    ends = [(j, t) for j in f.jobs for t in range(f.known[j] + 1, f.last[j] + 1)]
    m.C = pyo.Var(ends, domain=binary(relax), doc="(2j) the job is unfinished in this slot")


def add_shared_rules(m: Model, f: Sets, cloud: Cloud) -> None:
    """Capacities (2d), completion (2j) and the objective (2)."""
    instance, past = f.instance, f.past
    at: dict[tuple[int, int], list[int]] = {}
    for j, place, t in m.y:
        at.setdefault((place, t), []).append(j)
    in_cloud: dict[tuple[str, int], list[Expr]] = {}
    for (j, t), parts in cloud.items():
        kind = instance.jobs[j].worker_type
        if instance.cloud_workers(kind) is not None:
            in_cloud.setdefault((kind, t), []).extend(parts)

    @m.Constraint(list(at), doc="(2d) a worker trains one job at a time")
    def eq_2d(m: Model, place: int, t: int) -> Expr:
        return (
            pyo.quicksum(m.y[j, place, t] for j in at[place, t])
            <= f.size[place] - f.taken[place, t]
        )

    @m.Constraint(list(in_cloud), doc="(2d) the cloud's workers of a type")
    def eq_2d_cloud(m: Model, kind: str, t: int) -> Expr:
        return pyo.quicksum(in_cloud[kind, t]) <= f.cloud_limit(kind, t)

    @m.Constraint(list(m.y), doc="(2j) a job that runs is unfinished")
    def eq_2j(m: Model, j: int, place: int, t: int) -> Expr:
        if t <= f.known[j]:
            return pyo.Constraint.Skip
        return m.y[j, place, t] <= min(f.chunks[j], f.size[place]) * m.C[j, t]

    @m.Constraint(list(m.C), doc="(2j) what is unfinished was so before")
    def eq_2j_order(m: Model, j: int, t: int) -> Expr:
        return m.C[j, t] >= m.C[j, t + 1] if t < f.last[j] else pyo.Constraint.Skip

    locked = {run.job: 0 for run in past.rows if run.job not in f.known}
    for run in past.rows:
        if run.job in locked:
            locked[run.job] = max(locked[run.job], run.last)
    decided = sum(end - int(instance.arrivals[j]) + 1 for j, end in locked.items())
    m.objective = pyo.Objective(
        expr=pyo.quicksum(job_time(m, f, j) for j in f.jobs) + float(decided),
        doc="(2) total completion time of the jobs",
    )


def edge_share(f: Sets, j: int, t: int, work: int) -> float:
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
        at_edge = (
            edge_share(f, j, t, f.edge_slots[j]) * m.y[j, place, t]
            for place in f.places[j]
            for t in f.slots[j, place]
        )
        return job_time(m, f, j) >= pyo.quicksum(at_edge) + cloud_time[j]


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

    def left(kind: str, t: int, in_cloud: bool) -> int:
        """PSs of a type in the cloud, or at the edge, that locked jobs do not hold."""
        there = sum(n for (_, own), n in instance.ps_counts.items() if own == kind)
        held = [
            (server == len(instance.servers)) == in_cloud and instance.jobs[j].ps_type == kind
            for j, server, first, last in f.past.ps_busy
            if first <= t <= last
        ]
        return (instance.cloud_ps(kind) or 0 if in_cloud else there) - sum(held)

    numbered = [(*key, i) for key, parts in runs.items() for i in range(len(parts))]

    @m.Constraint(numbered, doc="(2e) a running job has a PS")
    def eq_2e(m: Model, j: int, t: int, part: int) -> Expr:
        running, most = runs[j, t][part]
        return running <= most * m.a[j, t]

    @m.Constraint(list(runs), doc="(2e) where everything is in the cloud, it is there")
    def eq_2e_cloud(m: Model, j: int, t: int) -> Expr:
        return m.a_cloud[j, t] >= m.a[j, t] + m.zeta[j] - 1

    @m.Constraint(list(by_type), doc="(2f) no more PSs than there are")
    def eq_2f(m: Model, kind: str, t: int) -> Expr:
        everywhere = left(kind, t, False) + left(kind, t, True)
        return pyo.quicksum(m.a[j, t] for j in by_type[kind, t]) <= everywhere

    @m.Constraint(list(by_type), doc="(2f) no more in the cloud than there are")
    def eq_2f_cloud(m: Model, kind: str, t: int) -> Expr:
        return pyo.quicksum(m.a_cloud[j, t] for j in by_type[kind, t]) <= left(kind, t, True)


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
        keys,
        bounds=lambda _, j, s, t: (0, min(f.chunks[j], room[s] // size[j])),
        doc="(7) chunks stored on a server",
    )

    @m.Constraint(keys, doc="(7a), (7c) chunks are stored from arrival to completion")
    def eq_7a(m: Model, j: int, s: int, t: int) -> Expr:
        return m.S[j, s, t] >= here[j, s] - f.chunks[j] * (1 - unfinished(m, f, j, t))

    @m.Constraint(list(by_server), doc="(7b) what a server stores fits")
    def eq_7b(m: Model, s: int, t: int) -> Expr:
        sizes = {j: size[j] for j in by_server[s, t]}
        step = common_step(sizes.values())  # what is stored is a whole multiple of it: no hair fits
        unit = max(sizes.values()) if max(sizes.values()) > MOST_STEPS * step else step
        used = pyo.quicksum(float(gb / unit) * m.S[j, s, t] for j, gb in sizes.items())
        return used <= float((room[s] - locked.get((s, t), 0)) // step * step / unit)


def _stored_by_locked_jobs(f: Sets) -> dict[tuple[int, int], Fraction]:
    """GB that locked jobs hold, by (server, slot)."""
    homes: set[tuple[int, int, int]] = set()
    ends: dict[int, int] = {}
    for j, chunk, place, _, end in f.past.rows:
        if j not in f.last and place < len(f.instance.worker_list):
            homes.add((j, chunk, f.instance.worker_list[place][0]))
            ends[j] = max(ends.get(j, 0), end)
    stored: dict[tuple[int, int], Fraction] = {}
    for j, _, s in homes:
        for t in range(int(f.instance.arrivals[j]), ends[j] + 1):
            gb = exactly(float(f.instance.chunk_gb[j]))
            stored[s, t] = stored.get((s, t), Fraction()) + gb
    return stored
