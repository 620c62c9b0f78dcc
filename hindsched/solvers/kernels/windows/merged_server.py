"""Cheapest (mode, start) of jobs on one merged server."""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints


@njit(cache=True)
def undominated_rows(demand: Floats) -> Ints:
    """Rows of (choices, resources) that are no earlier row's equal or more in every resource."""
    kept = np.empty(demand.shape[0], dtype=np.int64)
    count = 0
    for i in range(demand.shape[0]):
        fresh = True
        for k in kept[:count]:
            above = True
            for r in range(demand.shape[1]):
                above = above and demand[k, r] <= demand[i, r]
            if above:
                fresh = False
                break
        if fresh:
            kept[count] = i
            count += 1
    return kept[:count]


@njit(cache=True)
def cheapest_on_merged_server(
    first: int, rate: float, ends: Floats, outside: float, duration: Ints, demand: Floats,
    prefix: Floats,
) -> tuple[float, int, int]:  # fmt: skip
    """Cheapest (cost, mode, start) of one job; mode -1 stands for `outside`, at that cost.

    With ``rate * ends[last]`` the cost of ending in a slot, 1-based; it never falls. Modes come by
    ascending duration. `prefix` has the sums of the slots' prices, (slots + 1, resources); what
    lies behind them is free, as far as `ends` goes.
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
    begin: Ints, stop: Ints, first: Ints, rate: Floats, ends: Floats, row: Ints, outside: Floats,
    duration: Ints, demand: Floats, prefix: Floats, costs: Floats, last: Ints, use: Floats,
) -> None:  # fmt: skip
    """Cheapest costs of jobs, their last slots, 0 for `outside`, and their use, (slots, resources).

    Job j has the modes ``begin[j]`` to ``stop[j]``, and ``ends[row[j]]`` is what
    `cheapest_on_merged_server` takes of it.
    """
    for j in range(first.shape[0]):
        low, high, by_end = begin[j], stop[j], ends[row[j]]
        costs[j], mode, start = cheapest_on_merged_server(
            first[j], rate[j], by_end, outside[j], duration[low:high], demand[low:high], prefix
        )
        if mode >= 0:
            last[j] = start - 1 + duration[low + mode]
            for t in range(start - 1, min(last[j], use.shape[0])):
                for r in range(demand.shape[1]):
                    use[t, r] += demand[low + mode, r]
