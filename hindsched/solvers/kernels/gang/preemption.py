"""Policies that pause jobs: at every event the jobs are ranked anew and gangs placed in turn.

``SHORTEST_REMAINING``
    By remaining duration (SRTF): knows durations.
``LEAST_ATTAINED``
    Two queues by attained service in GPU-slots, below a threshold first; within a queue by
    submission (discretised LAS: Tiresias, NSDI 2019; LAS: Nuyens & Wierman 2008). Knows no
    durations.

A gang that does not fit where its turn comes is passed over. A job that stays keeps its servers if
they are still free in its turn. `remaining` is what the cluster, not the policy, knows: ranking by
attained service never reads it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.gang.placing import (
    Cluster,
    empty_cluster,
    enlarged_cluster,
    padded,
    place,
)
from hindsched.solvers.kernels.gang.queueing import NEVER
from hindsched.solvers.kernels.stable_order import copy_to

SHORTEST_REMAINING, LEAST_ATTAINED = 0, 1


class Ranks(NamedTuple):
    """A policy's state.

    Attributes
    ----------
    cluster : Cluster
        Where the jobs that hold GPUs stand.
    gpus : ndarray of int, shape (jobs,)
        GPUs of each job.
    done : ndarray of int, shape (jobs,)
        Slots that each job has run up to `since`.
    since : ndarray of int, shape (jobs,)
        When it last began to run; -1 while it does not.
    duration : ndarray of int, shape (jobs,)
        Slots that a job runs in all; not read by `LEAST_ATTAINED`.
    key : ndarray of int, shape (jobs,)
        Rank of a waiting job: smaller goes first, equal ones by position.
    waiting, running : ndarray of int, shape (jobs,)
        Jobs in order of rank: ``sizes[0]`` from ``sizes[4]`` on, and the first ``sizes[1]``.
    stopped, started : ndarray of int, shape (jobs,)
        Jobs paused or moved, and started, resumed or moved in this event; ``sizes[2:4]``.
    sizes : ndarray of int, shape (5,)
        Their numbers, and where those that wait begin.
    failed : ndarray of int, shape (GPUs + 2,)
        Serial number of the last pass in which a gang of that size did not fit.
    """

    cluster: Cluster
    gpus: Ints
    done: Ints
    since: Ints
    duration: Ints
    key: Ints
    waiting: Ints
    running: Ints
    stopped: Ints
    started: Ints
    sizes: Ints
    failed: Ints


def empty_ranks(sizes: Ints, gpus: Ints, duration: Ints) -> Ranks:
    """A free cluster and no jobs yet."""
    jobs = gpus.size
    cluster = empty_cluster(sizes, jobs, 4 * int(sizes.sum()) + sizes.size)
    done, key, waiting, running, stopped, started = np.zeros((6, jobs), dtype=np.int64)
    failed = np.full(int(sizes.sum()) + 2, -1)
    since = np.full(jobs, -1)
    counts = np.zeros(5, dtype=np.int64)
    return Ranks(
        cluster, gpus, done, since, duration, key, waiting, running, stopped, started, counts,
        failed,
    )  # fmt: skip


def enlarged_ranks(ranks: Ranks, jobs: int) -> Ranks:
    """The same state with room for more jobs."""
    columns = {
        name: padded(getattr(ranks, name), jobs)
        for name in ("gpus", "done", "duration", "key", "waiting", "running", "stopped", "started")
    }
    cluster = enlarged_cluster(ranks.cluster, jobs, ranks.cluster.server.size)
    return ranks._replace(cluster=cluster, since=padded(ranks.since, jobs, -1), **columns)


@njit(cache=True)
def pass_event(ranks: Ranks, now: int, way: int, threshold: int, ended: Ints, arrived: Ints) -> int:
    """One event: jobs end, jobs arrive, all are ranked anew; when the next leaves its queue.

    Whom it stops and starts is in `stopped` and `started`.
    """
    for job in ended:
        leave(ranks, job, now)
    for job in arrived:
        join(ranks, job, now, way, threshold)
    rank_jobs(ranks, now, way, threshold)
    if way == LEAST_ATTAINED:
        return int(next_crossing(ranks, now, threshold))
    return int(NEVER)


@njit(cache=True)
def _rank(ranks: Ranks, job: int, now: int, way: int, threshold: int) -> int:
    """Present rank of a job."""
    done = ranks.done[job]
    if ranks.since[job] >= 0:
        done += now - ranks.since[job]
    if way == SHORTEST_REMAINING:
        return ranks.duration[job] - done
    return 1 if done * ranks.gpus[job] >= threshold else 0


@njit(cache=True)
def join(ranks: Ranks, job: int, now: int, way: int, threshold: int) -> None:
    """A job arrives, or waits again, behind equal ranks of smaller position."""
    waiting, key = ranks.waiting, ranks.key
    key[job] = _rank(ranks, job, now, way, threshold)
    front = ranks.sizes[4]
    end = front + ranks.sizes[0]
    low, high = front, end
    while low < high:
        middle = (low + high) // 2
        other = waiting[middle]
        if key[other] < key[job] or (key[other] == key[job] and other < job):
            low = middle + 1
        else:
            high = middle
    if front > 0 and (low - front < end - low or end == waiting.size):  # the shorter side moves
        low -= 1
        for index in range(front - 1, low):
            waiting[index] = waiting[index + 1]
        ranks.sizes[4] = front - 1
    else:
        for index in range(end, low, -1):
            waiting[index] = waiting[index - 1]
    waiting[low] = job
    ranks.sizes[0] += 1


@njit(cache=True)
def leave(ranks: Ranks, job: int, now: int) -> None:
    """A running job is complete."""
    running = ranks.running
    kept = 0
    for index in range(ranks.sizes[1]):
        if running[index] != job:
            running[kept] = running[index]
            kept += 1
    ranks.sizes[1] = kept
    ranks.done[job] += now - ranks.since[job]
    ranks.since[job] = -1


@njit(cache=True)
def _keep(cluster: Cluster, job: int) -> bool:
    """Book a job where it stands already, if that is still free."""
    first, last = cluster.offset[job], cluster.offset[job] + cluster.number[job]
    for index in range(first, last):
        if cluster.free[cluster.server[index]] < cluster.held[index]:
            return False
    for index in range(first, last):
        cluster.free[cluster.server[index]] -= cluster.held[index]
    return True


@njit(cache=True)
def _compact(ranks: Ranks) -> None:
    """Make room for new places: only those of running jobs are still needed."""
    cluster = ranks.cluster
    if cluster.used[0] + cluster.free.sum() + cluster.sizes.size < cluster.server.size:
        return
    total = 0
    for index in range(ranks.sizes[1]):
        total += cluster.number[ranks.running[index]]
    server = np.empty(total, dtype=np.int64)
    held = np.empty(total, dtype=np.int64)
    at = 0
    for index in range(ranks.sizes[1]):
        job = ranks.running[index]
        first, count = cluster.offset[job], cluster.number[job]
        copy_to(server[at : at + count], cluster.server[first : first + count])
        copy_to(held[at : at + count], cluster.held[first : first + count])
        cluster.offset[job] = at
        at += count
    copy_to(cluster.server[:total], server)
    copy_to(cluster.held[:total], held)
    cluster.used[0] = total


@njit(cache=True)
def _sort_running(ranks: Ranks, now: int, way: int, threshold: int) -> None:
    """Rank the running jobs as of now: nearly sorted already."""
    running, key = ranks.running, ranks.key
    for index in range(ranks.sizes[1]):
        job = running[index]
        key[job] = _rank(ranks, job, now, way, threshold)
        place_at = index
        while place_at > 0:
            before = running[place_at - 1]
            if key[before] < key[job] or (key[before] == key[job] and before < job):
                break
            running[place_at] = before
            place_at -= 1
        running[place_at] = job


@njit(cache=True)
def rank_jobs(ranks: Ranks, now: int, way: int, threshold: int) -> None:
    """Decide who holds GPUs from now on; what changes is in `stopped` and `started`."""
    cluster, waiting, key, gpus = ranks.cluster, ranks.waiting, ranks.key, ranks.gpus
    copy_to(cluster.free, cluster.sizes)
    _compact(ranks)
    _sort_running(ranks, now, way, threshold)
    room = cluster.sizes.sum()
    front, old = ranks.sizes[4], ranks.running[: ranks.sizes[1]].copy()
    size = front + ranks.sizes[0]
    ranks.sizes[1:4] = 0
    ranks.failed[-1] += 1
    next_old = 0
    next_waiting = kept = front
    while room > 0 and (next_waiting < size or next_old < old.size):
        from_old = next_waiting >= size
        if not from_old and next_old < old.size:
            one, other = old[next_old], waiting[next_waiting]
            from_old = key[one] < key[other] or (key[one] == key[other] and one < other)
        job = old[next_old] if from_old else waiting[next_waiting]
        fits = gpus[job] <= room and ranks.failed[gpus[job]] != ranks.failed[-1]
        if from_old:
            next_old += 1
            if fits and _keep(cluster, job):
                room -= gpus[job]
                ranks.running[ranks.sizes[1]] = job
                ranks.sizes[1] += 1
                continue
            ranks.stopped[ranks.sizes[2]] = job
            ranks.sizes[2] += 1
            ranks.done[job] += now - ranks.since[job]
            ranks.since[job] = -1
        else:
            next_waiting += 1
        if fits and place(cluster, job, gpus[job]):
            room -= gpus[job]
            ranks.since[job] = now
            ranks.running[ranks.sizes[1]] = job
            ranks.sizes[1] += 1
            ranks.started[ranks.sizes[3]] = job
            ranks.sizes[3] += 1
        else:
            if gpus[job] <= room:
                ranks.failed[gpus[job]] = ranks.failed[-1]
            if not from_old:
                waiting[kept] = job
                kept += 1
    if next_waiting > kept:  # those passed over go up to those that were not looked at
        for index in range(kept - front):
            waiting[next_waiting - 1 - index] = waiting[kept - 1 - index]
        ranks.sizes[4] += next_waiting - kept
        ranks.sizes[0] -= next_waiting - kept
    for index in range(next_old, old.size):
        job = old[index]
        ranks.stopped[ranks.sizes[2]] = job
        ranks.sizes[2] += 1
        ranks.done[job] += now - ranks.since[job]
        ranks.since[job] = -1
    for index in range(ranks.sizes[2]):
        if ranks.since[ranks.stopped[index]] < 0:
            join(ranks, ranks.stopped[index], now, way, threshold)


@njit(cache=True)
def next_crossing(ranks: Ranks, now: int, threshold: int) -> int:
    """When the next running job leaves the first queue."""
    soonest = NEVER
    for index in range(ranks.sizes[1]):
        job = ranks.running[index]
        done = ranks.done[job] + now - ranks.since[job]
        if done * ranks.gpus[job] < threshold:
            missing = threshold - done * ranks.gpus[job]
            soonest = min(soonest, now + (missing + ranks.gpus[job] - 1) // ranks.gpus[job])
    return soonest


class History(NamedTuple):
    """Rows that a preemptive run leaves: job, start, end, and places (row, server, GPUs)."""

    rows: Ints
    places: Ints


def run_ranks(
    sizes: Ints, submit: Ints, duration: Ints, gpus: Ints, way: int, threshold: int = 0
) -> History:
    """Replay a whole trace.

    Parameters
    ----------
    sizes : ndarray of int, shape (servers,)
        GPUs of each server.
    submit, duration, gpus : ndarray of int, shape (jobs,)
        The jobs, in order of submission.
    way : int
        How jobs are ranked.
    threshold : int
        GPU-slots of attained service at which a job leaves the first queue.

    Returns
    -------
    History
        ``rows`` of shape (rows, 3) and ``places`` of shape (places, 3).
    """
    return History(*_run(empty_ranks(sizes, gpus, duration), submit, way, threshold))


@njit(cache=True)
def _grown(table: Ints) -> Ints:
    larger = np.empty((2 * table.shape[0], table.shape[1]), dtype=table.dtype)
    larger[: table.shape[0]] = table
    return larger


@njit(cache=True)
def _run(ranks: Ranks, submit: Ints, way: int, threshold: int) -> tuple[Ints, Ints]:
    """Play all events; rows and places."""
    jobs = submit.size
    cluster = ranks.cluster
    row_of = np.full(jobs, -1)
    rows = np.empty((2 * jobs + 16, 3), dtype=np.int64)
    places = np.empty_like(rows)
    size = held = arrived = now = np.int64(0)
    while arrived < jobs or ranks.sizes[1] > 0:
        following = NEVER if arrived == jobs else submit[arrived]
        for index in range(ranks.sizes[1]):
            job = ranks.running[index]
            following = min(following, ranks.since[job] + ranks.duration[job] - ranks.done[job])
        if way == LEAST_ATTAINED:
            following = min(following, next_crossing(ranks, now, threshold))
        now = following
        index = 0
        while index < ranks.sizes[1]:
            job = ranks.running[index]
            if ranks.since[job] + ranks.duration[job] - ranks.done[job] <= now:
                rows[row_of[job], 2] = now
                leave(ranks, job, now)
            else:
                index += 1
        while arrived < jobs and submit[arrived] <= now:
            join(ranks, np.int64(arrived), now, way, threshold)
            arrived += 1
        rank_jobs(ranks, now, way, threshold)
        for index in range(ranks.sizes[2]):
            rows[row_of[ranks.stopped[index]], 2] = now
        for index in range(ranks.sizes[3]):
            job = ranks.started[index]
            if size == rows.shape[0]:
                rows = _grown(rows)
            while held + cluster.number[job] > places.shape[0]:
                places = _grown(places)
            rows[size, 0] = job
            rows[size, 1] = now
            row_of[job] = size
            for index_of_place in range(cluster.number[job]):
                places[held, 0] = size
                places[held, 1] = cluster.server[cluster.offset[job] + index_of_place]
                places[held, 2] = cluster.held[cluster.offset[job] + index_of_place]
                held += 1
            size += 1
    return rows[:size], places[:held]
