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
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution, read_row
from hindsched.solutions.capacity_timeline import Room
from hindsched.solutions.commitments import Commitments

FixedRows = dict[str, tuple[BatchschedRow, ...]]


def plan_rest(
    instance: BatchschedInstance,
    commitments: Commitments,
    tables: Mapping[str, Modes] | None = None,
    fixed: FixedRows | None = None,
) -> BatchschedSolution:
    """List schedule of the open jobs by weight over shortest duration, around the fixed rows.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    commitments : Commitments
        What was decided.
    tables : mapping, optional
        The open jobs' modes, if they are at hand.
    fixed : mapping, optional
        The other jobs' rows, likewise.
    """
    if fixed is None:
        fixed = fixed_rows(instance, commitments, read_row)
    rows: FixedRows = dict(fixed)
    if tables is None:
        tables = {job.name: modes(instance, job) for job in instance.jobs if job.name not in fixed}
    slots = max([row.last for found in fixed.values() for row in found] + [commitments.now])
    slots = max([slots, *(job.arrival for job in instance.jobs)])
    slots += sum(int(table.duration.max()) for table in tables.values())
    whole = loosened(instance.server_capacity, instance.server_capacity)
    free = Room(whole)
    for found in fixed.values():
        for row in found:
            free.book(row.first, row.last, row_use(instance, row))
    open_jobs = [job for job in instance.jobs if job.name in tables]
    for job in sorted(open_jobs, key=lambda job: -job.weight / tables[job.name].duration.min()):
        earliest = max(job.arrival, commitments.now)
        table = tables[job.name].tuples()
        soonest = earliest + int(tables[job.name].duration.min())
        starts = (
            (completion - mode[4], mode)
            for completion in range(soonest, slots + 2)
            for mode in table
            if completion - mode[4] >= earliest
        )
        tried = (
            place_mode(instance, free.least(start, start + mode[4] - 1), mode, start)
            for start, mode in starts
        )
        placed = next((row for row in tried if row is not None), None)
        assert placed is not None  # after the others' last slot a job finds the cluster empty
        free.book(placed.first, placed.last, row_use(instance, placed))
        rows[job.name] = (placed,)
    return BatchschedSolution(instance, dict(rows))


def place_mode(
    instance: BatchschedInstance,
    free: Floats,
    mode: tuple[int, int, int, int, int],
    start: int,
) -> BatchschedRow | None:
    """Place a mode on what is free in all its slots (servers, resources), `loosened`, or None."""
    m, p, q, count, length = mode
    workers = np.zeros(len(free), dtype=np.int64)
    ps = np.zeros_like(workers)
    ps_type = p if instance.has_ps else -1
    room = how_many_left(free, instance.worker_demand[m], count)
    if (room.max() if q else room.sum()) < count:
        return None
    everywhere = int(room.sum())
    for n, g in hosts(instance, free, m, p, q, count):
        if everywhere - (int(room[n]) if n >= 0 else 0) < count - g:
            continue
        beside = room.copy()
        if n >= 0:
            beside[n] = 0
        left = count - g
        for h in np.argsort(-beside, kind="stable").tolist() if left else ():
            workers[h] = min(left, int(beside[h]))
            left -= int(workers[h])
        if n >= 0:
            workers[n] = g
            if instance.has_ps:
                ps[n] = num_ps(instance, m, p, count - g)
        return BatchschedRow(start, start + length - 1, m, ps_type, workers, ps)
    return None
