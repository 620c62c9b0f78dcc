"""Policies that never pause a job: a queue in an order of its own, decided at every event.

Ways of going through the queue, in order of key and then of submission: ``BLOCKING`` starts jobs
from the head until one does not fit (strict FIFO where the key is the submission); ``SKIPPING``
every job that fits (first fit); ``BACKFILLING`` from the head until one does not fit: it gets a
reservation at the earliest time at which the running jobs, by their expected ends, leave room for
it, and a later job starts only if it fits and is expected to end by then or stands on GPUs that the
reservation does not need (EASY: Lifka 1995).

Where a gang stands: one pool is one server that has all GPUs. Small gangs take the fullest server
that holds them (the first of equals), large ones whole free servers, largest first, and the fullest
server that holds the remainder: on an empty cluster that fits every gang no larger than it.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.gang.instance import GangInstance
from hindsched.solvers.kernels.gang.orders import FOREVER
from hindsched.solvers.kernels.stable_order import copy_to

BLOCKING, SKIPPING, BACKFILLING = 0, 1, 2


class Cluster(NamedTuple):
    """Free GPUs and what each job holds."""

    sizes: Ints  # GPUs of each server, (servers,)
    free: Ints  # those that are free, (servers,)
    by_size: Ints  # servers, largest first, (servers,)
    # where a job's places stand in `server` and `held`; no places: it holds nothing, (jobs,)
    offset: Ints
    number: Ints
    server: Ints  # a job's servers and the GPUs it holds there. Grows; `used` counts, (places,)
    held: Ints
    used: Ints  # entries of `server` in use, (1,)


def cluster_sizes(instance: GangInstance) -> Ints:
    """GPUs by server where that matters; one number for a pool."""
    if instance.is_consolidated:
        return instance.server_gpus
    return np.array([instance.total_gpus])


def empty_cluster(sizes: Ints, jobs: int, places: int) -> Cluster:
    """A free cluster with room for so many jobs, each placed once, and so many places in all."""
    count = np.zeros(jobs, dtype=np.int64)
    columns = (np.zeros(places, dtype=np.int64), np.zeros(places, dtype=np.int64))
    by_size = np.argsort(-sizes, kind="stable")
    free, used = sizes.copy(), np.zeros(1, dtype=np.int64)
    return Cluster(sizes, free, by_size, count.copy(), count, *columns, used)


def padded(array: Ints, size: int, value: int = 0) -> Ints:
    """The array with new entries behind the old ones."""
    return np.concatenate([array, np.full(size - array.size, value, dtype=array.dtype)])


def enlarged_cluster(cluster: Cluster, jobs: int, places: int) -> Cluster:
    """The same cluster with room for more jobs and places."""
    return cluster._replace(
        offset=padded(cluster.offset, jobs),
        number=padded(cluster.number, jobs),
        server=padded(cluster.server, places),
        held=padded(cluster.held, places),
    )


def most_places(sizes: Ints, gpus: Ints) -> Ints:
    """Most servers on which each gang can stand."""
    return np.where(gpus <= sizes.max(), 1, np.minimum(gpus, sizes.size))


@njit(cache=True)
def place(cluster: Cluster, job: int, gpus: int) -> bool:
    """Book a gang's GPUs if they fit; says whether."""
    free, sizes = cluster.free, cluster.sizes
    at = cluster.used[0]
    left, number = gpus, 0
    if gpus > sizes[cluster.by_size[0]]:
        for server in cluster.by_size:
            if free[server] == sizes[server] and sizes[server] <= left:
                cluster.server[at + number] = server
                cluster.held[at + number] = sizes[server]
                free[server] = 0
                left -= sizes[server]
                number += 1
    if left > 0:
        best = -1
        for server in range(sizes.size):
            if free[server] >= left and (best < 0 or free[server] < free[best]):
                best = server
        if best < 0:
            for index in range(at, at + number):
                free[cluster.server[index]] += cluster.held[index]
            return False
        cluster.server[at + number] = best
        cluster.held[at + number] = left
        free[best] -= left
        number += 1
    cluster.offset[job] = at
    cluster.number[job] = number
    cluster.used[0] = at + number
    return True


@njit(cache=True)
def release(cluster: Cluster, job: int) -> None:
    """Give a job's GPUs back; where it stood is kept."""
    for index in range(cluster.offset[job], cluster.offset[job] + cluster.number[job]):
        cluster.free[cluster.server[index]] += cluster.held[index]


class Queue(NamedTuple):
    """A policy's state."""

    cluster: Cluster  # free GPUs and placements
    key: Floats  # smaller goes first; equal keys in order of position, (jobs,)
    gpus: Ints  # GPUs of each job, (jobs,)
    expected: Ints  # for how many slots it is expected to run, (jobs,)
    waiting: Ints  # waiting jobs in order; the first ``sizes[0]``, (jobs,)
    running: Ints  # running jobs by expected end; the first ``sizes[1]``, (jobs,)
    end: Ints  # expected end of each running job, (jobs,)
    started: Ints  # jobs started in this event, (jobs,)
    sizes: Ints  # number of waiting and of running jobs, (2,)
    # serial number of the last pass in which a gang of that size did not fit, (GPUs + 1,)
    failed: Ints


def empty_queue(sizes: Ints, key: Floats, gpus: Ints, expected: Ints) -> Queue:
    """A free cluster and an empty queue for jobs that become known later."""
    jobs = gpus.size
    cluster = empty_cluster(sizes, jobs, int(most_places(sizes, gpus).sum()) + sizes.size)
    waiting, running, end, started = np.zeros((4, jobs), dtype=np.int64)
    failed = np.full(int(sizes.sum()) + 2, -1)  # the last entry numbers the passes
    counts = np.zeros(2, dtype=np.int64)
    return Queue(cluster, key, gpus, expected, waiting, running, end, started, counts, failed)


def enlarged_queue(queue: Queue, jobs: int, places: int) -> Queue:
    """The same queue with room for more jobs and places."""
    columns: dict[str, Any] = {
        name: padded(getattr(queue, name), jobs)
        for name in ("key", "gpus", "expected", "waiting", "running", "end", "started")
    }
    return queue._replace(cluster=enlarged_cluster(queue.cluster, jobs, places), **columns)


@njit(cache=True)
def pass_event(queue: Queue, now: int, way: int, ended: Ints, arrived: Ints) -> int:
    """One event: jobs end, jobs arrive, jobs start; says how many, which are in `started`."""
    for job in ended:
        finish(queue, job)
    for job in arrived:
        enqueue(queue, job)
    return int(start_jobs(queue, now, way))


@njit(cache=True)
def enqueue(queue: Queue, job: int) -> None:
    """Put a job into the queue, behind equal keys."""
    waiting, key = queue.waiting, queue.key
    low, high = 0, queue.sizes[0]
    while low < high:
        middle = (low + high) // 2
        if key[waiting[middle]] <= key[job]:
            low = middle + 1
        else:
            high = middle
    for index in range(queue.sizes[0], low, -1):
        waiting[index] = waiting[index - 1]
    waiting[low] = job
    queue.sizes[0] += 1


@njit(cache=True)
def finish(queue: Queue, job: int) -> None:
    """A running job is complete."""
    release(queue.cluster, job)
    running, size = queue.running, queue.sizes[1]
    index = 0
    while running[index] != job:
        index += 1
    for later in range(index, size - 1):
        running[later] = running[later + 1]
    queue.sizes[1] -= 1


@njit(cache=True)
def start_job(queue: Queue, job: int, now: int, started: int) -> int:
    """Put a placed job among the running and the started ones; says how many those are."""
    end = now + queue.expected[job]
    queue.end[job] = end
    running, index = queue.running, queue.sizes[1]
    while index > 0 and queue.end[running[index - 1]] > end:
        running[index] = running[index - 1]
        index -= 1
    running[index] = job
    queue.sizes[1] += 1
    queue.started[started] = job
    return started + 1


@njit(cache=True)
def start_jobs(queue: Queue, now: int, way: int) -> int:
    """Start what the policy starts now; says how many, their positions are in `started`."""
    waiting, gpus, failed = queue.waiting, queue.gpus, queue.failed
    size = queue.sizes[0]
    room = queue.cluster.free.sum()
    head = kept = 0
    started: Any = np.int64(0)  # a literal 0 would be a type of its own, compiled once more
    if way != SKIPPING:
        while head < size and gpus[waiting[head]] <= room:
            job = waiting[head]
            if not place(queue.cluster, job, gpus[job]):
                break
            room -= gpus[job]
            started = start_job(queue, job, now, started)
            head += 1
    if way == SKIPPING and room > 0:
        failed[-1] += 1
        while head < size and room > 0:
            job = waiting[head]
            head += 1
            width = gpus[job]
            if width <= room and failed[width] != failed[-1]:
                if place(queue.cluster, job, width):
                    room -= width
                    started = start_job(queue, job, now, started)
                    continue
                failed[width] = failed[-1]
            waiting[kept] = job
            kept += 1
    elif way == BACKFILLING and room > 0 and head < size - 1:
        kept, head, started = _backfill(queue, now, head, started)
    if head > kept:
        for index in range(head, size):
            waiting[kept + index - head] = waiting[index]
        queue.sizes[0] = kept + size - head
    return started


@njit(cache=True)
def reservation(queue: Queue, job: int, now: int) -> tuple[int, Ints]:
    """When a job that does not fit now can start, and GPUs left free by it then, by server."""
    cluster = queue.cluster
    used, free = cluster.used[0], cluster.free.copy()
    index, until = 0, now
    fits = False
    while not fits:
        until = max(now, queue.end[queue.running[index]])
        while index < queue.sizes[1] and max(now, queue.end[queue.running[index]]) == until:
            release(cluster, queue.running[index])
            index += 1
        fits = place(cluster, job, queue.gpus[job])
    spare = cluster.free.copy()
    copy_to(cluster.free, free)
    cluster.used[0] = used
    return until, spare


@njit(cache=True)
def _backfill(queue: Queue, now: int, head: int, started: int) -> tuple[int, int, int]:
    """Start later jobs that do not delay the head; (kept, next position, started)."""
    cluster, waiting, gpus = queue.cluster, queue.waiting, queue.gpus
    first = waiting[head]
    until, spare = reservation(queue, first, now)
    cluster.number[first] = 0
    waiting[0] = first
    kept = 1
    size = queue.sizes[0]
    room = cluster.free.sum()
    index = head + 1
    while index < size and room > 0:
        job = waiting[index]
        index += 1
        if gpus[job] <= room:
            short = now + queue.expected[job] <= until
            if place_beside(cluster, job, gpus[job], spare, short):
                room -= gpus[job]
                started = start_job(queue, job, now, started)
                continue
        waiting[kept] = job
        kept += 1
    return kept, index, started


@njit(cache=True)
def place_beside(cluster: Cluster, job: int, gpus: int, spare: Ints, short: bool) -> bool:
    """Place a job that ends before the reservation, or on GPUs that it does not need."""
    if short:
        return place(cluster, job, gpus)
    free = cluster.free.copy()
    for server in range(free.size):
        cluster.free[server] = min(free[server], spare[server])
    fits = place(cluster, job, gpus)
    copy_to(cluster.free, free)
    if fits:
        for index in range(cluster.offset[job], cluster.offset[job] + cluster.number[job]):
            server = cluster.server[index]
            cluster.free[server] -= cluster.held[index]
            spare[server] -= cluster.held[index]
    return fits


def run_queue(
    sizes: Ints, submit: Ints, duration: Ints, gpus: Ints, key: Floats, expected: Ints, way: int
) -> tuple[Ints, Cluster]:
    """Replay a whole trace: starts, (jobs,), and the cluster's ``offset, number, server, held``.

    `expected` is what a policy believes of the duration; smaller keys come first.
    """
    queue = empty_queue(sizes, key, gpus, expected)
    order = np.argsort(submit, kind="stable")
    return run_events(queue, order, submit, duration, way), queue.cluster


def run_queue_beside(
    sizes: Ints, until: Ints, places: tuple[Ints, Ints, Ints], submit: Ints, duration: Ints,
    gpus: Ints, key: Floats,
) -> tuple[Ints, Cluster]:  # fmt: skip
    """Start whatever fits, smallest key first, on servers of which jobs hold a part already.

    Those jobs are the first, hold (job, server, GPUs) of `places` and end at `until`; their start
    is -1. The cluster says where each job stands.
    """
    queue = empty_queue(sizes, key, gpus, duration)
    job, server, held = places
    cluster = enlarged_cluster(queue.cluster, gpus.size, queue.cluster.server.size + job.size)
    cluster.server[: job.size], cluster.held[: job.size] = server, held
    cluster.number[:] = np.bincount(job, minlength=gpus.size)
    cluster.offset[:] = np.cumsum(cluster.number) - cluster.number
    cluster.used[0] = job.size
    np.subtract.at(cluster.free, server, held)
    queue = queue._replace(cluster=cluster)
    queue.end[: until.size] = until
    queue.running[: until.size] = np.argsort(until, kind="stable")
    queue.sizes[1] = until.size
    order = until.size + np.argsort(submit[until.size :], kind="stable")
    return run_events(queue, order, submit, duration, SKIPPING), cluster


@njit(cache=True)
def run_events(queue: Queue, order: Ints, submit: Ints, duration: Ints, way: int) -> Ints:
    """Play jobs in the order of their submission, event by event; their starts."""
    jobs = order.size
    start = np.full(submit.size, -1)
    ends = [(FOREVER, np.int64(-1))]
    for index in range(queue.sizes[1]):
        heapq.heappush(ends, (queue.end[queue.running[index]], queue.running[index]))
    arrived = 0
    while arrived < jobs or len(ends) > 1:
        now = ends[0][0]
        if arrived < jobs:
            now = min(now, submit[order[arrived]])
        while ends[0][0] <= now:
            finish(queue, heapq.heappop(ends)[1])
        while arrived < jobs and submit[order[arrived]] <= now:
            enqueue(queue, order[arrived])
            arrived += 1
        for index in range(start_jobs(queue, now, way)):
            job = queue.started[index]
            start[job] = now
            heapq.heappush(ends, (now + duration[job], np.int64(job)))
    return start
