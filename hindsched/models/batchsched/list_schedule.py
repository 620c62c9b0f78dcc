"""A list schedule of batchsched: how long the program may last, and its start."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.modes import modes
from hindsched.models.windows.sets import Mode, fixed_rows, hosts, left_by, window_row
from hindsched.solutions.base import Commitments
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow, row_use


def wspt_schedule(instance: BatchschedInstance, commitments: Commitments) -> BatchschedSolution:
    """List schedule of the open jobs by weight over shortest duration, around the fixed rows."""
    fixed = fixed_rows(instance, commitments, BatchschedSolution.read_row)
    tables = {job.name: modes(instance, job) for job in instance.jobs if job.name not in fixed}
    rows = dict(fixed)
    capacity = instance.server_capacity
    free = left_by(instance, fixed, loosened(capacity, capacity))
    open_jobs = [job for job in instance.jobs if job.name in tables]
    for job in sorted(open_jobs, key=lambda job: -job.weight / tables[job.name].duration.min()):
        earliest, table = max(job.arrival, commitments.now), tables[job.name]
        completion, placed = earliest + int(table.duration.min()), None
        while placed is None:  # after the others' last slot a job finds the cluster empty
            for mode in map(Mode._make, table.tuples()):
                start = completion - mode.duration
                if start >= earliest:
                    placed = place_mode(instance, free.least(start, completion - 1), mode, start)
                    if placed is not None:
                        break
            completion += 1
        free.book(placed.first, placed.last, row_use(instance, placed))
        rows[job.name] = (placed,)
    return BatchschedSolution(instance, dict(rows))


def place_mode(
    instance: BatchschedInstance, free: Floats, mode: Mode, start: int
) -> WindowRow | None:
    """Place a mode on what is free in all its slots (servers, resources), `loosened`, or None."""
    m, p, q, count, _ = mode
    room = how_many_left(free, instance.worker_demand[m], count)
    if (room.max() if q else room.sum()) < count:
        return None
    for n, g in hosts(instance, free, m, p, q, count):
        beside = np.where(np.arange(len(room)) == n, 0, room)
        if beside.sum() >= count - g:
            order = np.argsort(-beside, kind="stable")
            before = np.cumsum(beside[order]) - beside[order]
            beside[order] = np.clip(count - g - before, 0, beside[order])
            return window_row(instance, mode, start, n, g, beside)
    return None
