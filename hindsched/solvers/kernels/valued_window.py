"""Best (mode, start) of one job whose value falls with its completion, placements included.

Prices and room differ by server. Given the window, the cheapest placement around one host is
`placement.best_host`; the search over windows is plain, pruned by the best value so far. On one
merged server (`best_on_merged_server`) there is nothing to place.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hindsched.solvers.kernels.placement import best_host

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
NOTHING = -1
WORKER = np.array([1.0, 0.0])
PS = np.array([0.0, 1.0])


@njit(cache=True)
def best_window(
    first: int,
    length: Integers,
    count: Integers,
    together: Integers,
    values: Array,
    free: Integers,
    price: Array,
    ratio: float,
    floor: float,
) -> tuple[float, int, int, int, int]:
    """Best (mode, start, host, workers on the host) of one job for one pair of types.

    Parameters
    ----------
    first : int
        First slot the job may use, 0-based.
    length, count, together : ndarray of int, shape (modes,)
        Duration, workers, and whether all stands on one server, with one parameter server (PS).
    values : ndarray, shape (slots + 1,)
        Value by the last slot of the window, 1-based; it must not rise.
    free : ndarray of int, shape (slots, servers, 2)
        Workers and PSs left.
    price : ndarray, shape (slots, servers, 2)
        Prices of a worker and of a PS.
    ratio : float
        Bandwidth of a worker over that of a PS.
    floor : float
        Only a value above it counts.

    Returns
    -------
    value, mode, start (0-based), host, workers on the host
        Mode -1 if there is none. Ties: the first mode, then the earlier start.
    """
    slots, servers, _ = free.shape
    prefix = np.zeros((slots + 1, servers, 2))
    for t in range(slots):
        for s in range(servers):
            prefix[t + 1, s, 0] = prefix[t, s, 0] + price[t, s, 0]
            prefix[t + 1, s, 1] = prefix[t, s, 1] + price[t, s, 1]
    left = np.empty((servers, 2))
    room = np.empty(servers, dtype=np.int64)
    cost, ps_cost = np.empty(servers), np.empty(servers)
    best, best_mode, best_start, best_at, best_on = floor, NOTHING, 0, NOTHING, 0
    for k in range(length.shape[0]):
        d, n = length[k], count[k]
        for start in range(first, slots - d + 1):
            value = values[start + d]
            if value <= best:
                break
            for s in range(servers):
                workers, ps = free[start, s, 0], free[start, s, 1]
                for t in range(start + 1, start + d):
                    workers, ps = min(workers, free[t, s, 0]), min(ps, free[t, s, 1])
                left[s, 0], left[s, 1], room[s] = workers, ps, workers
                cost[s] = prefix[start + d, s, 0] - prefix[start, s, 0]
                ps_cost[s] = prefix[start + d, s, 1] - prefix[start, s, 1]
            if together[k]:
                for s in range(servers):
                    if room[s] >= n and left[s, 1] >= 1:
                        payoff = value - n * cost[s] - ps_cost[s]
                        if payoff > best:
                            best, best_mode, best_start = payoff, k, start
                            best_at, best_on = s, n
                continue
            order = np.argsort(cost, kind="mergesort")
            total, at, on = best_host(
                n, room, cost, order, left, WORKER, PS, ratio, ps_cost, value - best
            )
            if at >= 0 and value - total > best:
                best, best_mode, best_start, best_at, best_on = value - total, k, start, at, on
    return best, best_mode, best_start, best_at, best_on


@njit(cache=True)
def place_window(
    count: int, start: int, length: int, host: int, on_host: int, free: Integers, price: Array
) -> Integers:
    """Workers by server of a distributed schedule found by `best_window`."""
    servers = free.shape[1]
    placed = np.zeros(servers, dtype=np.int64)
    placed[host] = on_host
    cost = np.zeros(servers)
    room = np.empty(servers, dtype=np.int64)
    for s in range(servers):
        room[s] = free[start, s, 0]
        for t in range(start, start + length):
            room[s] = min(room[s], free[t, s, 0])
            cost[s] += price[t, s, 0]
    left = count - on_host
    for s in np.argsort(cost, kind="mergesort"):
        if s != host and left > 0:
            placed[s] = min(left, room[s])
            left -= placed[s]
    return placed


@njit(cache=True)
def best_on_merged_server(
    first: int, values: Array, length: Integers, demand: Array, prefix: Array, floor: float
) -> tuple[float, int, int]:
    """Best (value, mode, start) of one job with all servers merged into one.

    Parameters
    ----------
    first : int
        First slot the job may use, 0-based.
    values : ndarray, shape (slots + 1,)
        Value by the last slot, 1-based; it must not rise.
    length, demand : ndarray, shapes (modes,) and (modes, resources)
        Modes.
    prefix : ndarray, shape (slots + 1, resources)
        Sums of the slots' prices.
    floor : float
        Only a value above it counts.
    """
    slots = prefix.shape[0] - 1
    best, best_mode, best_start = floor, NOTHING, 0
    for k in range(length.shape[0]):
        d = length[k]
        for start in range(first, slots - d + 1):
            value = values[start + d]
            if value <= best:
                break
            for r in range(demand.shape[1]):
                value -= demand[k, r] * (prefix[start + d, r] - prefix[start, r])
            if value > best:
                best, best_mode, best_start = value, k, start
    return best, best_mode, best_start


@njit(cache=True)
def all_on_merged_server(
    first_mode: Integers,
    first: Integers,
    values: Array,
    length: Integers,
    demand: Array,
    prefix: Array,
    floor: float,
    found: Array,
    use: Array,
) -> None:
    """Best values of all jobs into `found`, their use into `use`, shape (slots, resources).

    A job without a schedule above `floor` gets `floor` and uses nothing.
    """
    for j in range(first.shape[0]):
        low, high = first_mode[j], first_mode[j + 1]
        best, mode, start = best_on_merged_server(
            first[j], values[j], length[low:high], demand[low:high], prefix, floor
        )
        found[j] = best
        if mode >= 0:
            for t in range(start, start + length[low + mode]):
                for r in range(demand.shape[1]):
                    use[t, r] += demand[low + mode, r]
