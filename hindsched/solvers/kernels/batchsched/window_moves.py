"""Neighbourhoods of a whole schedule: take jobs out, put each back where it is cheapest.

What a job costs, and which servers it gets, `window_plan` says.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.batchsched.window_plan import (
    GIVE_BACK,
    TAKE,
    Cluster,
    Jobs,
    Plan,
    Prices,
    find,
    place,
    use,
)
from hindsched.solvers.kernels.draws import Words, below, unit
from hindsched.solvers.kernels.stable_order import copy_to, stable_order

MOST_REMOVED = 10
"""Jobs taken out at most."""
BANDS = 0.5
"""Share of the moves that clear a window of the pivot's length in its wait, not all of that."""
MULTIPLES = np.array([0.0, 0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4])
"""Multiples of the prices at which jobs are put back."""
LITTLE = 1e-9
"""Relative gain below which a plan is no better."""


@njit(cache=True)
def insert_all(
    order: Ints, budget: float, prices: Prices, plan: Plan, cluster: Cluster, jobs: Jobs,
    word: Words,
) -> tuple[int, float]:  # fmt: skip
    """Put jobs back one after the other within the budget: how many, their weighted completion."""
    ahead = 0.0
    for j in order:
        ahead += jobs.weight[j] * (jobs.arrival[j] + jobs.shortest[j] + 1)
    cost = 0.0
    for done, j in enumerate(order):
        ahead -= jobs.weight[j] * (jobs.arrival[j] + jobs.shortest[j] + 1)
        k, m, t = find(j, prices, cluster, jobs)
        if k < 0:
            return done, cost
        cost += jobs.weight[j] * (t + jobs.modes[k, 2] + 1)
        if cost + ahead > budget:
            return done, cost
        place(j, k, m, t, prices, plan, cluster, jobs, word)
        use(TAKE, j, plan, cluster, jobs)
    return len(order), cost


@njit(cache=True)
def smallest(keys: Floats, count: int) -> Ints:
    """Positions of the smallest keys in ascending order, of equal ones the first: few of many."""
    found, size = np.empty(count, np.int64), 0
    for position in range(keys.size):
        if size == count and keys[position] >= keys[found[size - 1]]:
            continue
        size = min(size + 1, count)
        at = size - 1
        while at > 0 and keys[position] < keys[found[at - 1]]:
            found[at] = found[at - 1]
            at -= 1
        found[at] = position
    return found


@njit(cache=True)
def choose(plan: Plan, jobs: Jobs, word: Words) -> Ints:
    """Jobs to take out, the pivot first: that has its way, or the order is by noisy density."""
    number = jobs.weight.shape[0]
    end = plan.what[:, 2].astype(np.float64)
    delay = np.empty(number)
    for j in range(number):
        delay[j] = jobs.weight[j] * (end[j] - jobs.arrival[j] - jobs.shortest[j])
    count = min(number, 1 + below(word, MOST_REMOVED))
    pivot = below(word, number)
    if unit(word) < 0.7:
        aim = unit(word) * delay.sum()
        for j in range(number):
            aim -= delay[j]
            if aim < 0:
                pivot = j
                break
    low, high = float(jobs.arrival[pivot]), end[pivot]
    if unit(word) < BANDS:
        length = min(high - low, (1.0 + unit(word)) * jobs.shortest[pivot])
        low += unit(word) * (high - low - length)
        high = low + length
    far = np.empty(number)
    for j in range(number):
        overlap = min(high, end[j]) - max(low, float(plan.what[j, 1]))
        far[j] = -np.log(1.0 - unit(word)) / (0.2 + max(0.0, overlap))
    far[pivot] = -1.0
    return smallest(far, count)


@njit(cache=True)
def improve(
    moves: int, heat: tuple[float, float], cost: Floats, plan: Plan, cluster: Cluster,
    prices: Prices, jobs: Jobs, word: Words,
) -> int:  # fmt: skip
    """Try moves of a plan until one makes it better than the best; return how many were tried.

    `heat` is the mean worsening that is accepted at the begin and at the end; `cost` holds what the
    plan and the best one cost.
    """
    what = np.empty((MOST_REMOVED, plan.what.shape[1]), np.int64)
    workers = np.empty((MOST_REMOVED, plan.workers.shape[1]), np.int32)
    for tried in range(moves):
        warm = heat[0] * (heat[1] / heat[0]) ** (tried / moves) if heat[0] > 0 else 0.0
        chosen = choose(plan, jobs, word)
        count = chosen.shape[0]
        before = 0.0
        keys = np.empty(count)
        for i in range(count):
            j = chosen[i]
            copy_to(what[i], plan.what[j])
            copy_to(workers[i], plan.workers[j])
            before += jobs.weight[j] * (plan.what[j, 2] + 1)
            use(GIVE_BACK, j, plan, cluster, jobs)
            keys[i] = -prices.density[j] * np.exp(unit(word) + unit(word) + unit(word))
        if unit(word) < 0.4:
            keys[0] = -np.inf
        order = chosen[stable_order(keys)]
        prices.multiple[0] = MULTIPLES[below(word, len(MULTIPLES))]
        budget = before - np.log(1.0 - unit(word)) * warm
        done, after = insert_all(order, budget, prices, plan, cluster, jobs, word)
        if done == count:
            cost[0] += after - before
            if cost[0] < cost[1] - LITTLE * abs(cost[1]):
                cost[1] = cost[0]
                return tried + 1
            continue
        for i in range(done):
            use(GIVE_BACK, order[i], plan, cluster, jobs)
        for i in range(count):
            copy_to(plan.what[chosen[i]], what[i])
            copy_to(plan.workers[chosen[i]], workers[i])
            use(TAKE, chosen[i], plan, cluster, jobs)
    return moves
