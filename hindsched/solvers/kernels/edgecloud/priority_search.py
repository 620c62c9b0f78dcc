"""Jobs placed one after another by priority, and the order improved by annealing: compiled.

A *pool* is the workers of one type that its jobs share. Job after job, in order of priority, takes
the slots that end its last chunk earliest, around those taken before; a chunk stays on its worker
and may be interrupted at the edge. A job goes where it ends first: to the edge and a limited cloud
together, wholly to the limited cloud, where its chunks are shorter, or wholly to an unlimited one,
where all run at once. So a schedule is an order, and for each job whether the edge is closed to it.

==================  ==========================================================================
``edge``            columns of edge workers; the others are workers of a limited cloud
``ready``           first slot that a job can use on a worker, of one job shape (W,)
``work``, ``chunks``  slots of one chunk; number of chunks
``busy``            whether a worker's slot is taken, shape (slots, W); slots beyond are free
``counts``          slots, then chunks, that a job takes on each worker, shape (W,)
==================  ==========================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Bools, Ints
from hindsched.solvers.kernels.stable_order import copy_to

NEVER = 1 << 40
"""End of a job where it cannot run."""
MIXED, LIMITED_CLOUD, UNLIMITED_CLOUD = 0, 1, 2
"""Where a job runs: on columns of any kind, or wholly in the cloud."""
NEAR = 6
"""Most places that most moves shift a job."""
SHARE_NEAR, SHARE_CLOUD = 0.7, 0.15
"""Share of the moves that shift a job by little, and of those that send it to the cloud or back."""


class PoolJobs(NamedTuple):
    """The jobs of a pool."""

    edge: int  # columns of edge workers, the first ones
    ready: Ints  # (J, W), `NEVER` where it cannot be uploaded
    work: Ints  # (J,)
    chunks: Ints  # (J,)
    cloud_work: Ints  # slots of a chunk of a job that is wholly in a limited cloud, (J,)
    cloud_end: Ints  # slot after the last in an unlimited cloud, `NEVER` if there is none, (J,)


class Order(NamedTuple):
    """Priorities of a pool's jobs, and which of them must go to the cloud if they can."""

    jobs: Ints  # positions in the pool, the first placed first, (J,)
    in_cloud: Bools  # by position in the pool, (J,)


@njit(cache=True, nogil=True)
def earliest_end(
    busy: Bools, edge: int, ready: Ints, work: int, chunks: int, counts: Ints, limit: int
) -> int:
    """First slot after a job's chunks on these workers, or `limit` if it is not earlier.

    Fills `counts` with the slots that are free on each worker until then.
    """
    counts[:] = 0
    if ready.size == 0:
        return limit
    done = 0
    slot = ready.min()
    while done < chunks:
        if slot >= limit:
            return limit
        for w in range(ready.size):
            if slot < ready[w]:
                continue
            if not busy[slot, w]:
                counts[w] += 1
                if counts[w] % work == 0:
                    done += 1
            elif w >= edge:  # nothing is interrupted in the cloud
                counts[w] -= counts[w] % work
        slot += 1
    return slot


@njit(cache=True, nogil=True)
def occupy(busy: Bools, edge: int, ready: Ints, work: int, chunks: int, counts: Ints) -> None:
    """Take the first free slots for as many chunks as `counts` allows, `chunks` in all.

    Leaves in `counts` the chunks on each worker.
    """
    counts //= work
    spare = counts.sum() - chunks
    for w in range(ready.size - 1, -1, -1):
        if spare > 0 and counts[w] > 0:  # at most one a worker is more than needed
            counts[w] -= 1
            spare -= 1
    for w in range(ready.size):
        left, slot = counts[w] * work, ready[w]
        while left > 0:
            if w >= edge and left % work == 0 and busy[slot : slot + work, w].any():
                slot += 1
                continue
            if not busy[slot, w]:
                busy[slot, w] = True
                left -= 1
            slot += 1


@njit(cache=True, nogil=True)
def place_job(
    pool: PoolJobs, job: int, in_cloud: bool, busy: Bools, counts: Ints
) -> tuple[int, int]:
    """Place one job where it ends first: the slot after its last, and `MIXED` or which cloud.

    But for `UNLIMITED_CLOUD`, `counts` says how many chunks are on each worker.
    """
    edge, ready = pool.edge, pool.ready[job]
    work, chunks, cloud_work = pool.work[job], pool.chunks[job], pool.cloud_work[job]
    end, place = pool.cloud_end[job], UNLIMITED_CLOUD
    if edge < ready.size and cloud_work < work:
        found = earliest_end(
            busy[:, edge:], 0, ready[edge:], cloud_work, chunks, counts[edge:], end
        )
        if found < end:
            end, place = found, LIMITED_CLOUD
    if not in_cloud or end == NEVER:
        found = earliest_end(busy, edge, ready, work, chunks, counts, end)
        if found < end:
            occupy(busy, edge, ready, work, chunks, counts)
            return found, MIXED
    if place == LIMITED_CLOUD:
        counts[:edge] = 0
        earliest_end(busy[:, edge:], 0, ready[edge:], cloud_work, chunks, counts[edge:], end)
        occupy(busy[:, edge:], 0, ready[edge:], cloud_work, chunks, counts[edge:])
    return end, place


@njit(cache=True, nogil=True)
def place_in_order(pool: PoolJobs, order: Order, busy: Bools, counts: Ints, ends: Ints) -> int:
    """Place all jobs on free workers; fill `ends` and return their sum."""
    busy[:] = False
    total = 0
    for j in order.jobs:
        ends[j], _ = place_job(pool, j, order.in_cloud[j], busy, counts)
        total += ends[j]
    return total


@njit(cache=True, nogil=True)
def anneal(
    pool: PoolJobs, busy: Bools, order: Order, current: int, best_order: Order, best: int,
    draws: np.random.Generator, moves: int, hot: float, cold: float,
) -> tuple[int, int]:  # fmt: skip
    """Try `moves` changes of the order while the temperature falls from `hot` to `cold`.

    Changes `order` in place, and `best_order` where it is beaten; returns the present and the best
    sum of ends.
    """
    jobs, columns = pool.ready.shape
    has_cloud = pool.cloud_end.min() < NEVER or pool.edge < columns
    counts, ends = np.zeros(columns, np.int64), np.zeros(jobs, np.int64)
    new = Order(order.jobs.copy(), order.in_cloud.copy())
    for move in range(moves):
        temperature = hot + (cold - hot) * move / moves
        copy_to(new.jobs, order.jobs)
        copy_to(new.in_cloud, order.in_cloud)
        job = int(draws.random() * jobs)
        if has_cloud and draws.random() < SHARE_CLOUD:
            new.in_cloud[job] = not order.in_cloud[job]
        else:
            place = int(draws.random() * jobs)
            if draws.random() < SHARE_NEAR:
                place = job + int(draws.random() * (2 * NEAR + 1)) - NEAR
                place = max(0, min(jobs - 1, place))
            if job < place:
                copy_to(new.jobs[job:place], order.jobs[job + 1 : place + 1])
            else:
                copy_to(new.jobs[place + 1 : job + 1], order.jobs[place:job])
            new.jobs[place] = order.jobs[job]
        found = place_in_order(pool, new, busy, counts, ends)
        if found > current and draws.random() >= np.exp((current - found) / temperature):
            continue
        current = found
        copy_to(order.jobs, new.jobs)
        copy_to(order.in_cloud, new.in_cloud)
        if found < best:
            best = found
            copy_to(best_order.jobs, order.jobs)
            copy_to(best_order.in_cloud, order.in_cloud)
    return current, best
