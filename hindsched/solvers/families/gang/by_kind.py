"""Schedules on GPUs of several kinds: each kind is a pool once jobs are given to kinds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.gang.instance import GangInstance, GangJob
from hindsched.solutions.gang.solution import GangRows, GangSolution, pool_rows
from hindsched.solvers.door.work import Clock
from hindsched.solvers.families.gang.search import can_move


def kinds_held(solution: GangSolution) -> Ints:
    """Position of the kind on which each job starts, 0 for one that does not run. Shape (jobs,)."""
    instance, rows = solution.instance, solution.rows
    kinds = np.zeros(len(instance.jobs), dtype=np.int64)
    if instance.has_kinds:
        of_place = np.array([kind for *_, kind in instance.places])
        kinds[rows.job[::-1]] = of_place[rows.held.argmax(axis=1)][::-1]
    return kinds


def pool_of_kind(instance: GangInstance, kind: int, jobs: Ints) -> GangInstance:
    """Some jobs on one pool, the GPUs of a kind."""
    gpus = list(instance.gpu_kinds.values())[kind]
    data = [instance.jobs[position].model_dump(exclude_unset=True) for position in jobs.tolist()]
    places = {"gpu_kinds", "most_gpus"}
    kept = [{key: each for key, each in job.items() if key not in places} for job in data]
    return GangInstance(
        name=instance.name, horizon=instance.horizon, slot_seconds=instance.slot_seconds,
        gpus=gpus, jobs=tuple(GangJob(**job) for job in kept),
    )  # fmt: skip


def improve_kinds(
    known: GangSolution, clock: Clock, improve: Callable[[GangSolution, Clock], GangSolution]
) -> GangSolution:
    """Move jobs in one piece in time, each on the kind where a schedule has it.

    Each kind has a share of the clock's time by the jobs on it.
    """
    instance, kinds = known.instance, kinds_held(known)
    start, whole = known.starts.copy(), max(1, len(instance.jobs))
    for kind in range(len(instance.gpu_kinds)):
        members = np.flatnonzero(kinds == kind)
        pool = pool_of_kind(instance, kind, members) if members.size else None
        if pool is None or not can_move(members.size, pool.total_gpus):
            continue
        ends, jobs = start[members] + pool.durations, np.arange(members.size)
        rows = pool_rows(jobs, start[members], ends, pool.job_gpus)
        share = clock.first(clock.seconds * members.size / whole)
        start[members] = improve(GangSolution(pool, rows, known.formulation), share).starts
    held = np.zeros((start.size, len(instance.gpu_kinds)), dtype=np.int64)
    held[np.arange(start.size), kinds] = instance.job_gpus
    rows = GangRows(
        np.arange(start.size), start, start + instance.durations, instance.job_gpus, held
    )
    return GangSolution(instance, rows, known.formulation)
