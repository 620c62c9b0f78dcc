"""The best order of few jobs: every move of one job in the order, until none is better."""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.gang.orders import Jobs, place_in_order, total_cost
from hindsched.solvers.kernels.stable_order import copy_to


@njit(cache=True, nogil=True)
def _cost(order: Ints, jobs: Jobs, room: int, makespan: bool, work: Ints, start: Ints) -> float:
    place_in_order(order, jobs.submit, jobs.duration, jobs.gpus, room, work[0], work[1], start)
    if not makespan:
        return total_cost(jobs, start)
    last = 0
    for job in range(start.size):
        last = max(last, start[job] + jobs.duration[job])
    return float(last)


@njit(cache=True, nogil=True)
def _improve(
    order: Ints, jobs: Jobs, room: int, makespan: bool, most: int, work: Ints, start: Ints
) -> tuple[float, int]:
    """Move one job to another place in the order while that costs less; the cost, the tries."""
    count = order.size
    cost = _cost(order, jobs, room, makespan, work, start)
    tried, better = 1, True
    while better and tried < most:
        better = False
        for first in range(count):
            for second in range(count):
                if first == second or tried >= most:
                    continue
                _move(order, first, second)
                tried += 1
                found = _cost(order, jobs, room, makespan, work, start)
                if found < cost:
                    cost, better = found, True
                else:
                    _move(order, second, first)
    return cost, tried


@njit(cache=True, nogil=True)
def _move(order: Ints, first: int, second: int) -> None:
    job = order[first]
    step = 1 if second > first else -1
    for index in range(first, second, step):
        order[index] = order[index + step]
    order[second] = job


@njit(cache=True, nogil=True)
def _search(
    orders: Ints, jobs: Jobs, room: int, makespan: bool, restarts: int, most: int, enough: float
) -> tuple[Ints, int]:
    count = orders.shape[1]
    work = np.empty((2, 4 * count + 64), dtype=np.int64)
    start = np.empty(count, dtype=np.int64)
    best = orders[0].copy()
    least, tried = np.inf, 0
    state = np.uint64(88172645463325252)
    for number in range(orders.shape[0] + restarts):
        if tried >= most or least <= enough:
            break
        if number < orders.shape[0]:
            order = orders[number].copy()
        else:  # the best order with a few jobs moved by chance
            order = best.copy()
            for _ in range(3):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                first = np.int64(state % np.uint64(count))
                second = np.int64((state >> np.uint64(20)) % np.uint64(count))
                _move(order, first, second)
        cost, more = _improve(order, jobs, room, makespan, most - tried, work, start)
        tried += more
        if cost < least:
            least = cost
            copy_to(best, order)
    place_in_order(best, jobs.submit, jobs.duration, jobs.gpus, room, work[0], work[1], start)
    return start, tried


def best_small_order(
    orders: Ints,
    jobs: Jobs,
    room: int,
    *,
    makespan: bool,
    restarts: int,
    most: int,
    enough: float,
) -> tuple[Ints, int]:
    """Starts of the best schedule found from some orders, and how many orders were placed.

    Parameters
    ----------
    orders : ndarray of int, shape (orders, jobs)
        Orders to begin from.
    jobs : Jobs
        The jobs.
    room : int
        GPUs of the pool.
    makespan : bool
        Whether the last completion counts instead of the jobs' own costs.
    restarts : int
        How often the best order is shaken and improved again.
    most : int
        Orders placed in all.
    enough : float
        A cost that is known to be the least ends the search.
    """
    orders = np.ascontiguousarray(orders)
    return _search(orders, jobs, room, makespan, restarts, most, enough)
