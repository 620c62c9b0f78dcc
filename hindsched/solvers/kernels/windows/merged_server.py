"""Cheapest (mode, start) of jobs on one merged server, and the modes worth keeping there."""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Bools, Floats, Ints


@njit(cache=True)
def undominated(duration: Ints, demand: Floats) -> Bools:
    """Which modes have no other one that is as short and as small in every resource.

    Parameters
    ----------
    duration : ndarray of int, shape (modes,)
        Sorted in ascending order.
    demand : ndarray, shape (modes, resources)
        Resources in each slot; among equal durations a smaller sum should come first.
    """
    count, resources = demand.shape
    keep = np.zeros(count, dtype=np.bool_)
    kept = np.empty(count, dtype=np.int64)
    number = 0
    for i in range(count):
        dominated = False
        for k in range(number):
            smaller = True
            for r in range(resources):
                if demand[kept[k], r] > demand[i, r]:
                    smaller = False
                    break
            if smaller:
                dominated = True
                break
        if not dominated:
            keep[i] = True
            kept[number] = i
            number += 1
    return keep


@njit(cache=True)
def cheapest_on_merged_server(
    first: int,
    rate: float,
    ends: Floats,
    outside: float,
    duration: Ints,
    demand: Floats,
    prefix: Floats,
) -> tuple[float, int, int]:
    """Cheapest (cost, mode, start) of one job; mode -1 stands for what it may do instead.

    Parameters
    ----------
    first : int
        First slot.
    rate, ends : float and ndarray
        ``rate * ends[last]`` is the cost of ending in a slot, 1-based; it never falls.
    outside : float
        Cost of what the job may do instead.
    duration, demand : ndarray
        The job's modes by ascending duration.
    prefix : ndarray, shape (slots + 1, resources)
        Sums of the slots' prices; whatever lies behind them is free, as far as `ends` goes.
    """
    slots, resources = prefix.shape[0] - 1, prefix.shape[1]
    best, best_mode, best_start = outside, -1, 0
    for k in range(duration.shape[0]):
        for start in range(first, slots + 1):
            last = start - 1 + duration[k]
            if last >= ends.shape[0] or rate * ends[last] >= best:
                break
            cost, end = rate * ends[last], min(last, slots)
            for r in range(resources):
                cost += demand[k, r] * (prefix[end, r] - prefix[start - 1, r])
            if cost < best:
                best, best_mode, best_start = cost, k, start
    return best, best_mode, best_start


@njit(cache=True)
def all_on_merged_server(
    first_mode: Ints,
    first: Ints,
    rate: Floats,
    ends: Floats,
    row: Ints,
    outside: Floats,
    duration: Ints,
    demand: Floats,
    prefix: Floats,
    values: Floats,
    use: Floats,
) -> None:
    """Cheapest costs of all jobs into `values`, their use into `use`, shape (slots, resources).

    ``ends[row[j]]`` is what `cheapest_on_merged_server` takes of job j.
    """
    for j in range(first.shape[0]):
        low, high = first_mode[j], first_mode[j + 1]
        values[j], mode, start = cheapest_on_merged_server(
            first[j],
            rate[j],
            ends[row[j]],
            outside[j],
            duration[low:high],
            demand[low:high],
            prefix,
        )
        if mode >= 0:
            for t in range(start - 1, min(start - 1 + duration[low + mode], use.shape[0])):
                for r in range(demand.shape[1]):
                    use[t, r] += demand[low + mode, r]
