"""The cheapest way to bring data to workers: an exact transport problem, compiled.

Sources are data centres with data, sinks are data centres with room on their workers. Prices need
not obey the triangle inequality and an arc may be forbidden by an infinite price (pinned data).
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats
from hindsched.compiled import compiled


@compiled()
def ship(supply: Floats, room: Floats, price: Floats) -> tuple[float, float, Floats]:
    """Ship all supply at least cost by successive shortest paths.

    Parameters
    ----------
    supply : ndarray, shape (S,)
        Amount at each source.
    room : ndarray, shape (R,)
        Most that each sink takes.
    price : ndarray, shape (S, R)
        Price per unit, at least 0; infinite where the arc is forbidden.

    Returns
    -------
    cost : float
        Least cost of what was shipped.
    left : float
        Supply that found no way; 0 if everything was shipped.
    flow : ndarray, shape (S, R)
        Amount on each arc.
    """
    sources, sinks = price.shape
    flow = np.zeros((sources, sinks))
    spare = room.copy()
    total = supply.sum()
    small = 1e-14 * total
    left = 0.0
    source_distance = np.empty(sources)
    sink_distance = np.empty(sinks)
    into_sink = np.empty(sinks, dtype=np.int64)
    into_source = np.empty(sources, dtype=np.int64)
    # Distances within rounding of each other are equal: no cycle of rounding errors.
    largest = 0.0
    for i in range(sources):
        for j in range(sinks):
            if price[i, j] < np.inf and price[i, j] > largest:
                largest = price[i, j]
    slack = 1e-14 * largest
    for origin in range(sources):
        amount = supply[origin]
        while amount > small:
            # The cheapest sink of all, if it has room, is at the end of a shortest path: what is
            # shipped already is shipped at least cost, so that moving it on never earns anything.
            direct = -1
            least = np.inf
            for j in range(sinks):
                if price[origin, j] < least:
                    least = price[origin, j]
                    direct = j
                elif price[origin, j] == least and direct >= 0 and spare[direct] <= small:
                    direct = j
            if direct >= 0 and spare[direct] > small:
                step = min(amount, spare[direct])
                flow[origin, direct] += step
                spare[direct] -= step
                amount -= step
                continue
            source_distance[:] = np.inf
            sink_distance[:] = np.inf
            into_sink[:] = -1
            into_source[:] = -1
            source_distance[origin] = 0.0
            for j in range(sinks):
                sink_distance[j] = price[origin, j]
                if price[origin, j] < np.inf:
                    into_sink[j] = origin
            changed = True
            while changed:
                changed = False
                for i in range(sources):
                    if i == origin:
                        continue
                    improved = False
                    for j in range(sinks):
                        if flow[i, j] > small and sink_distance[j] < np.inf:
                            distance = sink_distance[j] - price[i, j]
                            if distance < source_distance[i] - slack:
                                source_distance[i] = distance
                                into_source[i] = j
                                improved = True
                    if improved:
                        for j in range(sinks):
                            distance = source_distance[i] + price[i, j]
                            if distance < sink_distance[j] - slack:
                                sink_distance[j] = distance
                                into_sink[j] = i
                                changed = True
            best = -1
            nearest = np.inf
            for j in range(sinks):
                if spare[j] > small and sink_distance[j] < nearest:
                    best = j
                    nearest = sink_distance[j]
            if best < 0:
                left += amount
                break
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
            spare[best] -= step
            amount -= step
    cost = 0.0
    for i in range(sources):
        for j in range(sinks):
            if flow[i, j] > 0.0:
                cost += flow[i, j] * price[i, j]
    return cost, left, flow
