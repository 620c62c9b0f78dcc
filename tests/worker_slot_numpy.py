"""The worker-slot program in plain numpy: the twin that tests compare with ``worker_slot.py``.

Written to be read, without prunings: every slot's costs, every state. Ties are the same: cheaper
servers first, equal prices in order; the earliest of equally good ends; the fewest workers from the
last slot back.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints

TOLERANCE = 1e-9


def units_that_fit(room: Ints, residual: Floats | None, demand: Floats) -> Ints:
    """Units by server that fit in one slot, given what is left, shape (H,) and (H, R)."""
    if residual is None:
        return room
    needed = np.flatnonzero(demand > 0)
    if needed.size == 0:
        return room
    fits = np.floor(residual[:, needed] / demand[needed] + TOLERANCE).min(axis=1)
    return np.clip(np.minimum(room, fits), 0, None).astype(np.int64)


def cheapest_units(prices: Floats, fits: Ints, most: int) -> tuple[Ints, Floats]:
    """Server of each of the cheapest units in order, and the prefix costs, at most `most` units."""
    order = np.argsort(prices, kind="stable")
    servers = np.repeat(order, fits[order])[:most]
    return servers, np.concatenate([[0.0], np.cumsum(prices[servers])])


def slot_costs(
    worker_prices: Floats,
    worker_fits: Ints,
    ps_prices: Floats,
    ps_fits: Ints,
    needed: Ints,
) -> Floats:
    """Cheapest cost of 0..N workers with their PSs in one slot; infinite where they do not fit."""
    most = needed.size - 1
    _, workers = cheapest_units(worker_prices, worker_fits, most)
    _, servers = cheapest_units(ps_prices, ps_fits, int(needed[-1]))
    cost = np.full(most + 1, np.inf)
    for n in range(workers.size):
        if needed[n] < servers.size:
            cost[n] = workers[n] + servers[needed[n]]
    return cost


def unit_prices(prices: Floats, demand: Floats) -> Floats:
    """Price of one unit by server, from prices of shape (H, R), added in the kernel's order."""
    total = np.zeros(prices.shape[0])
    for r in np.flatnonzero(demand > 0):
        total = total + prices[:, r] * demand[r]
    return total


def best_schedule(
    worker_prices: Floats,
    ps_prices: Floats,
    worker_residual: Floats | None,
    ps_residual: Floats | None,
    worker_room: Ints,
    ps_room: Ints,
    worker_demand: Floats,
    ps_demand: Floats,
    needed: Ints,
    steps: Ints,
    total: int,
    utilities: Floats,
    arrival: int,
) -> tuple[float, int, Ints]:
    """Find the best schedule of one job; arguments as in ``worker_slot.best_schedule``.

    Returns
    -------
    payoff : float
        -inf without a schedule.
    end : int
        Completion slot, 0 without a schedule.
    workers : ndarray of int, shape (T + 1,)
        Workers by slot.
    """
    horizon = utilities.size - 1
    states = np.arange(total + 1)
    table = np.full((horizon + 1, total + 1), np.inf)
    table[arrival - 1, 0] = 0.0
    costs = np.full((horizon + 1, needed.size), np.inf)
    best, end = -np.inf, 0
    for t in range(arrival, horizon + 1):
        left = [None if r is None else r[:, :, t - 1] for r in (worker_residual, ps_residual)]
        costs[t] = slot_costs(
            unit_prices(worker_prices[:, :, t - 1], worker_demand),
            units_that_fit(worker_room, left[0], worker_demand),
            unit_prices(ps_prices[:, :, t - 1], ps_demand),
            units_that_fit(ps_room, left[1], ps_demand),
            needed,
        )
        for n in range(needed.size):
            before = table[t - 1, np.maximum(0, states - steps[n])]
            table[t] = np.minimum(table[t], before + costs[t, n])
        if utilities[t] - table[t, total] > best:
            best, end = float(utilities[t] - table[t, total]), t
    workers = np.zeros(horizon + 1, dtype=np.int64)
    state = total
    for t in range(end, arrival - 1, -1) if end else ():
        before = table[t - 1, np.maximum(0, state - steps)]
        workers[t] = int(np.flatnonzero(before + costs[t] == table[t, state])[0])
        state = max(0, state - int(steps[workers[t]]))
    return best, end, workers
