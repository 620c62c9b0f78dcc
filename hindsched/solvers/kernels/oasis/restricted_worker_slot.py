"""The worker-slot program under limits on a job's workers, PSs and end.

The same program as in ``worker_slot.py``, at full capacity, for schedules of which a branching has
fixed something: the end slot lies in a window, the workers of a slot and the workers or PSs on a
server in a slot lie between two numbers. Schedules are exact: they make `total` worker-slots, no
more, run at least one worker in their end slot, and use exactly the PSs that the workers need.
Leaving out others loses nothing: dropping idle workers and PSs keeps a schedule feasible.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.solvers.kernels.limited_servers import fill_limited, limited_prefix
from hindsched.solvers.kernels.placement import NOTHING
from hindsched.solvers.kernels.stable_order import stable_order


@njit(cache=True, nogil=True)
def unit_prices(side, t, price_of):
    """Price of one unit on every server in slot index `t`."""
    for h in range(price_of.shape[0]):
        total = 0.0
        for r in range(side.demand.shape[0]):
            if side.demand[r] > 0.0:
                total += side.prices[h, r, t] * side.demand[r]
        price_of[h] = total


@njit(cache=True, nogil=True)
def best_limited_schedule(
    workers, ps, task, first_end, last_end, in_slot, on_worker, on_ps, worker_counts, ps_counts
):
    """Find the best schedule of one job within limits.

    Parameters
    ----------
    workers, ps, task
        As in ``worker_slot.best_schedule``, at full capacity.
    first_end, last_end : int
        The completion slot lies between them, both inclusive and in 1..T.
    in_slot : Range, shape (T,)
        Limits on the workers of each slot.
    on_worker, on_ps : Range, shape (T, H), (T, K)
        Limits on the workers and PSs on each server in each slot.
    worker_counts, ps_counts : int array, shape (T, H), (T, K)
        Receive the schedule.

    Returns
    -------
    payoff : float
        Best payoff; -inf if there is no schedule.
    end : int
        Completion slot, 0 if there is none.
    """
    needed, _, total, utilities, arrival = task
    most = needed.shape[0] - 1
    width = total + 1
    table = np.full((last_end + 1, width), np.inf)
    costs = np.full((last_end + 1, most + 1), np.inf)
    worker_price = np.empty(workers.room.shape[0])
    ps_price = np.empty(ps.room.shape[0])
    ps_cost = np.empty(needed[most] + 1)
    worker_most = np.minimum(workers.room, on_worker.high)
    ps_most = np.minimum(ps.room, on_ps.high)
    best, end = -np.inf, 0
    table[arrival - 1, 0] = 0.0
    reached = 0
    for t in range(arrival, last_end + 1):
        cost, old, new = costs[t], table[t - 1], table[t]
        unit_prices(workers, t - 1, worker_price)
        unit_prices(ps, t - 1, ps_price)
        order = stable_order(worker_price)
        limited_prefix(NOTHING, on_worker.low[t - 1], worker_most[t - 1], worker_price, order, cost)
        order = stable_order(ps_price)
        limited_prefix(NOTHING, on_ps.low[t - 1], ps_most[t - 1], ps_price, order, ps_cost)
        for n in range(most + 1):
            if in_slot.low[t - 1] <= n <= in_slot.high[t - 1]:
                cost[n] += ps_cost[needed[n]]
            else:
                cost[n] = np.inf
        if t >= first_end:
            cheapest = np.inf
            for n in range(1, min(most, total) + 1):
                cheapest = min(cheapest, old[total - n] + cost[n])
            if utilities[t] - cheapest > best:
                best, end = utilities[t] - cheapest, t
        least = max(0, total - most * (last_end - t))
        before = reached
        reached = min(total, reached + most)
        for n in range(most + 1):
            c = cost[n]
            if c == np.inf:
                continue
            first = max(least, n)
            for s in range(first, min(reached, before + n) + 1):
                new[s] = min(new[s], old[s - n] + c)
    if end == 0:
        return -np.inf, 0
    worker_counts[:] = 0
    ps_counts[:] = 0
    s = total
    for t in range(end, arrival - 1, -1):
        chosen = -1
        value = np.inf
        for n in range(1 if t == end else 0, min(most, s) + 1):
            if table[t - 1, s - n] + costs[t, n] < value:
                value = table[t - 1, s - n] + costs[t, n]
                chosen = n
        unit_prices(workers, t - 1, worker_price)
        unit_prices(ps, t - 1, ps_price)
        order = stable_order(worker_price)
        fill_limited(
            NOTHING, on_worker.low[t - 1], worker_most[t - 1], order, chosen, worker_counts[t - 1]
        )
        order = stable_order(ps_price)
        fill_limited(
            NOTHING, on_ps.low[t - 1], ps_most[t - 1], order, needed[chosen], ps_counts[t - 1]
        )
        s -= chosen
    return best, end
