"""Cheapest placement of N workers, and of the PSs that serve them, in one window.

Once the window's prices and what is free in all of its slots are known, time is out of the
problem: (13) and (21) of batchsched, and every other placement of identical workers around one
host. One PS host is no loss of generality; given the host n and the g workers on it the rest is
the cheapest N - g workers elsewhere, which a greedy choice finds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints

NEAR = 1e-9
"""No multiple of a `same_ceilings` quotient lies as close above a whole number."""
NOTHING: int = np.int64(-1)  # type: ignore[assignment]
"""No server; a kernel that is handed a plain number would be compiled for it alone."""


class Kinds(NamedTuple):
    """Types of workers and of PSs."""

    worker: Floats  # demands of a worker, (types, resources)
    server: Floats  # demands of a PS, (types, resources)
    # bandwidth of a worker over that of a PS, as `same_ceilings` has it, (worker types, PS types)
    ratio: Floats
    has_ps: bool  # whether workers need parameter servers


class Window(NamedTuple):
    """What a window of slots offers."""

    free: Floats  # what is free in every slot of the window, `loosened`, (servers, resources)
    room: Ints  # workers that fit on a server in the window, (servers,)
    cost: Floats  # window price of a worker, (servers,)
    order: Ints  # servers by `cost`, ties by position, (servers,)
    ps_cost: Floats  # window price of one PS, (servers,)


@njit(cache=True)
def num_ps(elsewhere: int, ratio: float) -> int:
    """PSs whose bandwidth covers the workers elsewhere; at least one."""
    return max(1, int(np.ceil(elsewhere * ratio - NEAR)))


@njit(cache=True)
def fits_together(workers: int, ps: int, worker: Floats, server: Floats, free: Floats) -> bool:
    """Whether workers and PSs fit into what is free, all of shape (resources,)."""
    for r in range(free.shape[0]):
        need = workers * worker[r] + ps * server[r]
        if need > free[r]:
            return False
    return True


@njit(cache=True)
def spread_cost(count: int, room: Ints, cost: Floats, order: Ints) -> float:
    """Price of the cheapest `count` workers; inf without room."""
    total = 0.0
    for h in order:
        take = min(room[h], count)
        total += take * cost[h]
        count -= take
        if count == 0:
            return total
    return np.inf


@njit(cache=True)
def best_host(
    count: int, window: Window, worker: Floats, server: Floats, ratio: float, budget: float
) -> tuple[float, int, int]:
    """Exact: cheapest (host of the PSs, workers on it) for `count` workers on >= 2 servers.

    Parameters
    ----------
    count : int
        N.
    window : Window
        Where they may stand.
    worker, server : ndarray, shape (resources,)
        Demand of a worker and of a PS.
    ratio : float
        Bandwidth of a worker over that of a PS.
    budget : float
        Only cheaper placements are of interest.

    Returns
    -------
    cost, host, workers on the host
        Cost inf and host -1 if there is none within the budget.
    """
    room, cost, order = window.room, window.cost, window.order
    free, ps_cost = window.free, window.ps_cost
    best, best_at, best_on = np.inf, NOTHING, 0
    anywhere = spread_cost(count, room, cost, order)
    if anywhere > budget:
        return best, best_at, best_on
    limit = budget
    for n in range(room.shape[0]):
        most = min(room[n], count - 1)
        least_ps = num_ps(count - most, ratio)
        if anywhere + least_ps * ps_cost[n] > limit:
            continue
        if not fits_together(0, least_ps, worker, server, free[n]):
            continue
        elsewhere = 0
        total = 0.0
        position = 0
        left = 0
        for on_host in range(most, -1, -1):
            while elsewhere < count - on_host:
                while position < order.shape[0] and left == 0:
                    h = order[position]
                    position += 1
                    if h != n:
                        left = room[h]
                if left == 0:
                    break
                total += cost[order[position - 1]]
                left -= 1
                elsewhere += 1
            if elsewhere < count - on_host:
                break
            ps = num_ps(elsewhere, ratio)
            price = on_host * cost[n] + ps * ps_cost[n] + total
            if (
                price < best
                and price <= limit
                and fits_together(on_host, ps, worker, server, free[n])
            ):
                best, best_at, best_on = price, n, on_host
                limit = min(limit, price)
    return best, best_at, best_on


@njit(cache=True)
def greedy_host(
    count: int, window: Window, worker: Floats, server: Floats, ratio: float, budget: float
) -> tuple[float, int, int]:
    """Algorithm 4 of batchsched with its repairs: fill servers by price, most workers on the host.

    The count of workers left is reset for every host; the host takes at most N - 1 workers and
    the least sufficient PSs, at least one; a host on which no number of workers leaves room for
    them is infeasible. Arguments and return value as in `best_host`.
    """
    room, cost, order = window.room, window.cost, window.order
    free, ps_cost = window.free, window.ps_cost
    best, best_at, best_on = np.inf, NOTHING, 0
    anywhere = spread_cost(count, room, cost, order)
    if anywhere > budget:
        return best, best_at, best_on
    for n in range(room.shape[0]):
        least_ps = num_ps(count - min(room[n], count - 1), ratio)
        if anywhere + least_ps * ps_cost[n] > min(best, budget):
            continue
        if not fits_together(0, least_ps, worker, server, free[n]):
            continue
        left = count
        total = 0.0
        on_host = NOTHING
        for h in order:
            take = min(room[h], left)
            if h == n:
                take = min(take, count - 1)
                while take >= 0:
                    ps = num_ps(count - take, ratio)
                    if fits_together(take, ps, worker, server, free[n]):
                        break
                    take -= 1
                if take < 0:
                    break
                on_host = take
                total += num_ps(count - take, ratio) * ps_cost[n]
            left -= take
            total += take * cost[h]
        if on_host >= 0 and left == 0 and total < best:
            best, best_at, best_on = total, n, on_host
    return best, best_at, best_on


@njit(cache=True)
def fill(count: int, host: int, on_host: int, greedy: bool, room: Ints, order: Ints) -> Ints:
    """Workers by server of a placement found above; without a host the cheapest ones."""
    placed = np.zeros(room.shape[0], dtype=np.int64)
    left = count
    if host >= 0 and not greedy:
        placed[host] = on_host
        left -= on_host
    for h in order:
        if h == host:
            if greedy:
                placed[h] = on_host
                left -= on_host
            continue
        take = min(room[h], left)
        placed[h] = take
        left -= take
    return placed
