"""A feasible schedule from the definitions alone, for programs that are given no incumbent."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.modes import Modes
from hindsched.models.windows.sets import fixed_rows, hosts, num_ps, row_use
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.capacity_timeline import CapacityTimeline
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.window_solution import WindowRow

FixedRows = dict[str, tuple[WindowRow, ...]]


def plan_rest(
    instance: BatchschedInstance,
    commitments: Commitments,
    tables: Mapping[str, Modes] | None = None,
    fixed: FixedRows | None = None,
) -> BatchschedSolution:
    """List schedule of the open jobs by weight over shortest duration, around the `fixed` rows.

    `tables` are the open jobs' modes; both are read here if they are not at hand.
    """
    if fixed is None:
        fixed = fixed_rows(instance, commitments, BatchschedSolution.read_row)
    if tables is None:
        tables = {job.name: modes(instance, job) for job in instance.jobs if job.name not in fixed}
    rows = dict(fixed)
    free = CapacityTimeline(loosened(instance.server_capacity, instance.server_capacity))
    for row in (row for found in fixed.values() for row in found):
        free.book(row.first, row.last, row_use(instance, row))
    open_jobs = [job for job in instance.jobs if job.name in tables]
    for job in sorted(open_jobs, key=lambda job: -job.weight / tables[job.name].duration.min()):
        earliest, table = max(job.arrival, commitments.now), tables[job.name].tuples()
        completion, placed = earliest + int(tables[job.name].duration.min()), None
        while placed is None:  # after the others' last slot a job finds the cluster empty
            for mode in table:
                start = completion - mode[4]
                if start >= earliest:
                    placed = place_mode(instance, free.least(start, completion - 1), mode, start)
                    if placed is not None:
                        break
            completion += 1
        free.book(placed.first, placed.last, row_use(instance, placed))
        rows[job.name] = (placed,)
    return BatchschedSolution(instance, dict(rows))


def place_mode(
    instance: BatchschedInstance, free: Floats, mode: tuple[int, int, int, int, int], start: int
) -> WindowRow | None:
    """Place a mode on what is free in all its slots (servers, resources), `loosened`, or None."""
    m, p, q, count, length = mode
    room = how_many_left(free, instance.worker_demand[m], count)
    if (room.max() if q else room.sum()) < count:
        return None
    for n, g in hosts(instance, free, m, p, q, count):
        beside = room.copy()
        if n >= 0:
            beside[n] = 0
        if beside.sum() < count - g:
            continue
        order = np.argsort(-beside, kind="stable")
        before = np.cumsum(beside[order]) - beside[order]
        workers, ps = np.zeros(len(free), dtype=np.int64), np.zeros(len(free), dtype=np.int64)
        workers[order] = np.clip(count - g - before, 0, beside[order])
        if n >= 0:
            workers[n] = g
            ps[n] = num_ps(instance, m, p, count - g) if instance.has_ps else 0
        ps_type = p if instance.has_ps else -1
        return WindowRow(start, start + length - 1, m, ps_type, workers, ps)
    return None
