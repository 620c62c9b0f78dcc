"""Conservative backfilling: every job gets the earliest start that delays no earlier job.

Free GPUs of a server over time are a list of steps, linked and shared by all servers in one store;
what lies in the past is dropped. With exact durations a reservation never changes, so that a job
starts when its arrival says; when a job ends before it was expected to, the others are given their
earliest starts again, one at a time in order of submission (Mu'alem & Feitelson, 2001).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.gang.placing import (
    Cluster,
    empty_cluster,
    enlarged_cluster,
    most_places,
    padded,
)
from hindsched.solvers.kernels.gang.queueing import NEVER
from hindsched.solvers.kernels.stable_order import stable_order


class Plan(NamedTuple):
    """Reserved GPUs over time, and the policy's state.

    Attributes
    ----------
    cluster : Cluster
        Sizes of the servers, and where each job stands (`free` is what is free now).
    time, room, after : ndarray of int, shape (steps,)
        From `time` on `room` GPUs are free, until the step `after` (-1: for ever).
    first : ndarray of int, shape (servers,)
        The step that holds now, by server.
    spare : ndarray of int, shape (1,)
        First of the unused steps, which are linked like the others.
    gpus, expected : ndarray of int, shape (jobs,)
        The jobs.
    start, end : ndarray of int, shape (jobs,)
        Reserved start and expected end.
    waiting : ndarray of int, shape (jobs,)
        Jobs with a reservation that have not started, in order of submission.
    started : ndarray of int, shape (jobs,)
        Jobs started in this event.
    sizes : ndarray of int, shape (1,)
        Number of waiting jobs.
    """

    cluster: Cluster
    time: Ints
    room: Ints
    after: Ints
    first: Ints
    spare: Ints
    gpus: Ints
    expected: Ints
    start: Ints
    end: Ints
    waiting: Ints
    started: Ints
    sizes: Ints


def empty_plan(sizes: Ints, gpus: Ints, expected: Ints) -> Plan:
    """A free cluster for jobs that become known later."""
    jobs, servers = gpus.size, sizes.size
    places = int(most_places(sizes, gpus).sum()) + servers
    cluster = empty_cluster(sizes, jobs, places)
    steps = 2 * places + servers + 1
    room = np.zeros(steps, dtype=np.int64)
    room[:servers] = sizes
    after = np.arange(1, steps + 1)
    after[:servers] = after[-1] = -1
    start, end, waiting, started = np.zeros((4, jobs), dtype=np.int64)
    return Plan(
        cluster, np.zeros(steps, dtype=np.int64), room, after, np.arange(servers),
        np.array([servers]), gpus, expected, start, end, waiting, started,
        np.zeros(1, dtype=np.int64),
    )  # fmt: skip


def enlarged_plan(plan: Plan, jobs: int, places: int) -> Plan:
    """The same plan with room for more jobs and places."""
    columns = {
        name: padded(getattr(plan, name), jobs)
        for name in ("gpus", "expected", "start", "end", "waiting", "started")
    }
    old, steps = plan.time.size, 2 * places + plan.first.size + 1
    after = np.concatenate([plan.after, np.arange(old + 1, steps + 1)])
    after[-1], plan.spare[0] = plan.spare[0], old  # the new steps go before the unused old ones
    return plan._replace(
        cluster=enlarged_cluster(plan.cluster, jobs, places),
        time=padded(plan.time, steps),
        room=padded(plan.room, steps),
        after=after,
        **columns,
    )


@njit(cache=True)
def pass_event(plan: Plan, now: int, ended: Ints, arrived: Ints) -> tuple[int, int]:
    """One event: jobs end, jobs arrive, reserved jobs start.

    Returns how many start, which are in `started`, and when the next one is to start.
    """
    early = False
    for job in ended:
        early = complete(plan, job, now) or early
    if early:
        compress(plan, now)
    for job in arrived:
        reserve(plan, job, now)
    started = start_reserved(plan, now)
    following = NEVER
    for index in range(plan.sizes[0]):
        following = min(following, plan.start[plan.waiting[index]])
    return started, following


@njit(cache=True)
def _advance(plan: Plan, now: int) -> None:
    """Drop the steps that ended before now."""
    for server in range(plan.first.size):
        step = plan.first[server]
        while plan.after[step] >= 0 and plan.time[plan.after[step]] <= now:
            following = plan.after[step]
            plan.after[step] = plan.spare[0]
            plan.spare[0] = step
            step = following
        plan.first[server] = step
        plan.time[step] = max(plan.time[step], now)


@njit(cache=True)
def _split(plan: Plan, step: int, time: int) -> int:
    """The step that begins at `time`, which lies in or after `step`; made if there is none."""
    while plan.after[step] >= 0 and plan.time[plan.after[step]] <= time:
        step = plan.after[step]
    if plan.time[step] == time:
        return step
    new = plan.spare[0]
    plan.spare[0] = plan.after[new]
    plan.time[new] = time
    plan.room[new] = plan.room[step]
    plan.after[new] = plan.after[step]
    plan.after[step] = new
    return new


@njit(cache=True)
def _change(plan: Plan, before: int, start: int, end: int, gpus: int) -> None:
    """Add GPUs to what is free on a server from `start` to `end`, now or later; join steps.

    `before` is a step of the server that begins before `start`, or its first one.
    """
    if start >= end:
        return
    step = _split(plan, before, start)
    last = _split(plan, step, end)
    while step != last:
        plan.room[step] += gpus
        step = plan.after[step]
    step = before
    while plan.after[step] >= 0 and plan.time[step] <= end:
        following = plan.after[step]
        if plan.room[following] == plan.room[step]:
            plan.after[step] = plan.after[following]
            plan.after[following] = plan.spare[0]
            plan.spare[0] = following
        else:
            step = following


@njit(cache=True)
def _earliest_on(
    time: Ints, room: Ints, after: Ints, step: int,
    now: int, duration: int, gpus: int, latest: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Earliest start from now to `latest` at which a server has GPUs free for a duration.

    Takes the plan's columns one by one and the server's first step: it is called for every server,
    where handing the whole plan on would cost more than the search. Returns the start, or NEVER,
    the fewest GPUs that are free then, and the step before the start, or the first one.
    """
    before = step
    while after[step] >= 0 and time[after[step]] <= now:
        step = after[step]
    start, least = now, NEVER
    while start <= latest:
        following = after[step]
        if room[step] < gpus:
            if following < 0:
                break
            start, least, before = time[following], NEVER, step
        else:
            least = min(least, room[step])
            if following < 0 or time[following] >= start + duration:
                return start, least, before
        step = following
    return NEVER, NEVER, -1


@njit(cache=True)
def _least_room(time: Ints, room: Ints, after: Ints, step: int, start: int, end: int) -> int:
    """Fewest GPUs free on the server of a first step from `start` to `end`."""
    least = NEVER
    while step >= 0 and time[step] < end:
        if after[step] < 0 or time[after[step]] > start:
            least = min(least, room[step])
        step = after[step]
    return least


@njit(cache=True)
def _place_at(plan: Plan, job: int, start: int) -> bool:
    """Write down where a gang on several servers can stand from `start` on, if it can."""
    cluster, end = plan.cluster, start + plan.expected[job]
    time, rooms, after = plan.time, plan.room, plan.after
    at, number, left = cluster.offset[job], 0, plan.gpus[job]
    for server in cluster.by_size:
        size = cluster.sizes[server]
        if size > left:
            continue
        if _least_room(time, rooms, after, plan.first[server], start, end) == size:
            cluster.server[at + number] = server
            cluster.held[at + number] = size
            left -= size
            number += 1
    if left > 0:
        best, least = -1, NEVER
        for server in range(cluster.sizes.size):
            room = _least_room(time, rooms, after, plan.first[server], start, end)
            if room >= left and room < least:
                taken = False
                for index in range(at, at + number):
                    taken = taken or cluster.server[index] == server
                if not taken:
                    best, least = server, room
        if best < 0:
            return False
        cluster.server[at + number] = best
        cluster.held[at + number] = left
        number += 1
    cluster.number[job] = number
    return True


@njit(cache=True)
def _earliest(plan: Plan, job: int, now: int) -> tuple[int, int]:
    """Earliest start of a gang; where it then stands is written down.

    Also the step before the start on its server, -1 if it stands on several.
    """
    cluster, gpus, duration = plan.cluster, plan.gpus[job], plan.expected[job]
    sizes = cluster.sizes
    largest = sizes[cluster.by_size[0]]
    if gpus > largest:
        return int(_earliest_of_large(plan, job, now, gpus // largest)), -1
    time, rooms, after = plan.time, plan.room, plan.after
    start, least, best, before = NEVER, NEVER, 0, plan.first[0]
    for server in range(sizes.size):
        if sizes[server] >= gpus:
            when, room, step = _earliest_on(
                time, rooms, after, plan.first[server],
                now, duration, gpus, start,
            )  # fmt: skip
            if when < start or (when == start and room < least):
                start, least, best, before = when, room, server, step
    cluster.server[cluster.offset[job]] = best
    cluster.held[cluster.offset[job]] = gpus
    cluster.number[job] = 1
    return start, before


@njit(cache=True)
def _earliest_of_large(plan: Plan, job: int, now: int, whole: int) -> int:
    """The same for a gang on several servers, of which at least `whole` must be free as a whole."""
    sizes, gpus, duration = plan.cluster.sizes, plan.gpus[job], plan.expected[job]
    time, rooms, after = plan.time, plan.room, plan.after
    free_from = np.empty(sizes.size, dtype=np.int64)
    start = now
    while True:
        for server in range(sizes.size):
            free_from[server] = NEVER
            if sizes[server] <= gpus:
                free_from[server], _, _ = _earliest_on(
                    time, rooms, after, plan.first[server],
                    start, duration, sizes[server], NEVER,
                )  # fmt: skip
        soonest = free_from[stable_order(free_from)[whole - 1]]
        if soonest > start:
            start = soonest
        elif _place_at(plan, job, start):
            return start
        else:  # the next moment at which something becomes free
            following = NEVER
            for server in range(sizes.size):
                step = plan.first[server]
                while step >= 0 and plan.time[step] <= start:
                    step = plan.after[step]
                if step >= 0:
                    following = min(following, plan.time[step])
            start = following


@njit(cache=True)
def _book(plan: Plan, job: int, start: int, end: int, sign: int) -> None:
    cluster = plan.cluster
    for index in range(cluster.offset[job], cluster.offset[job] + cluster.number[job]):
        before = plan.first[cluster.server[index]]
        _change(plan, before, start, end, sign * cluster.held[index])


@njit(cache=True)
def reserve(plan: Plan, job: int, now: int) -> None:
    """A job arrives and gets its reservation."""
    _advance(plan, now)
    cluster = plan.cluster
    cluster.offset[job] = cluster.used[0]
    _place_later(plan, job, now)
    large = plan.gpus[job] > cluster.sizes[cluster.by_size[0]]
    cluster.used[0] += min(plan.gpus[job], cluster.sizes.size) if large else 1
    plan.waiting[plan.sizes[0]] = job
    plan.sizes[0] += 1


@njit(cache=True)
def _place_later(plan: Plan, job: int, now: int) -> None:
    start, before = _earliest(plan, job, now)
    end = start + plan.expected[job]
    plan.start[job], plan.end[job] = start, end
    if before < 0:
        _book(plan, job, start, end, -1)
    else:
        _change(plan, before, start, end, -plan.gpus[job])


@njit(cache=True)
def complete(plan: Plan, job: int, now: int) -> bool:
    """A running job is complete; says whether it was expected to run on."""
    _advance(plan, now)
    early = plan.end[job] > now
    if early:
        _book(plan, job, now, plan.end[job], 1)
    return early


@njit(cache=True)
def compress(plan: Plan, now: int) -> None:
    """Give every waiting job its earliest start again, one at a time; none is delayed."""
    for index in range(plan.sizes[0]):
        job = plan.waiting[index]
        _book(plan, job, plan.start[job], plan.end[job], 1)
        _place_later(plan, job, now)


@njit(cache=True)
def start_reserved(plan: Plan, now: int) -> int:
    """Start the jobs whose time has come; says how many, their positions are in `started`."""
    kept = started = 0
    for index in range(plan.sizes[0]):
        job = plan.waiting[index]
        if plan.start[job] <= now:
            plan.started[started] = job
            started += 1
        else:
            plan.waiting[kept] = job
            kept += 1
    plan.sizes[0] = kept
    return started


def run_conservative(
    sizes: Ints, submit: Ints, duration: Ints, gpus: Ints, expected: Ints
) -> tuple[Ints, Cluster]:
    """Replay a whole trace; parameters and result as of `run_queue`."""
    plan = empty_plan(sizes, gpus, expected)
    order = np.argsort(submit, kind="stable")
    if np.array_equal(expected, duration):  # nothing is ever early
        _reserve_all(plan, order, submit)
    else:
        _run(plan, order, submit, duration)
    return plan.start, plan.cluster


@njit(cache=True)
def _reserve_all(plan: Plan, order: Ints, submit: Ints) -> None:
    for job in order:
        reserve(plan, job, submit[job])


@njit(cache=True)
def _run(plan: Plan, order: Ints, submit: Ints, duration: Ints) -> None:
    ends = [(NEVER, np.int64(-1))]
    arrived = 0
    starts = [(NEVER, np.int64(-1))]
    while arrived < order.size or len(ends) > 1 or plan.sizes[0] > 0:
        now = min(ends[0][0], starts[0][0])
        if arrived < order.size:
            now = min(now, submit[order[arrived]])
        early = False
        while ends[0][0] <= now:
            early = complete(plan, heapq.heappop(ends)[1], now) or early
        if early:
            compress(plan, now)
        while arrived < order.size and submit[order[arrived]] <= now:
            reserve(plan, order[arrived], now)
            arrived += 1
        for index in range(start_reserved(plan, now)):
            job = plan.started[index]
            heapq.heappush(ends, (now + duration[job], np.int64(job)))
        starts[0] = (NEVER, np.int64(-1))
        for index in range(plan.sizes[0]):
            job = plan.waiting[index]
            if plan.start[job] < starts[0][0]:
                starts[0] = (plan.start[job], np.int64(job))
