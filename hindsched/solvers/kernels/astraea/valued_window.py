"""Best (mode, start) of one job whose value falls with its completion, placements included.

Prices and room differ by server. Given the window, the cheapest placement around one host is
`placement.best_host`; the search over windows is plain, pruned by the best value so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.modes import ModeColumns
from hindsched.solvers.kernels.placement import Window, best_host
from hindsched.solvers.kernels.stable_order import stable_order

NOTHING = -1
WORKER = np.array([1.0, 0.0])
PS = np.array([0.0, 1.0])
WHOLE = 1e-6
"""By how much a number of free units may fall short of a whole one by rounding."""


class Room(NamedTuple):
    """What is left of one pair of types, and its prices, all of shape (servers, slots).

    Numbers of free units are rounded down where they are read.
    """

    workers: Floats
    ps: Floats
    worker_price: Floats
    ps_price: Floats


@njit(cache=True)
def best_window(
    first: int, modes: ModeColumns, values: Floats, free: Room, ratio: float, floor: float
) -> tuple[float, int, int, int, int]:
    """Best (mode, start, host, workers on the host) of one job for one pair of types.

    Parameters
    ----------
    first : int
        First slot the job may use, 0-based.
    modes : tuple
        Its modes, as `ModeColumns`; one on one server has one parameter server (PS).
    values : ndarray, shape (slots + 1,)
        Value by the last slot of the window, 1-based; it must not rise.
    free : tuple
        What is left, and its prices: the fields of `Room`.
    ratio : float
        Bandwidth of a worker over that of a PS, as `same_ceilings` has it.
    floor : float
        Only a value above it counts.

    Returns
    -------
    value, mode, start (0-based), host, workers on the host
        Mode -1 if there is none. Ties: the first mode, then the earlier start.

    Notes
    -----
    A search among the shortest windows first tells how little the others may be worth.
    """
    _, _, together, count, length = modes
    free_workers, free_ps, price_workers, price_ps = free
    servers, slots = free_workers.shape
    sums_workers, sums_ps = np.zeros((servers, slots + 1)), np.zeros((servers, slots + 1))
    built = first  # sums of prices are known up to this slot
    left = np.empty((servers, 2))
    room = np.empty(servers, dtype=np.int64)
    cost, ps_cost = np.empty(servers), np.empty(servers)
    best, best_mode, best_start, best_at, best_on = floor, NOTHING, 0, NOTHING, 0
    if length.shape[0] == 0:
        return best, best_mode, best_start, best_at, best_on
    among_shortest = best, best_mode, best_start, best_at, best_on
    clear = np.empty(servers, dtype=np.int64)  # a server has room for the mode up to this slot
    for turn in range(length.shape[0] + 1):
        k = int(np.argmin(length)) if turn == 0 else turn - 1
        if turn == 1 and best_mode >= 0:
            among_shortest = best, best_mode, best_start, best_at, best_on
            best, best_mode = float(np.nextafter(best, -np.inf)), NOTHING
        d, n = length[k], count[k]
        clear[:] = first
        for start in range(first, slots - d + 1):
            value = values[start + d]
            if value <= best:
                break
            for t in range(built, start + d):
                for s in range(servers):
                    sums_workers[s, t + 1] = sums_workers[s, t] + price_workers[s, t]
                    sums_ps[s, t + 1] = sums_ps[s, t] + price_ps[s, t]
            built = max(built, start + d)
            cheapest, cheapest_ps = np.inf, np.inf
            for s in range(servers):
                cost[s] = sums_workers[s, start + d] - sums_workers[s, start]
                ps_cost[s] = sums_ps[s, start + d] - sums_ps[s, start]
                cheapest, cheapest_ps = min(cheapest, cost[s]), min(cheapest_ps, ps_cost[s])
            if value - n * cheapest - cheapest_ps <= best:
                continue  # whatever is free
            if together[k]:
                for s in range(servers):
                    payoff = value - n * cost[s] - ps_cost[s]
                    if payoff > best:
                        clear[s] = _clear(free_workers, free_ps, s, n, start, d, clear[s])
                        if clear[s] == start + d:
                            best, best_mode, best_start = payoff, k, start
                            best_at, best_on = s, n
                continue
            for s in range(servers):
                left[s, 0] = _least(free_workers, s, start, d)
                left[s, 1] = _least(free_ps, s, start, d)
                room[s] = int(left[s, 0])
            order = stable_order(cost)
            window = Window(left, room, cost, order, ps_cost)
            total, at, on = best_host(n, window, WORKER, PS, ratio, value - best)
            if at >= 0 and value - total > best:
                best, best_mode, best_start, best_at, best_on = value - total, k, start, at, on
    if best_mode < 0:
        return among_shortest
    return best, best_mode, best_start, best_at, best_on


@njit(cache=True)
def _clear(
    workers: Floats, ps: Floats, server: int, count: int, start: int, length: int, known: int
) -> int:
    """End of the window if a server has `count` workers and a PS free in all of it, else less.

    `known` is what the last call said for an earlier start: the server is full in the slot after
    it if that lies in the window, and has room from that start up to it.
    """
    t = max(known, start)
    while t < start + length:
        if workers[server, t] + WHOLE < count or ps[server, t] + WHOLE < 1:
            return t
        t += 1
    return t


@njit(cache=True)
def _least(free: Floats, server: int, first: int, length: int) -> float:
    """Whole units that are free on a server in every slot of a window."""
    least = free[server, first]
    for t in range(first + 1, first + length):
        least = min(least, free[server, t])
    return np.floor(least + WHOLE)


@njit(cache=True)
def place_window(
    count: int, start: int, length: int, host: int, on_host: int, free: Floats, price: Floats
) -> Ints:
    """Workers by server of a distributed schedule found by `best_window`.

    `free` and `price`, shape (servers, slots), are those of workers.
    """
    servers = free.shape[0]
    placed = np.zeros(servers, dtype=np.int64)
    placed[host] = on_host
    cost = np.zeros(servers)
    for s in range(servers):
        for t in range(start, start + length):
            cost[s] += price[s, t]
    left = count - on_host
    for s in stable_order(cost):
        if s != host and left > 0:
            placed[s] = min(left, int(_least(free, s, start, length)))
            left -= placed[s]
    return placed
