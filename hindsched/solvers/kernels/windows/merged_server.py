"""Cheapest (mode, start) of jobs on one merged server, and cheapest slots of jobs in pieces.

In a slot a job in pieces runs in one of its ways (a rate of work and a demand), in a mix of them,
or not at all; so the price of work in a slot is the lower envelope of (rate, price of the demand),
which is convex. What a job needs up to an end is bought where work is cheapest. Mixing makes the
problem a relaxation, and its best response exact.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints

ROUNDING = 1e-15
"""Share of the work that each rate added may miss by rounding: a bound errs outward only."""


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


@njit(cache=True)
def _envelope(rate: Floats, cost: Floats, hull: Ints) -> int:
    """Ways on the lower envelope from (0, 0), by rising rate, written to `hull`; their number."""
    number = 0
    for k in range(len(rate)):
        # a way that is no faster than the last one is on the envelope only in its place
        while number:
            last = hull[number - 1]
            before_rate = rate[hull[number - 2]] if number > 1 else 0.0
            before_cost = cost[hull[number - 2]] if number > 1 else 0.0
            left = (cost[last] - before_cost) * (rate[k] - before_rate)
            right = (cost[k] - before_cost) * (rate[last] - before_rate)
            if left < right:
                break
            number -= 1
        hull[number] = k
        number += 1
    return number


@njit(cache=True)
def cheapest_merged_slots(
    first: int, work: float, rate: Floats, demand: Floats, values: Floats, prices: Floats,
    limit: float, used: Floats,
) -> tuple[float, int]:  # fmt: skip
    """Least cost of a job and the last slot it runs in; ``(limit, -1)`` if nothing is cheaper.

    A slot, 0-based from `first` on, in way k gives ``rate[k]``, ascending and above 0, of the
    `work` and uses ``demand[k]``, (ways, resources). ``values[t]`` is the cost of ending in t; it
    never falls. `prices` are at least 0, (slots, resources). The use of what is found is added to
    `used`, (slots, resources).
    """
    slots, resources = prices.shape
    hull = np.empty(len(rate), dtype=np.int64)
    best, end, threshold = limit, -1, 0.0
    bought, paid, added = 0.0, 0.0, 4
    dearest = [(0.0, 0.0)]
    for t in range(first, slots):
        if values[t] >= best:
            break
        cost = demand @ prices[t]
        number = _envelope(rate, cost, hull)
        before_rate = before_cost = 0.0
        for i in range(number):
            k = hull[i]
            size = rate[k] - before_rate
            if size <= 0.0:
                continue
            slope = (cost[k] - before_cost) / size
            heappush(dearest, (-slope, size))
            bought += size
            added += 2  # it may be taken back
            paid += size * slope
            before_rate, before_cost = rate[k], cost[k]
        while bought > work:
            slope, size = heappop(dearest)
            slope = -slope
            excess = bought - work
            if size > excess:
                heappush(dearest, (-slope, size - excess))
                size = excess
            bought -= size
            paid -= size * slope
            if size == excess:
                bought = work
        if bought >= work * (1.0 - ROUNDING * added) and values[t] + paid < best:
            best, end = values[t] + paid, t
            threshold = -dearest[0][0]
    if end < 0:
        return best, end
    left = work
    for exact in range(2):  # what is cheaper than the dearest work bought, then what is as dear
        for t in range(first, end + 1):
            cost = demand @ prices[t]
            number = _envelope(rate, cost, hull)
            before = -1
            for i in range(number):
                k = hull[i]
                size = rate[k] - (rate[before] if before >= 0 else 0.0)
                if size <= 0.0:
                    continue
                slope = (cost[k] - (cost[before] if before >= 0 else 0.0)) / size
                if (slope < threshold) if exact == 0 else (slope == threshold):
                    part = min(size, left) / size
                    left -= part * size
                    for r in range(resources):
                        old = demand[before, r] if before >= 0 else 0.0
                        used[t, r] += part * (demand[k, r] - old)
                before = k
    return best, end


@njit(cache=True)
def all_cheapest_merged_slots(
    begin: Ints, stop: Ints, first: Ints, work: Floats, rate: Floats, demand: Floats,
    values: Floats, prices: Floats, outside: Floats, costs: Floats, last: Ints, used: Floats,
) -> None:  # fmt: skip
    """Cost of jobs, at most `outside`, their last slots, 1-based, and use; as of the above."""
    for j in range(len(first)):
        low, high = begin[j], stop[j]
        costs[j], end = cheapest_merged_slots(
            first[j], work[j], rate[low:high], demand[low:high], values[j], prices, outside[j], used
        )
        last[j] = end + 1
