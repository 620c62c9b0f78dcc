"""The cheapest way to bring data to workers: an exact transport problem, compiled.

Sources are data centres with data, sinks are data centres with room on their workers. Prices need
not obey the triangle inequality and an arc may be forbidden by an infinite price (pinned data).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats


@njit(cache=True)
def min_cost_flow(
    supply: Floats, room: Floats, price: Floats, limit: float
) -> tuple[float, float, Floats]:
    """Ship all supply (S,) into the sinks' room (R,) at least cost by successive shortest paths.

    Prices (S, R) are at least 0, infinite where the arc is forbidden. Returns the cost (a lower
    bound of it where that is above `limit`, which ends the search), the supply that found no way,
    and the flow on each arc.
    """
    sources, sinks = price.shape
    flow = np.zeros((sources, sinks))
    spare = room.copy()
    small = 1e-14 * supply.sum()
    largest = 0.0  # distances within rounding of each other are equal: no cycle of rounding errors
    for i in range(sources):
        for j in range(sinks):
            if price[i, j] < np.inf:
                largest = max(largest, price[i, j])
    slack = 1e-14 * largest
    to_sink, to_source = np.empty(sinks), np.empty(sources)  # lengths of the shortest paths
    into_sink = np.empty(sinks, dtype=np.int64)  # the source before it
    into_source = np.empty(sources, dtype=np.int64)  # the sink before it
    left = spent = 0.0
    for origin in range(sources):
        amount = supply[origin]
        while amount > small:
            best = 0
            for j in range(sinks):
                to_sink[j] = price[origin, j] if room[j] > small else np.inf
                into_sink[j] = origin
                if to_sink[j] < to_sink[best]:
                    best = j
            if spare[best] <= small:  # else no detour is shorter: what is shipped is so at best
                for i in range(origin):
                    to_source[i] = np.inf
                changed = True
                while changed:
                    changed = False
                    for i in range(origin):
                        improved = False
                        for j in range(sinks):
                            length = to_sink[j] - price[i, j]
                            if flow[i, j] > small and length < to_source[i] - slack:
                                to_source[i], into_source[i] = length, j
                                improved = True
                        for j in range(sinks if improved else 0):
                            length = to_source[i] + price[i, j]
                            if room[j] > small and length < to_sink[j] - slack:
                                to_sink[j], into_sink[j] = length, i
                                changed = True
                best = -1
                for j in range(sinks):
                    if spare[j] > small and (best < 0 or to_sink[j] < to_sink[best]):
                        best = j
            if best < 0 or to_sink[best] == np.inf:
                left += amount
                break
            if spent + amount * to_sink[best] > limit:  # later paths are no shorter
                return spent + amount * to_sink[best], 0.0, flow
            step, j = min(amount, spare[best]), best
            while into_sink[j] != origin:
                i = into_sink[j]
                j = into_source[i]
                step = min(step, flow[i, j])
            j = best
            flow[into_sink[j], j] += step
            while into_sink[j] != origin:
                i = into_sink[j]
                j = into_source[i]
                flow[i, j] -= step
                flow[into_sink[j], j] += step
            spent += step * to_sink[best]
            spare[best] -= step
            amount -= step
    cost = 0.0
    for i in range(sources):
        for j in range(sinks):
            if flow[i, j] > 0.0:
                cost += flow[i, j] * price[i, j]
    return cost, left, flow
