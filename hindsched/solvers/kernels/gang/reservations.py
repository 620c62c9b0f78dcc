"""Conservative backfilling: every job gets the earliest start that delays no earlier job.

Free GPUs of each server over time are steps, as in `orders`. With exact durations a reservation
never changes, so that a job starts when its arrival says; when a job ends before it was expected
to, the others are given their earliest starts again, one at a time in order of submission
(Mu'alem & Feitelson, 2001).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.gang.orders import FOREVER, book, earliest_start, step_at
from hindsched.solvers.kernels.gang.queueing import (
    Cluster,
    empty_cluster,
    enlarged_cluster,
    most_places,
    padded,
    place,
)


class Plan(NamedTuple):
    """Reserved GPUs over time, and the policy's state."""

    # sizes of the servers, and where each job stands; `free` is for what is asked last
    cluster: Cluster
    # from `time` on `room` GPUs are free, until the next step; the first ``steps`` of each,
    # (servers, steps)
    time: Ints
    room: Ints
    steps: Ints  # number of a server's steps, of which the last one begins at `FOREVER`, (servers,)
    gpus: Ints  # the jobs, (jobs,)
    expected: Ints
    start: Ints  # reserved start, (jobs,)
    end: Ints  # expected end, (jobs,)
    waiting: Ints  # jobs with a reservation that have not started, in order of submission, (jobs,)
    started: Ints  # jobs started in this event, (jobs,)
    sizes: Ints  # number of waiting jobs, (1,)


def empty_plan(sizes: Ints, gpus: Ints, expected: Ints) -> Plan:
    """A free cluster for jobs that become known later."""
    jobs, servers = gpus.size, sizes.size
    cluster = empty_cluster(sizes, jobs, int(most_places(sizes, gpus).sum()) + servers)
    time, room = np.empty((2, servers, 2 * jobs + 4), dtype=np.int64)
    time[:, 0], time[:, 1] = 0, FOREVER
    room[:, 0] = room[:, 1] = sizes
    start, end, waiting, started = np.zeros((4, jobs), dtype=np.int64)
    steps, counts = np.full(servers, 2), np.zeros(1, dtype=np.int64)
    return Plan(
        cluster, time, room, steps, gpus, expected, start, end, waiting, started, counts
    )  # fmt: skip


def enlarged_plan(plan: Plan, jobs: int, places: int) -> Plan:
    """The same plan with room for more jobs and places."""
    columns = {
        name: padded(getattr(plan, name), jobs)
        for name in ("gpus", "expected", "start", "end", "waiting", "started")
    }
    used = int(plan.steps.max())
    time, room = np.empty((2, plan.steps.size, 2 * jobs + 4), dtype=np.int64)
    time[:, :used], room[:, :used] = plan.time[:, :used], plan.room[:, :used]
    cluster = enlarged_cluster(plan.cluster, jobs, places)
    return plan._replace(cluster=cluster, time=time, room=room, **columns)


@njit(cache=True)
def pass_event(plan: Plan, now: int, ended: Ints, arrived: Ints) -> tuple[int, int]:
    """One event: how many reserved jobs start, in `started`, and when the next one is to start."""
    early = False
    for job in ended:
        if plan.end[job] > now:
            _book(plan, job, now, plan.end[job], -1)
            early = True
    if early:  # each waiting job gets its earliest start again; none is delayed
        for job in plan.waiting[: plan.sizes[0]]:
            _book(plan, job, plan.start[job], plan.end[job], -1)
            _reserve(plan, job, now)
    for job in arrived:
        plan.cluster.offset[job] = plan.cluster.used[0]
        _reserve(plan, job, now)
        large = plan.gpus[job] > plan.cluster.sizes.max()
        plan.cluster.used[0] += min(plan.gpus[job], plan.cluster.sizes.size) if large else 1
        plan.waiting[plan.sizes[0]] = job
        plan.sizes[0] += 1
    return _start_reserved(plan, now)


@njit(cache=True)
def _book(plan: Plan, job: int, start: int, end: int, sign: int) -> None:
    """Take a job's GPUs where it stands, or with the sign -1 give them back."""
    cluster = plan.cluster
    for index in range(cluster.offset[job], cluster.offset[job] + cluster.number[job]):
        h, gpus = cluster.server[index], sign * cluster.held[index]
        plan.steps[h] = book(plan.time[h], plan.room[h], plan.steps[h], start, end, gpus)


@njit(cache=True)
def _reserve(plan: Plan, job: int, now: int) -> None:
    """Book a job's earliest start from now on, at its own offset."""
    cluster, gpus, duration = plan.cluster, plan.gpus[job], plan.expected[job]
    time, room, steps = plan.time, plan.room, plan.steps
    used, cluster.used[0] = cluster.used[0], cluster.offset[job]
    start = now
    if gpus <= cluster.sizes.max():  # the first start at which it fits on one of the servers
        start = FOREVER
        for h in range(steps.size):
            start = min(start, earliest_start(time[h], room[h], steps[h], now, duration, gpus))
    while True:
        following = FOREVER
        for h in range(steps.size):
            step = step_at(time[h], steps[h], start)
            following = min(following, time[h, step + 1])
            cluster.free[h] = room[h, step]
            while time[h, step + 1] < start + duration:
                step += 1
                cluster.free[h] = min(cluster.free[h], room[h, step])
        if place(cluster, job, gpus):
            break
        start = following
    cluster.used[0] = used
    plan.start[job], plan.end[job] = start, start + duration
    _book(plan, job, start, start + duration, 1)


@njit(cache=True)
def _start_reserved(plan: Plan, now: int) -> tuple[int, int]:
    """Start the jobs whose time has come: how many, and when the next one is to start."""
    kept = started = 0
    following = FOREVER
    for job in plan.waiting[: plan.sizes[0]]:
        if plan.start[job] <= now:
            plan.started[started] = job
            started += 1
        else:
            following = min(following, plan.start[job])
            plan.waiting[kept] = job
            kept += 1
    plan.sizes[0] = kept
    return started, following


def run_conservative(
    sizes: Ints, submit: Ints, duration: Ints, gpus: Ints, expected: Ints
) -> tuple[Ints, Cluster]:
    """Replay a whole trace; parameters and result as of `run_queue`."""
    plan = empty_plan(sizes, gpus, expected)
    _run(plan, np.argsort(submit, kind="stable"), submit, duration)
    return plan.start, plan.cluster


@njit(cache=True)
def _run(plan: Plan, order: Ints, submit: Ints, duration: Ints) -> None:
    ends = [(FOREVER, np.int64(-1))]
    ended = np.empty(order.size, dtype=np.int64)
    arrived, following = 0, FOREVER
    while arrived < order.size or len(ends) > 1 or plan.sizes[0] > 0:
        now = min(ends[0][0], following)
        if arrived < order.size:
            now = min(now, submit[order[arrived]])
        count, first = 0, arrived
        while ends[0][0] <= now:
            ended[count] = heapq.heappop(ends)[1]
            count += 1
        while arrived < order.size and submit[order[arrived]] <= now:
            arrived += 1
        started, following = pass_event(plan, now, ended[:count], order[first:arrived])
        for job in plan.started[:started]:
            heapq.heappush(ends, (now + duration[job], np.int64(job)))
