"""Least prices of one worker and of one parameter server (PS) in pieces of 2**k slots.

N workers cost at least N times the cheapest worker, and a window at least the sum of the pieces
that it is cut into. Unlike sums over single slots that knows that a placement stays: a server that
is free in one slot only is not free in the piece.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats

SHORTEST = 3
"""Level of the shortest pieces: what a window has beyond them counts nothing."""


@njit(cache=True)
def renew_floors(
    floors: Floats, minima: Floats, prefix: Floats, demand: Floats, first: int, last: int
) -> None:
    """Renew the floors of all pieces that touch slots `first` .. `last`, both inclusive.

    Parameters
    ----------
    floors : ndarray, shape (kinds, levels, slots)
        Price of the cheapest unit of a kind that fits on a server in slots t .. t + 2**k - 1; inf
        where none fits. Levels below `SHORTEST` are not used.
    minima, prefix : ndarray
        Window minima of what is free, and sums of prices, as in `State`.
    demand : ndarray, shape (kinds, resources)
        Demand of a unit.
    """
    levels, slots, servers, resources = minima.shape
    paid, free = np.empty((resources, servers)), np.empty((resources, servers))
    price = np.empty(servers)
    for k in range(SHORTEST, levels):
        size = 1 << k
        for t in range(max(0, first - size + 1), min(last, slots - size) + 1):
            for h in range(servers):
                for r in range(resources):
                    paid[r, h] = prefix[t + size, h, r] - prefix[t, h, r]
                    free[r, h] = max(0.0, minima[k, t, h, r])  # of what it lacks it may need none
            for kind in range(demand.shape[0]):
                for h in range(servers):
                    price[h] = 0.0
                for r in range(resources):  # servers inside: they lie side by side
                    need = demand[kind, r]
                    for h in range(servers):
                        price[h] += need * paid[r, h] if need <= free[r, h] else np.inf
                least = np.inf
                for h in range(servers):
                    least = min(least, price[h])
                floors[kind, k, t] = least


@njit(cache=True)
def window_floor(floors: Floats, kind: int, count: int, t: int, length: int) -> float:
    """Least price of `count` units of a kind and one of the last kind, in `length` slots from t."""
    each, once = 0.0, 0.0
    last = floors.shape[0] - 1
    for k in range(floors.shape[1] - 1, SHORTEST - 1, -1):
        if length >> k & 1:
            each += floors[kind, k, t]
            once += floors[last, k, t]
            t += 1 << k
    return count * each + once
