"""Compiled worker-slot program: the cheapest way to spread a job's work over slots.

A job needs `total` units of progress; ``n`` workers in a slot make ``steps[n]`` of them and cost
``c_t(n)``, found cheapest server first. One forward pass of

    F_t(s) = min over n of F_{t-1}(s - steps[n]) + c_t(n)

gives the best payoff ``f(t) - F_t(total)`` of every end slot. With ``steps[n] = n`` this is the
exact program over worker-slots; with ``steps[n] = floor(n / (M (tau + 2 e / b)))`` it is the
paper's Algorithm 2 over data chunks (memoised).

Prunings never change the result: a pass stops at the first slot whose utility is not above the
best payoff so far; F_t rises with s, so states that cost too much to improve on it are a tail; and
states too far from `total` to be finished in time are a head.

Ties: cheaper servers first, equal prices in the order of the servers; the earliest end among equal
payoffs; then, from the last slot to the first, the fewest workers among equal costs. The plain
numpy twin is ``worker_slot_numpy.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TOLERANCE = 1e-9


@njit(cache=True, nogil=True)
def sort_servers(prices, room, residual, limited, demand, t, most, order, price_of, room_of):
    """List the servers with room in slot index `t`, cheapest unit first, ties by index.

    Returns the number listed. `order`, `price_of` and `room_of` receive index, unit price and
    how many units fit.
    """
    listed = 0
    for h in range(room.shape[0]):
        units = room[h]
        if units <= 0:
            continue
        if limited:
            for r in range(demand.shape[0]):
                if demand[r] > 0.0:
                    fits = np.floor(residual[h, r, t] / demand[r] + TOLERANCE)
                    if fits < units:
                        units = int(fits)
            if units <= 0:
                continue
        price = 0.0
        for r in range(demand.shape[0]):
            if demand[r] > 0.0:
                price += prices[h, r, t] * demand[r]
        if units > most:
            units = most
        j = listed
        while j > 0 and price_of[j - 1] > price:
            price_of[j] = price_of[j - 1]
            room_of[j] = room_of[j - 1]
            order[j] = order[j - 1]
            j -= 1
        price_of[j] = price
        room_of[j] = units
        order[j] = h
        listed += 1
    return listed


@njit(cache=True, nogil=True)
def prefix_costs(listed, price_of, room_of, most, cost):
    """Fill ``cost[n]``: price of the `n` cheapest units. Returns the most units there are."""
    cost[0] = 0.0
    n = 0
    for j in range(listed):
        for _ in range(room_of[j]):
            if n == most:
                return n
            cost[n + 1] = cost[n] + price_of[j]
            n += 1
    return n


@njit(cache=True, nogil=True)
def slot_costs(
    worker_prices,
    ps_prices,
    worker_residual,
    ps_residual,
    limited,
    worker_room,
    ps_room,
    worker_demand,
    ps_demand,
    needed,
    t,
    order,
    price_of,
    room_of,
    worker_cost,
    ps_cost,
    cost,
):
    """Fill ``cost[n]``: cheapest cost of `n` workers with their PSs; returns the largest n."""
    most = needed.shape[0] - 1
    listed = sort_servers(
        worker_prices,
        worker_room,
        worker_residual,
        limited,
        worker_demand,
        t,
        most,
        order,
        price_of,
        room_of,
    )
    workers = prefix_costs(listed, price_of, room_of, most, worker_cost)
    if needed[workers] > 0:
        listed = sort_servers(
            ps_prices,
            ps_room,
            ps_residual,
            limited,
            ps_demand,
            t,
            needed[workers],
            order,
            price_of,
            room_of,
        )
    else:
        listed = 0
    servers = prefix_costs(listed, price_of, room_of, needed[workers], ps_cost)
    while workers > 0 and needed[workers] > servers:
        workers -= 1
    for n in range(workers + 1):
        cost[n] = worker_cost[n] + ps_cost[needed[n]]
    return workers


@njit(cache=True, nogil=True)
def best_schedule(
    worker_prices,
    ps_prices,
    worker_residual,
    ps_residual,
    limited,
    worker_room,
    ps_room,
    worker_demand,
    ps_demand,
    needed,
    steps,
    total,
    utilities,
    arrival,
    floor,
    table,
    costs,
    windows,
    workers,
):
    """Find the best schedule of one job.

    Parameters
    ----------
    worker_prices, ps_prices : float array, shape (H, R, T), (K, R, T)
        Prices of the capacity rows.
    worker_residual, ps_residual : float array, the same shapes
        What is left of the capacities; read only if `limited`.
    limited : bool
        Whether the residual limits how many fit.
    worker_room, ps_room : int array, shape (H,), (K,)
        How many fit on an empty server (or group of servers).
    worker_demand, ps_demand : float array, shape (R,)
        Demand of one worker or PS.
    needed : int array, shape (N + 1,)
        PSs needed for 0..N workers.
    steps : int array, shape (N + 1,)
        Progress of 0..N workers in a slot; never falls.
    total : int
        Progress to reach.
    utilities : float array, shape (T + 1,)
        Utility by completion slot, never rising from `arrival` on.
    arrival : int
        First slot.
    floor : float
        Only a schedule with a payoff above it is wanted; -inf for any.
    table, costs, windows : work arrays, shape (T + 1, >= total + 1), (T + 1, >= N + 1), (T + 1, 2)
    workers : int array, shape (T + 1,)
        Receives the number of workers by slot.

    Returns
    -------
    payoff : float
        Best payoff; -inf if there is no schedule above `floor`.
    end : int
        Completion slot, 0 if there is none.
    """
    horizon = utilities.shape[0] - 1
    most = needed.shape[0] - 1
    width = max(worker_room.shape[0], ps_room.shape[0])
    order = np.empty(width, np.int64)
    price_of = np.empty(width)
    room_of = np.empty(width, np.int64)
    worker_cost = np.empty(most + 1)
    ps_cost = np.empty(needed[most] + 1)

    best, end = floor, 0
    last = horizon
    while last >= arrival and utilities[last] <= best:
        last -= 1
    windows[arrival - 1, 0] = 0
    windows[arrival - 1, 1] = 0
    table[arrival - 1, 0] = 0.0
    t = arrival
    while t <= last:
        if utilities[t] <= best:
            break
        cost = costs[t]
        n_max = slot_costs(
            worker_prices,
            ps_prices,
            worker_residual,
            ps_residual,
            limited,
            worker_room,
            ps_room,
            worker_demand,
            ps_demand,
            needed,
            t - 1,
            order,
            price_of,
            room_of,
            worker_cost,
            ps_cost,
            cost,
        )
        cost[n_max + 1 :] = np.inf
        old, new = table[t - 1], table[t]
        old_lo, old_hi = windows[t - 1, 0], windows[t - 1, 1]
        lo = max(old_lo, total - steps[most] * (last - t))
        hi = min(total, old_hi + steps[n_max])
        if lo > hi:
            break
        relax_states(old, old_lo, old_hi, new, lo, hi, cost, steps, n_max)
        if hi == total and utilities[t] - new[total] > best:
            best, end = utilities[t] - new[total], t
            while last > t and utilities[last] <= best:
                last -= 1
        if t < last:
            allowed = utilities[t + 1] - best
            while hi >= lo and new[hi] >= allowed:
                hi -= 1
            if hi < lo:
                break
        windows[t, 0] = lo
        windows[t, 1] = hi
        t += 1
    if end == 0:
        return -np.inf, 0
    trace_back(table, costs, windows, steps, total, arrival, end, workers)
    return best, end


@njit(cache=True, nogil=True)
def relax_states(old, old_lo, old_hi, new, lo, hi, cost, steps, n_max):
    """One slot of the recursion: ``new[s] = min over n of old[s - steps[n]] + cost[n]``."""
    for s in range(lo, hi + 1):
        new[s] = np.inf
    top = -1
    for n in range(n_max + 1):
        step = steps[n]
        if step == top:
            continue  # fewer workers make the same progress
        c = cost[n]
        first = max(lo, old_lo + step)
        stop = min(hi, old_hi + step) + 1
        if stop > first:
            target = new[first:stop]
            source = old[first - step : stop - step]
            for k in range(target.shape[0]):
                target[k] = min(target[k], source[k] + c)
        if old_lo == 0:  # more progress than is left to make
            for s in range(max(lo, top + 1), min(hi, step - 1) + 1):
                new[s] = min(new[s], old[0] + c)
        top = step


@njit(cache=True, nogil=True)
def trace_back(table, costs, windows, steps, total, arrival, end, workers):
    """Recover the workers by slot: the fewest that explain each state's cost."""
    workers[:] = 0
    s = total
    for t in range(end, arrival - 1, -1):
        old_lo, old_hi = windows[t - 1, 0], windows[t - 1, 1]
        for n in range(steps.shape[0]):
            previous = max(0, s - steps[n])
            if old_lo <= previous <= old_hi and table[t - 1, previous] + costs[t, n] == table[t, s]:
                workers[t] = n
                s = previous
                break


@njit(cache=True, nogil=True)
def place_schedule(
    worker_prices,
    ps_prices,
    worker_residual,
    ps_residual,
    limited,
    worker_room,
    ps_room,
    worker_demand,
    ps_demand,
    needed,
    workers,
    first,
    last,
    slots,
    servers,
    counts,
):
    """Write the placements of a schedule: worker entries first, then PS entries.

    Returns the number of worker entries and of all entries.
    """
    width = max(worker_room.shape[0], ps_room.shape[0])
    order = np.empty(width, np.int64)
    price_of = np.empty(width)
    room_of = np.empty(width, np.int64)
    entries = 0
    for t in range(first, last + 1):
        if workers[t] > 0:
            listed = sort_servers(
                worker_prices,
                worker_room,
                worker_residual,
                limited,
                worker_demand,
                t - 1,
                workers[t],
                order,
                price_of,
                room_of,
            )
            entries = fill_cheapest(
                listed, order, room_of, workers[t], t, slots, servers, counts, entries
            )
    worker_entries = entries
    for t in range(first, last + 1):
        if workers[t] > 0 and needed[workers[t]] > 0:
            wanted = needed[workers[t]]
            listed = sort_servers(
                ps_prices,
                ps_room,
                ps_residual,
                limited,
                ps_demand,
                t - 1,
                wanted,
                order,
                price_of,
                room_of,
            )
            entries = fill_cheapest(
                listed, order, room_of, wanted, t, slots, servers, counts, entries
            )
    return worker_entries, entries


@njit(cache=True, nogil=True)
def fill_cheapest(listed, order, room_of, wanted, t, slots, servers, counts, entries):
    """Put `wanted` units on the listed servers in their order; returns the number of entries."""
    for j in range(listed):
        units = min(room_of[j], wanted)
        if units > 0:
            slots[entries] = t
            servers[entries] = order[j]
            counts[entries] = units
            entries += 1
            wanted -= units
        if wanted == 0:
            break
    return entries


@njit(cache=True, nogil=True)
def best_schedules(
    worker_prices,
    ps_prices,
    worker_room,
    ps_room,
    worker_demand,
    ps_demand,
    needed,
    most,
    total,
    utilities,
    arrival,
    jobs,
    values,
    worker_use,
    ps_use,
    chosen,
):
    """Best responses of many jobs at full capacity, with staying out at 0.

    Arrays are those of `best_schedule` with a leading job axis, padded; ``most`` is N by job.
    For each job in `jobs` its value is written and its use added to `worker_use` and `ps_use`,
    shape (H, R, T), (K, R, T), or, if `chosen` has rows, its workers by slot written there.
    """
    horizon = utilities.shape[1] - 1
    largest = 0
    for j in jobs:
        largest = max(largest, total[j])
    widest = needed.shape[1]
    table = np.empty((horizon + 1, largest + 1))
    costs = np.empty((horizon + 1, widest))
    windows = np.empty((horizon + 1, 2), np.int64)
    workers = np.zeros(horizon + 1, np.int64)
    steps = np.arange(widest)
    size = horizon * (worker_room.shape[1] + ps_room.shape[1])
    slots = np.empty(size, np.int64)
    servers = np.empty(size, np.int64)
    counts = np.empty(size, np.int64)
    for j in jobs:
        n = most[j] + 1
        value, end = best_schedule(
            worker_prices,
            ps_prices,
            worker_prices,
            ps_prices,
            False,
            worker_room[j],
            ps_room[j],
            worker_demand[j],
            ps_demand[j],
            needed[j, :n],
            steps[:n],
            total[j],
            utilities[j],
            arrival[j],
            0.0,
            table,
            costs,
            windows,
            workers,
        )
        if end == 0:
            values[j] = 0.0
            continue
        values[j] = value
        worker_entries, entries = place_schedule(
            worker_prices,
            ps_prices,
            worker_prices,
            ps_prices,
            False,
            worker_room[j],
            ps_room[j],
            worker_demand[j],
            ps_demand[j],
            needed[j, :n],
            workers,
            arrival[j],
            end,
            slots,
            servers,
            counts,
        )
        for e in range(entries):
            t, h, k = slots[e] - 1, servers[e], counts[e]
            if e < worker_entries:
                for r in range(worker_demand.shape[1]):
                    worker_use[h, r, t] += k * worker_demand[j, r]
            else:
                for r in range(ps_demand.shape[1]):
                    ps_use[h, r, t] += k * ps_demand[j, r]
        if chosen.shape[0] > 0:
            chosen[j, :] = workers
