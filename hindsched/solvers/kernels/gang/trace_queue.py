"""A queue of many thousand jobs that are all known: what `queueing` does, job by job.

A job's place in the order of the queue is known beforehand. Jobs of one width are the leaves of a
tree in that order, which keeps the shortest expected duration of those that wait below each node,
and another tree holds all jobs. So the next job that fits beside what runs is found without going
through those that do not, of which an overloaded cluster has more at every event.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.gang.placing import Cluster, place
from hindsched.solvers.kernels.gang.queueing import (
    BACKFILLING,
    NEVER,
    SKIPPING,
    Queue,
    empty_queue,
    finish,
    place_beside,
    reservation,
    run_events,
    start_job,
)

MANY_JOBS = 2_000
"""Jobs of a trace from which on the queue is kept in trees: going through it takes longer."""
EVENTS_AT_ONCE = 10_000
"""Events of one call into compiled code, between which a time limit is heard."""


class Trees(NamedTuple):
    """Who waits.

    Attributes
    ----------
    rank, job_at : ndarray of int, shape (jobs,)
        A job's place in the queue's order, and the job of a place.
    width : ndarray of int, shape (classes,)
        Widths, rising; the last tree is that of all jobs and has no width.
    kind, leaf : ndarray of int, shape (jobs,)
        A job's class, and its leaf there.
    ranks : ndarray of int, shape (jobs,)
        Ranks of the leaves by class.
    first, leaves, root : ndarray of int, shape (classes + 1,)
        Where a class begins in `ranks`, how many leaves its tree has (a power of 2), where its
        nodes begin in `least`: node 1 is the root, the children of n are 2 n and 2 n + 1.
    least : ndarray of int
        Shortest expected duration of those that wait below a node; `NEVER` where nobody does.
    """

    rank: Ints
    job_at: Ints
    width: Ints
    kind: Ints
    leaf: Ints
    ranks: Ints
    first: Ints
    leaves: Ints
    root: Ints
    least: Ints


def empty_trees(queue: Queue, order: Ints) -> Trees:
    """Nobody waits yet; `order` is that of the arrivals."""
    jobs = order.size
    arrival = np.empty(jobs, dtype=np.int64)
    arrival[order] = np.arange(jobs)
    job_at = np.lexsort((arrival, queue.key))
    rank = np.empty(jobs, dtype=np.int64)
    rank[job_at] = np.arange(jobs)
    width, kind = np.unique(queue.gpus, return_inverse=True)
    by_class = np.lexsort((rank, kind))
    counts = np.append(np.bincount(kind, minlength=width.size), jobs)
    first = np.cumsum(counts) - counts
    leaf = np.empty(jobs, dtype=np.int64)
    leaf[by_class] = np.arange(jobs) - first[kind[by_class]]
    leaves = 1 << np.array([int(count - 1).bit_length() for count in counts.tolist()])
    root = np.cumsum(2 * leaves) - 2 * leaves
    least = np.full(int(2 * leaves.sum()), NEVER)
    return Trees(rank, job_at, width, kind, leaf, rank[by_class], first, leaves, root, least)


@njit(cache=True)
def _set(trees: Trees, job: int, expected: int) -> None:
    """Let a job wait, or wait no more, which is `NEVER`, in both of its trees."""
    everybody = trees.width.size
    for turn in range(2):
        tree = trees.kind[job] if turn == 0 else everybody
        node = trees.leaves[tree] + (trees.leaf[job] if turn == 0 else trees.rank[job])
        root, least = trees.root[tree], trees.least
        least[root + node] = expected
        while node > 1:
            node //= 2
            shorter = min(least[root + 2 * node], least[root + 2 * node + 1])
            if least[root + node] == shorter:
                break
            least[root + node] = shorter


@njit(cache=True)
def _first_leaf(trees: Trees, tree: int, after: int, most: int) -> int:
    """First leaf from `after` on whose job waits and is expected to take at most so long; or -1."""
    root, least, leaves = trees.root[tree], trees.least, trees.leaves[tree]
    if after >= leaves:
        return -1
    node = leaves + after
    while least[root + node] > most:  # up to the first node that lies later and has one
        while node & 1:
            node >>= 1
            if node <= 1:
                return -1
        node += 1
    while node < leaves:
        node *= 2
        if least[root + node] > most:
            node += 1
    return node - leaves


@njit(cache=True)
def _next(trees: Trees, queue: Queue, after: int, room: int, spare: int, short: int) -> int:
    """Rank of the first job behind a rank that may fit, or -1.

    It is as wide as the room, has no failed width, and is wide as `spare` or takes at most `short`.
    """
    best, failed = -1, queue.failed
    for tree in range(trees.width.size):
        width = trees.width[tree]
        if width > room:
            break
        most = NEVER - 1 if width <= spare else short
        if failed[width] == failed[-1] or trees.least[trees.root[tree] + 1] > most:
            continue
        begin = trees.first[tree]
        ranks = trees.ranks[begin : begin + trees.first[tree + 1] - begin]
        leaf = _first_leaf(trees, tree, np.searchsorted(ranks, after, side="right"), most)
        if leaf >= 0 and (best < 0 or ranks[leaf] < best):
            best = ranks[leaf]
    return best


@njit(cache=True)
def _start_jobs(queue: Queue, trees: Trees, now: int, way: int) -> int:
    """Start what the policy starts now; as `queueing.start_jobs`."""
    gpus, failed, cluster = queue.gpus, queue.failed, queue.cluster
    everybody = trees.width.size
    room, started, rank = cluster.free.sum(), 0, -1
    failed[-1] += 1
    if way == SKIPPING:
        while room > 0:
            rank = _next(trees, queue, rank, room, room, 0)
            if rank < 0:
                break
            job = trees.job_at[rank]
            if place(cluster, job, gpus[job]):
                room -= gpus[job]
                started = start_job(queue, job, now, started)
                _set(trees, job, NEVER)
            else:
                failed[gpus[job]] = failed[-1]
        return started
    first = -1
    while True:
        rank = _first_leaf(trees, everybody, rank + 1, NEVER - 1)
        if rank < 0:
            return started
        first = trees.job_at[rank]
        if gpus[first] > room or not place(cluster, first, gpus[first]):
            break
        room -= gpus[first]
        started = start_job(queue, first, now, started)
        _set(trees, first, NEVER)
    if way == BACKFILLING and room > 0:
        until, spare = reservation(queue, first, now)
        cluster.number[first] = 0
        while room > 0:
            widest = np.minimum(cluster.free, spare).sum()
            rank = _next(trees, queue, rank, room, widest, until - now)
            if rank < 0:
                break
            job = trees.job_at[rank]
            short = now + queue.expected[job] <= until
            if place_beside(cluster, job, gpus[job], spare, short):
                room -= gpus[job]
                started = start_job(queue, job, now, started)
                _set(trees, job, NEVER)
    return started


def run_queue(
    sizes: Ints, submit: Ints, duration: Ints, gpus: Ints, key: Floats, expected: Ints, way: int
) -> tuple[Ints, Cluster]:
    """Replay a whole trace.

    Parameters
    ----------
    sizes : ndarray of int, shape (servers,)
        GPUs of each server.
    submit, duration, gpus, expected : ndarray of int, shape (jobs,)
        The jobs; `expected` is what a policy believes of the duration.
    key : ndarray, shape (jobs,)
        Order in the queue.
    way : int
        How the queue is gone through.

    Returns
    -------
    start : ndarray of int, shape (jobs,)
    cluster : Cluster
        Where each job stood: its ``offset, number, server, held``.
    """
    queue = empty_queue(sizes, key, gpus, expected)
    order = np.argsort(submit, kind="stable")
    if gpus.size > MANY_JOBS:
        return run_many(queue, order, submit, duration, way)
    return run_events(queue, order, submit, duration, way), queue.cluster


def run_many(
    queue: Queue, order: Ints, submit: Ints, duration: Ints, way: int
) -> tuple[Ints, Cluster]:
    """Replay a whole trace from an empty queue; `order` is that of the arrivals."""
    trees = empty_trees(queue, order)
    start = np.full(submit.size, -1)
    arrived = 0
    while arrived < order.size or queue.sizes[1]:
        arrived = _run(queue, trees, order, submit, duration, way, start, arrived, EVENTS_AT_ONCE)
    return start, queue.cluster


@njit(cache=True)
def _run(
    queue: Queue, trees: Trees, order: Ints, submit: Ints, duration: Ints, way: int, start: Ints,
    arrived: int, events: int,
) -> int:  # fmt: skip
    """Play so many events more; says how many jobs have arrived by then."""
    jobs = order.size
    ends = [(NEVER, np.int64(-1))]
    for index in range(queue.sizes[1]):
        job = queue.running[index]
        heapq.heappush(ends, (start[job] + duration[job], np.int64(job)))
    while events > 0 and (arrived < jobs or len(ends) > 1):
        events -= 1
        now = ends[0][0]
        if arrived < jobs:
            now = min(now, submit[order[arrived]])
        while ends[0][0] <= now:
            finish(queue, heapq.heappop(ends)[1])
        while arrived < jobs and submit[order[arrived]] <= now:
            _set(trees, order[arrived], queue.expected[order[arrived]])
            arrived += 1
        for index in range(_start_jobs(queue, trees, now, way)):
            job = queue.started[index]
            start[job] = now
            heapq.heappush(ends, (now + duration[job], np.int64(job)))
    return arrived
