"""Schedules to begin from: replayed policies, and elastic jobs on all that they can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from hindsched.arrays import Floats
from hindsched.instances.gang.instance import GangInstance, split_formulation
from hindsched.solutions.gang.rows import pool_rows
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.families.gang.replay import replay, started_rows
from hindsched.solvers.kernels.gang.placing import cluster_sizes
from hindsched.solvers.kernels.gang.queueing import SKIPPING, run_queue

GREEDY = ("wspt", "sjf", "smallest-first", "fifo-skip", "easy")
"""Policies that are replayed for schedules in one piece."""
PAUSING = ("srtf", "las")
MOST_GPU_CHANGES = 50_000_000
"""Events x jobs up to which elastic jobs are replayed."""


def incumbents(instance: GangInstance, formulation: str) -> Iterator[GangSolution]:
    """Feasible schedules of a formulation, cheap to make."""
    kind, goal = split_formulation(formulation)
    for name in GREEDY:
        yield replay(instance, name, formulation)
    if goal == "makespan":
        area = (instance.durations * instance.job_gpus).astype(float)
        for key in (-instance.durations.astype(float), -area, -instance.job_gpus - area / 1e18):
            yield in_order(instance, key, formulation)
    elif goal == "deadlines":
        due: Floats = np.where(instance.deadlines >= 0, instance.deadlines, np.inf)
        latest = due - instance.durations
        for key in (due, latest, np.where(latest < instance.submits, np.inf, latest)):
            yield in_order(instance, key, formulation)
    if kind != "non-preemptive":
        for name in PAUSING:
            yield replay(instance, name, formulation)
    few = len(instance.jobs) ** 2 * 4 <= MOST_GPU_CHANGES
    if kind == "elastic" and few and not instance.is_consolidated:
        yield shortest_remaining_work(instance, formulation)


def in_order(instance: GangInstance, key: Floats, formulation: str) -> GangSolution:
    """Start whatever fits at every event, smallest key first."""
    order = np.argsort(instance.submits, kind="stable")
    columns = (instance.submits, instance.durations, instance.job_gpus)
    submit, duration, gpus = (column[order] for column in columns)
    sizes = cluster_sizes(instance)
    start, cluster = run_queue(sizes, submit, duration, gpus, key[order], duration, SKIPPING)
    return GangSolution(instance, started_rows(instance, order, start, cluster), formulation)


def shortest_remaining_work(instance: GangInstance, formulation: str) -> GangSolution:
    """Elastic jobs by remaining work, each on as many GPUs as it can use and are left."""
    order = np.argsort(instance.submits, kind="stable")
    work = (instance.durations * instance.job_gpus)[order]
    most = instance.most_gpus[order]
    job, start, end, gpus = _elastic(instance.submits[order], work, most, instance.total_gpus)
    return GangSolution(instance, pool_rows(order[job], start, end, gpus), formulation)


@njit(cache=True)
def _elastic(submit: Any, work: Any, most: Any, room: int) -> Any:
    jobs = submit.size
    left = work.copy()
    active = np.empty(jobs, dtype=np.int64)
    count = arrived = 0
    now = np.int64(0)
    rows = [(np.int64(0), np.int64(0), np.int64(0), np.int64(0))]
    rows.pop()
    while arrived < jobs or count > 0:
        if count == 0:
            now = max(now, submit[arrived])
        while arrived < jobs and submit[arrived] <= now:
            active[count] = arrived
            count += 1
            arrived += 1
        ranked = active[:count][np.argsort(left[active[:count]], kind="mergesort")]
        until = submit[arrived] if arrived < jobs else np.int64(2**62)
        free, used = room, 0
        for job in ranked:
            gpus = min(free, most[job])
            if gpus == 0:
                break
            free -= gpus
            used += 1
            until = min(until, now + max(np.int64(1), left[job] // gpus))
        free = room
        for index in range(used):
            job = ranked[index]
            gpus = min(free, most[job], max(np.int64(1), -(-left[job] // (until - now))))
            free -= gpus
            left[job] -= gpus * (until - now)
            rows.append((job, now, until, gpus))
        kept = 0
        for index in range(count):
            if left[active[index]] > 0:
                active[kept] = active[index]
                kept += 1
        count = kept
        now = until
    table = np.array(rows)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
