"""Price of the cheapest n workers in every single slot: a lower bound for whole windows.

The cheapest placement of a window costs at least the sum over its slots of what the cheapest
placement of each slot alone costs, and does not exist where some slot alone has no room.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats
from hindsched.solvers.kernels.stable_order import stable_order


@njit(cache=True)
def room_for(residual: Floats, demand: Floats) -> int:
    """How many units of `demand` fit into a `loosened` `residual`, both of shape (resources,)."""
    most = 1 << 30
    for r in range(demand.shape[0]):
        if demand[r] > 0:
            most = min(most, int(np.floor(residual[r] / demand[r])))
    return max(0, most)


@njit(cache=True)
def renew_slot_costs(
    spread: Floats,
    single: Floats,
    residual: Floats,
    price: Floats,
    demand: Floats,
    first: int,
    last: int,
) -> None:
    """Renew `spread` and `single`, shape (worker types, workers, slots), in some slots.

    Parameters
    ----------
    spread, single : ndarray
        Price of the cheapest n + 1 workers on any servers, and on one server; inf without room.
    residual, price : ndarray, shape (slots, servers, resources)
        What is left, `loosened`, and the unit prices.
    demand : ndarray, shape (worker types, resources)
        Demand of a worker.
    first, last : int
        Slots to renew, both inclusive.
    """
    types, most, _ = spread.shape
    servers, resources = residual.shape[1], residual.shape[2]
    cost = np.empty(servers)
    room = np.empty(servers, dtype=np.int64)
    for t in range(first, last + 1):
        for m in range(types):
            free = 0
            largest = 0
            for h in range(servers):
                room[h] = room_for(residual[t, h], demand[m])
                cost[h] = 0.0
                for r in range(resources):
                    cost[h] += demand[m, r] * price[t, h, r]
                if room[h] > 0 and cost[h] == 0.0:
                    free += room[h]
                    largest = max(largest, room[h])
            for n in range(most):
                spread[m, n, t] = 0.0 if n < free else np.inf
                single[m, n, t] = 0.0 if n < largest else np.inf
            if free >= most and largest >= most:
                continue
            count = 0
            total = 0.0
            for h in stable_order(cost):
                for _ in range(min(room[h], most - count)):
                    total += cost[h]
                    spread[m, count, t] = total
                    count += 1
                for n in range(min(room[h], most) - 1, -1, -1):
                    if single[m, n, t] <= (n + 1) * cost[h]:
                        break
                    single[m, n, t] = (n + 1) * cost[h]
