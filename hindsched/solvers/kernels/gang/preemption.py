"""Policies that pause jobs: at every event the jobs are ranked anew and gangs placed in turn.

``SHORTEST_REMAINING`` ranks by remaining duration (SRTF) and knows durations. ``LEAST_ATTAINED``
has two queues by attained service in GPU-slots, below a threshold first, within a queue by
submission (discretised LAS: Tiresias, NSDI 2019; LAS: Nuyens & Wierman 2008), and knows none. A
gang that does not fit where its turn comes is passed over. A job that stays keeps its servers if
they are still free in its turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.gang.orders import FOREVER
from hindsched.solvers.kernels.gang.queueing import (
    Cluster,
    empty_cluster,
    enlarged_cluster,
    padded,
    place,
)
from hindsched.solvers.kernels.stable_order import copy_to

SHORTEST_REMAINING, LEAST_ATTAINED = 0, 1


class Ranks(NamedTuple):
    """A policy's state."""

    cluster: Cluster  # where the jobs that hold GPUs stand
    gpus: Ints  # GPUs of each job, (jobs,)
    done: Ints  # slots that each job has run up to `since`, (jobs,)
    since: Ints  # when it last began to run; -1 while it does not, (jobs,)
    duration: Ints  # slots that a job runs in all; not read by `LEAST_ATTAINED`, (jobs,)
    key: Ints  # rank of a job: smaller goes first, equal ones by position, (jobs,)
    active: Ints  # jobs that are there, in order of rank; the first ``sizes[0]``, (jobs,)
    # jobs paused or moved, and started, resumed or moved in this event; ``sizes[1:3]``, (jobs,)
    stopped: Ints
    started: Ints
    sizes: Ints  # their numbers, (3,)
    # serial number of the last pass in which a gang of that size did not fit; that of this pass,
    # (GPUs + 2,)
    failed: Ints


def empty_ranks(sizes: Ints, gpus: Ints, duration: Ints) -> Ranks:
    """A free cluster and no jobs yet."""
    jobs = gpus.size
    cluster = empty_cluster(sizes, jobs, int(sizes.sum()) + sizes.size)
    done, key, active, stopped, started = np.zeros((5, jobs), dtype=np.int64)
    since, failed = np.full(jobs, -1), np.full(int(sizes.sum()) + 2, -1)
    counts = np.zeros(3, dtype=np.int64)
    return Ranks(
        cluster, gpus, done, since, duration, key, active, stopped, started, counts, failed
    )


def enlarged_ranks(ranks: Ranks, jobs: int) -> Ranks:
    """The same state with room for more jobs."""
    columns = {
        name: padded(getattr(ranks, name), jobs)
        for name in ("gpus", "done", "duration", "key", "active", "stopped", "started")
    }
    cluster = enlarged_cluster(ranks.cluster, jobs, ranks.cluster.server.size)
    return ranks._replace(cluster=cluster, since=padded(ranks.since, jobs, -1), **columns)


@njit(cache=True)
def pass_event(ranks: Ranks, now: int, way: int, threshold: int, ended: Ints, arrived: Ints) -> int:
    """One event: jobs end, jobs arrive, all are ranked anew; when the next leaves its queue.

    Whom it stops and starts is in `stopped` and `started`.
    """
    for job in ended:
        _leave(ranks, job)
    for job in arrived:
        _join(ranks, job)
    _sort(ranks, now, way, threshold)
    _place_all(ranks, now)
    return int(_next_crossing(ranks, now, threshold)) if way == LEAST_ATTAINED else int(FOREVER)


@njit(cache=True)
def _join(ranks: Ranks, job: int) -> None:
    ranks.active[ranks.sizes[0]] = job
    ranks.sizes[0] += 1


@njit(cache=True)
def _leave(ranks: Ranks, job: int) -> None:
    active, at = ranks.active, 0
    while active[at] != job:
        at += 1
    ranks.sizes[0] -= 1
    for index in range(at, ranks.sizes[0]):
        active[index] = active[index + 1]
    ranks.since[job] = -1


@njit(cache=True)
def _sort(ranks: Ranks, now: int, way: int, threshold: int) -> None:
    """Rank all jobs as of now: they are nearly sorted already."""
    active, key = ranks.active, ranks.key
    for index in range(ranks.sizes[0]):
        job = active[index]
        done = ranks.done[job] + (now - ranks.since[job] if ranks.since[job] >= 0 else 0)
        if way == SHORTEST_REMAINING:
            key[job] = ranks.duration[job] - done
        else:
            key[job] = 1 if done * ranks.gpus[job] >= threshold else 0
        at = index
        while at > 0:
            before = active[at - 1]
            if key[before] < key[job] or (key[before] == key[job] and before < job):
                break
            active[at] = before
            at -= 1
        active[at] = job


@njit(cache=True)
def _keep(cluster: Cluster, job: int, server: Ints, held: Ints) -> bool:
    """Book a job where it stood, in `server` and `held`, if that is still free."""
    first, number = cluster.offset[job], cluster.number[job]
    for index in range(first, first + number):
        if cluster.free[server[index]] < held[index]:
            return False
    at = cluster.used[0]
    for index in range(number):
        cluster.server[at + index] = server[first + index]
        cluster.held[at + index] = held[first + index]
        cluster.free[server[first + index]] -= held[first + index]
    cluster.offset[job] = at
    cluster.used[0] = at + number
    return True


@njit(cache=True)
def _place_all(ranks: Ranks, now: int) -> None:
    """Decide who holds GPUs from now on; what changes is in `stopped` and `started`."""
    cluster, gpus, since, failed = ranks.cluster, ranks.gpus, ranks.since, ranks.failed
    server, held = cluster.server.copy(), cluster.held.copy()
    copy_to(cluster.free, cluster.sizes)
    cluster.used[0] = 0
    room = cluster.sizes.sum()
    ranks.sizes[1:] = 0
    failed[-1] += 1
    for job in ranks.active[: ranks.sizes[0]]:
        fits = gpus[job] <= room and failed[gpus[job]] != failed[-1]
        if since[job] >= 0:
            if fits and _keep(cluster, job, server, held):
                room -= gpus[job]
                continue
            ranks.stopped[ranks.sizes[1]] = job
            ranks.sizes[1] += 1
            ranks.done[job] += now - since[job]
            since[job] = -1
        if fits and place(cluster, job, gpus[job]):
            room -= gpus[job]
            since[job] = now
            ranks.started[ranks.sizes[2]] = job
            ranks.sizes[2] += 1
        elif fits:
            failed[gpus[job]] = failed[-1]


@njit(cache=True)
def _next_crossing(ranks: Ranks, now: int, threshold: int) -> int:
    """When the next running job leaves the first queue."""
    soonest = FOREVER
    for job in ranks.active[: ranks.sizes[0]]:
        if ranks.since[job] >= 0:
            missing = threshold - (ranks.done[job] + now - ranks.since[job]) * ranks.gpus[job]
            if missing > 0:
                soonest = min(soonest, now + (missing + ranks.gpus[job] - 1) // ranks.gpus[job])
    return soonest


def run_ranks(
    sizes: Ints, submit: Ints, duration: Ints, gpus: Ints, way: int, threshold: int = 0
) -> tuple[Ints, Ints]:
    """Replay a whole trace of jobs in order of submission.

    Returns rows (job, start, end), (rows, 3), and places (row, server, GPUs), (places, 3). Jobs
    leave the first queue at `threshold` GPU-slots of attained service.
    """
    return _run(empty_ranks(sizes, gpus, duration), submit, way, threshold)


@njit(cache=True)
def _run(ranks: Ranks, submit: Ints, way: int, threshold: int) -> tuple[Ints, Ints]:
    cluster, since, jobs = ranks.cluster, ranks.since, submit.size
    row_of = np.empty(jobs, dtype=np.int64)
    rows = [(np.int64(-1), np.int64(0), np.int64(0))]  # a list says its type by its first entry
    places = rows.copy()
    arrived = now = np.int64(0)
    ends = np.empty(jobs, dtype=np.int64)
    while arrived < jobs or ranks.sizes[0] > 0:
        following = FOREVER if arrived == jobs else submit[arrived]
        for job in ranks.active[: ranks.sizes[0]]:
            if since[job] >= 0:
                following = min(following, since[job] + ranks.duration[job] - ranks.done[job])
        if way == LEAST_ATTAINED:
            following = min(following, _next_crossing(ranks, now, threshold))
        now, ended = following, 0
        for job in ranks.active[: ranks.sizes[0]]:
            if since[job] >= 0 and since[job] + ranks.duration[job] - ranks.done[job] <= now:
                ends[ended] = job
                ended += 1
        first = arrived
        while arrived < jobs and submit[arrived] <= now:
            arrived += 1
        pass_event(ranks, now, way, threshold, ends[:ended], np.arange(first, arrived))
        for job in ends[:ended]:
            rows[row_of[job]] = (rows[row_of[job]][0], rows[row_of[job]][1], now)
        for job in ranks.stopped[: ranks.sizes[1]]:
            rows[row_of[job]] = (rows[row_of[job]][0], rows[row_of[job]][1], now)
        for job in ranks.started[: ranks.sizes[2]]:
            row_of[job] = len(rows)
            for index in range(cluster.offset[job], cluster.offset[job] + cluster.number[job]):
                places.append((row_of[job] - 1, cluster.server[index], cluster.held[index]))
            rows.append((job, now, now))
    return np.array(rows)[1:], np.array(places)[1:]
