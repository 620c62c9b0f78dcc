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
def cheapest_on_super_server(
    arrival: int, rate: float, outside: float, duration: Ints, demand: Floats, prefix: Floats
) -> tuple[float, int, int]:
    """Cheapest (cost, mode, start) of one job; mode -1 stands for the outside option.

    Parameters
    ----------
    arrival : int
        First slot.
    rate : float
        Cost per slot of the completion t + L.
    outside : float
        Cost of the outside option.
    duration, demand : ndarray
        The job's modes by ascending duration.
    prefix : ndarray, shape (slots + 1, resources)
        Sums of the slots' prices; whatever lies behind them is free.
    """
    slots = prefix.shape[0] - 1
    resources = prefix.shape[1]
    best, best_mode, best_start = outside, -1, 0
    for k in range(duration.shape[0]):
        length = duration[k]
        if rate * (arrival + length) >= best:
            break
        for start in range(arrival, slots + 1):
            cost = rate * (start + length)
            if cost >= best:
                break
            end = min(start - 1 + length, slots)
            for r in range(resources):
                cost += demand[k, r] * (prefix[end, r] - prefix[start - 1, r])
            if cost < best:
                best, best_mode, best_start = cost, k, start
    return best, best_mode, best_start


@njit(cache=True)
def all_on_super_server(
    first_mode: Ints,
    arrival: Ints,
    rate: Floats,
    outside: Floats,
    duration: Ints,
    demand: Floats,
    prefix: Floats,
    values: Floats,
    use: Floats,
) -> None:
    """Cheapest costs of all jobs into `values`, their use into `use`, shape (slots, resources)."""
    for j in range(arrival.shape[0]):
        low, high = first_mode[j], first_mode[j + 1]
        best, mode, start = cheapest_on_super_server(
            arrival[j], rate[j], outside[j], duration[low:high], demand[low:high], prefix
        )
        values[j] = best
        if mode >= 0:
            for t in range(start - 1, min(start - 1 + duration[low + mode], use.shape[0])):
                for r in range(demand.shape[1]):
                    use[t, r] += demand[low + mode, r]
