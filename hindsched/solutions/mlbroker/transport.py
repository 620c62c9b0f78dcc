"""The cheapest way to bring data to workers: an exact transport problem, compiled.

Sources are data centres with data, sinks are data centres with room on their workers. Prices need
not obey the triangle inequality and an arc may be forbidden by an infinite price (pinned data).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats


@njit(cache=True)
def ship(supply: Floats, room: Floats, price: Floats, limit: float) -> tuple[float, float, Floats]:
    """Ship all supply (S,) into the sinks' room (R,) at least cost by successive shortest paths.

    Prices (S, R) are at least 0, infinite where the arc is forbidden. Returns the cost (a lower
    bound of it where that is above `limit`, which ends the search), the supply that found no way,
    and the flow on each arc.
    """
    sources, sinks = price.shape
    flow = np.zeros((sources, sinks))
    spare = room.copy()
    small = 1e-14 * supply.sum()
    left = 0.0
    opened = np.empty(sinks, dtype=np.int64)
    full = np.empty(sinks, dtype=np.int64)
    num_opened = num_full = 0
    for j in range(sinks):
        if room[j] > small:
            opened[num_opened] = j
            num_opened += 1
    source_distance = np.empty(sources)
    sink_distance = np.empty(sinks)
    into_sink = np.empty(sinks, dtype=np.int64)
    into_source = np.empty(sources, dtype=np.int64)
    # Distances within rounding of each other are equal: no cycle of rounding errors.
    largest = 0.0
    rest = 0.0  # what the sources to come cost at least
    for i in range(sources):
        least = np.inf
        for n in range(num_opened):
            each = price[i, opened[n]]
            if each < np.inf:
                largest = max(largest, each)
                least = min(least, each)
        if supply[i] > small and least < np.inf:
            rest += supply[i] * least
    if rest > limit:
        return rest, 0.0, flow
    slack = 1e-14 * largest
    spent = 0.0
    for origin in range(sources):
        amount = supply[origin]
        cheapest = -1.0
        while amount > small:
            # The cheapest sink of all, if it has room, is at the end of a shortest path: what is
            # shipped already is shipped at least cost, so that moving it on never earns anything.
            best = -1
            nearest = np.inf
            for n in range(num_opened):
                j = opened[n]
                if price[origin, j] < nearest:
                    nearest = price[origin, j]
                    best = j
                elif price[origin, j] == nearest and best >= 0 and spare[best] <= small:
                    best = j
            if cheapest < 0.0:
                cheapest = nearest
                if nearest < np.inf:
                    rest -= amount * nearest
            if best >= 0 and spare[best] > small:
                step = min(amount, spare[best])
                flow[origin, best] += step
            else:
                for n in range(num_opened):
                    j = opened[n]
                    sink_distance[j] = price[origin, j]
                    into_sink[j] = origin if price[origin, j] < np.inf else -1
                for i in range(origin):
                    source_distance[i] = np.inf
                changed = True
                while changed:
                    changed = False
                    for i in range(origin):  # the others have shipped nothing
                        improved = False
                        for n in range(num_full):  # from the others nothing gains by moving on
                            j = full[n]
                            if flow[i, j] > small:
                                distance = sink_distance[j] - price[i, j]
                                if distance < source_distance[i] - slack:
                                    source_distance[i] = distance
                                    into_source[i] = j
                                    improved = True
                        if improved:
                            for n in range(num_opened):
                                j = opened[n]
                                distance = source_distance[i] + price[i, j]
                                if distance < sink_distance[j] - slack:
                                    sink_distance[j] = distance
                                    into_sink[j] = i
                                    changed = True
                best = -1
                nearest = np.inf
                for n in range(num_opened):
                    j = opened[n]
                    if spare[j] > small and sink_distance[j] < nearest:
                        best = j
                        nearest = sink_distance[j]
                if best < 0:
                    left += amount
                    break
                if spent + amount * nearest + rest > limit:  # later paths are no shorter
                    return spent + amount * nearest + rest, 0.0, flow
                step = min(amount, spare[best])
                j = best
                i = into_sink[j]
                while i != origin:
                    back = into_source[i]
                    step = min(step, flow[i, back])
                    j = back
                    i = into_sink[j]
                j = best
                while True:
                    i = into_sink[j]
                    flow[i, j] += step
                    if i == origin:
                        break
                    j = into_source[i]
                    flow[i, j] -= step
            spent += step * nearest
            spare[best] -= step
            amount -= step
            if spare[best] <= small:
                full[num_full] = best
                num_full += 1
    cost = 0.0
    for i in range(sources):
        for j in range(sinks):
            if flow[i, j] > 0.0:
                cost += flow[i, j] * price[i, j]
    return cost, left, flow
