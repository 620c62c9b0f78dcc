"""Search over (mode, start) for the cheapest schedule of one job, placements included.

The cost is ``rate x completion + price of the resources``, where the completion of a schedule that
occupies slots t .. t + L - 1 is t + L. Ties (`ties.TIE`) are broken by completion, then by the
mode's position.
Every (mode, start) has a lower bound from the cheapest workers of each slot alone; modes are taken
by their best bound, and only pairs whose bound beats the best schedule so far are placed.

Window minima of what is free are looked up in tables by doubling: ``minima[k, t]`` is the minimum
over slots ``t .. t + 2**k - 1`` (0-based).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.cheapest_workers import room_for
from hindsched.solvers.kernels.placement import (
    Kinds,
    Window,
    best_host,
    fits_together,
    greedy_host,
    spread_cost,
)
from hindsched.solvers.kernels.stable_order import copy_to, order_up_to_ties, stable_order
from hindsched.solvers.kernels.ties import TIE


class State(NamedTuple):
    """What is free (`loosened`), and at which prices."""

    minima: Floats  # window minima of what is free, (levels, slots, servers, resources)
    prefix: Floats  # sums of prices, (slots + 1, servers, resources)
    spread: Floats  # cheapest workers of each slot: see `cheapest_workers`
    single: Floats


class Groups(NamedTuple):
    """A job's modes, in groups that share worker type, q, N and L."""

    bounds: Ints  # worker type, q, N, L and the range of modes that share them, (num_groups, 6)
    ps_type: Ints  # PS type of a mode, (num_modes,)
    rank: Ints  # its position in the order that breaks ties, (num_modes,)


def num_levels(slots: int) -> int:
    """Levels that windows of up to `slots` slots need."""
    return max(1, int(slots).bit_length())


@njit(cache=True)
def build_minima(values: Floats, levels: int) -> Floats:
    """Table of window minima of `values`, shape (slots, servers, resources)."""
    slots, servers, resources = values.shape
    table = np.empty((levels, slots, servers, resources))
    for t in range(slots):
        for h in range(servers):
            for r in range(resources):
                table[0, t, h, r] = values[t, h, r]
    for k in range(1, levels):
        half = 1 << (k - 1)
        for t in range(slots):
            other = min(t + half, slots - 1)
            for h in range(servers):
                for r in range(resources):
                    table[k, t, h, r] = min(table[k - 1, t, h, r], table[k - 1, other, h, r])
    return table


@njit(cache=True)
def update_minima(table: Floats, server: int, first: int, last: int) -> None:
    """Renew the table after ``table[0]`` changed on one server in slots `first` .. `last`."""
    levels, slots, _, resources = table.shape
    for k in range(1, levels):
        half = 1 << (k - 1)
        for t in range(max(0, first - 2 * half + 1), last + 1):
            other = min(t + half, slots - 1)
            for r in range(resources):
                table[k, t, server, r] = min(
                    table[k - 1, t, server, r], table[k - 1, other, server, r]
                )


@njit(cache=True)
def level_of(length: int) -> int:
    """Largest k with ``2**k <= length``."""
    k = 0
    while (2 << k) <= length:
        k += 1
    return k


@njit(cache=True)
def empty_window(servers: int, resources: int) -> Window:
    """Work arrays for windows."""
    return Window(
        np.empty((servers, resources)),
        np.empty(servers, np.int64),
        np.empty(servers),
        np.empty(servers, np.int64),
        np.empty(servers),
    )


@njit(cache=True)
def fill_window(t: int, length: int, state: State, worker: Floats, window: Window) -> None:
    """Fill what is free, room and cost of every server for the `length` slots from t."""
    level = level_of(length)
    other = t + length - (1 << level)
    minima, prefix, free = state.minima, state.prefix, window.free
    for h in range(free.shape[0]):
        total = 0.0
        for r in range(free.shape[1]):
            free[h, r] = min(minima[level, t, h, r], minima[level, other, h, r])
            total += worker[r] * (prefix[t + length, h, r] - prefix[t, h, r])
        window.cost[h] = total
        window.room[h] = room_for(free[h], worker)


@njit(cache=True)
def window_price(t: int, length: int, prefix: Floats, demand: Floats, price: Floats) -> None:
    """Window price of one unit of `demand` on every server."""
    for h in range(price.shape[0]):
        total = 0.0
        for r in range(demand.shape[0]):
            total += demand[r] * (prefix[t + length, h, r] - prefix[t, h, r])
        price[h] = total


@njit(cache=True)
def slot_bounds(slots: int, table: Floats, cumulative: Floats, blocked: Ints) -> None:
    """Prefix sums of one row of slot costs, and of its slots without room."""
    cumulative[0] = 0.0
    blocked[0] = 0
    for t in range(slots):
        full = np.isinf(table[t])
        cumulative[t + 1] = cumulative[t] + (0.0 if full else table[t])
        blocked[t + 1] = blocked[t] + (1 if full else 0)


@njit(cache=True)
def cheapest_schedule(
    rate: float,
    limit: float,
    first: int,
    stop: int,
    greedy: bool,
    modes: Groups,
    kinds: Kinds,
    state: State,
) -> tuple[float, int, int, int, int]:
    """Cheapest schedule of one job below `limit`.

    Parameters
    ----------
    rate : float
        Cost per slot of completion.
    limit : float
        Only schedules that cost less count.
    first, stop : int
        Slots (0-based) that may be used: ``first <= t`` and ``t + L <= stop``.
    greedy : bool
        Place workers and PSs by Algorithm 4 instead of exactly.
    modes, kinds, state : tuple
        The job's modes, what workers and PSs need, and the cluster: the fields of `Groups`, `Kinds`
        and `State`.

    Returns
    -------
    cost, mode, start, host, workers on the host
        The least cost of all, from which that of the chosen schedule differs by a tie at most. The
        mode is -1 if there is none; host -1 where no PS host was chosen.
    """
    worker, server, ratio, has_ps = kinds
    state = State(*state)
    spread, single = state.spread, state.single
    groups, mode_ps, mode_rank = modes
    servers, resources = state.minima.shape[2], state.minima.shape[3]
    num_groups = groups.shape[0]
    window = empty_window(servers, resources)
    free, room, cost, order, ps_cost = window
    cumulative = np.empty(stop + 1)
    blocked = np.empty(stop + 1, dtype=np.int64)

    least = np.full(num_groups, np.inf)
    done = np.full(num_groups, np.inf)
    shared_m, shared_q, shared_n = -1, -1, -1
    for i in range(num_groups):
        m, q, count, length = groups[i, 0], groups[i, 1], groups[i, 2], groups[i, 3]
        if length > stop - first or count > spread.shape[1]:
            continue
        if m != shared_m or q != shared_q or count != shared_n:
            table = single[m, count - 1] if q == 1 else spread[m, count - 1]
            slot_bounds(stop, table, cumulative, blocked)
            shared_m, shared_q, shared_n = m, q, count
        for t in range(first, stop - length + 1):
            if blocked[t + length] == blocked[t]:
                bound = rate * (t + 1 + length) + cumulative[t + length] - cumulative[t]
                if bound < least[i]:
                    least[i] = bound
                    done[i] = t + 1 + length
    by_completion = stable_order(done)
    bounds = np.empty(num_groups)
    for place in range(num_groups):
        bounds[place] = least[by_completion[place]]
    sequence = stable_order(bounds)  # of places by completion

    best, least_of_all = limit, limit
    best_mode, best_t, best_host_at, best_on = -1, -1, -1, 0
    best_done, best_rank = -1, -1
    for place in sequence:
        i = by_completion[place]
        if least[i] > best + TIE * abs(best):
            break
        m, q, count, length = groups[i, 0], groups[i, 1], groups[i, 2], groups[i, 3]
        table = single[m, count - 1] if q == 1 else spread[m, count - 1]
        slot_bounds(stop, table, cumulative, blocked)
        for t in range(first, stop - length + 1):
            if blocked[t + length] != blocked[t]:
                continue
            end = t + 1 + length
            tie = TIE * abs(best)
            bound = rate * end + cumulative[t + length] - cumulative[t]
            if bound > best + tie:
                if rate > 0.0 and rate * end > best + tie:
                    break
                continue
            later = end > best_done or (end == best_done and mode_rank[groups[i, 4]] > best_rank)
            if bound >= best - tie and later:
                least_of_all = min(least_of_all, bound)
                continue
            fixed = rate * end
            fill_window(t, length, state, worker[m], window)
            if q == 0:
                copy_to(order, order_up_to_ties(cost))
            for k in range(groups[i, 4], groups[i, 5]):
                p = mode_ps[k]
                price, host, on_host = np.inf, -1, 0
                if has_ps:
                    window_price(t, length, state.prefix, server[p], ps_cost)
                if q == 1:
                    for h in range(servers):
                        if room[h] < count:
                            continue
                        total = count * cost[h]
                        if has_ps:
                            total += ps_cost[h]
                            if total >= price or not fits_together(
                                count, 1, worker[m], server[p], free[h]
                            ):
                                continue
                        if total < price:
                            price, host, on_host = total, h, count
                elif not has_ps:
                    price = spread_cost(count, room, cost, order)
                else:
                    budget = best + tie - fixed
                    if greedy:
                        price, host, on_host = greedy_host(
                            count, window, worker[m], server[p], ratio[m, p], budget
                        )
                    else:
                        price, host, on_host = best_host(
                            count, window, worker[m], server[p], ratio[m, p], budget
                        )
                price += fixed
                least_of_all = min(least_of_all, price)
                tie = TIE * abs(best)
                before = end < best_done or (end == best_done and mode_rank[k] < best_rank)
                if price < best - tie or (price <= best + tie and before):
                    best, best_mode, best_t = price, k, t
                    best_host_at, best_on = host, on_host
                    best_done, best_rank = end, mode_rank[k]
    return least_of_all, best_mode, best_t, best_host_at, best_on
