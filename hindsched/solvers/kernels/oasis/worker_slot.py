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

Ties (`ties.TIE`) where what is left limits the job, as in a decision: the earliest end among equal
payoffs; then, from the last slot to the first, the fewest workers among equal costs; servers of
equal prices in the file's order. At full capacity, where a bound hangs on it, only what is equal to
the last bit is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.placement import NOTHING, fill_limited, limited_prefix
from hindsched.solvers.kernels.stable_order import stable_order
from hindsched.solvers.kernels.ties import TIE


class Side(NamedTuple):
    """The servers of workers, or of PSs, as one job meets them."""

    prices: Floats  # prices of the capacity rows, (H, R, T)
    residual: Floats  # what is left of the capacities; read only if `limited`, (H, R, T)
    # what floating point may have lost of the residual; read only if `limited`, (H, R, T)
    slack: Floats
    limited: bool  # whether the residual limits how many fit
    room: Ints  # how many units fit on an empty server (or group of servers), (H,)
    demand: Floats  # demand of one unit, (R,)


class Task(NamedTuple):
    """What a job has to do, and what it is worth."""

    needed: Ints  # PSs needed for 0..N workers, (N + 1,)
    steps: Ints  # progress of 0..N workers in a slot; never falls, (N + 1,)
    total: int  # progress to reach
    utilities: Floats  # utility by completion slot, never rising from `arrival` on, (T + 1,)
    arrival: int  # first slot


class Scratch(NamedTuple):
    """Work arrays of `best_schedule`; the last one receives the number of workers by slot.

    Shapes (T + 1, >= total + 1), (T + 1, >= N + 1), (T + 1, 2) and (T + 1,).
    """

    table: Floats
    costs: Floats
    windows: Ints
    workers: Ints


class Jobs(NamedTuple):
    """Many jobs at full capacity: the fields of `Side` and `Task` with a leading job axis, padded.

    `most` is N by job.
    """

    worker_room: Ints
    ps_room: Ints
    worker_demand: Floats
    ps_demand: Floats
    needed: Ints
    most: Ints
    total: Ints
    utilities: Floats
    arrival: Ints


class Listing(NamedTuple):
    """Servers with room, cheapest unit first: index, unit price and how many units fit."""

    order: Ints
    price: Floats
    room: Ints


@njit(cache=True, nogil=True)
def full_side(prices, room, demand):
    """Empty servers at these prices."""
    return Side(prices, prices, prices, False, room, demand)


@njit(cache=True, nogil=True)
def empty_listing(workers, ps):
    """Room for the servers of either side."""
    width = max(workers.room.shape[0], ps.room.shape[0])
    return Listing(np.empty(width, np.int64), np.empty(width), np.empty(width, np.int64))


@njit(cache=True, nogil=True)
def sort_servers(side, t, most, listing):
    """List the servers with room in slot index `t`, cheapest unit first, ties by index.

    Returns their number; of a server at most `most` units count.
    """
    order, price_of, room_of = listing
    demand = side.demand
    equal = 1.0 + TIE if side.limited else 1.0
    listed = 0
    for h in range(side.room.shape[0]):
        units = side.room[h]
        if units <= 0:
            continue
        if side.limited:
            for r in range(demand.shape[0]):
                if demand[r] > 0.0:
                    fits = np.floor((side.residual[h, r, t] + side.slack[h, r, t]) / demand[r])
                    if fits < units:
                        units = int(fits)
            if units <= 0:
                continue
        price = 0.0
        for r in range(demand.shape[0]):
            if demand[r] > 0.0:
                price += side.prices[h, r, t] * demand[r]
        if units > most:
            units = most
        j = listed
        while j > 0 and price_of[j - 1] > price * equal:
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
def prefix_costs(listed, listing, most, cost):
    """Fill ``cost[n]``: price of the `n` cheapest units. Returns the most units there are."""
    cost[0] = 0.0
    n = 0
    for j in range(listed):
        for _ in range(listing.room[j]):
            if n == most:
                return n
            cost[n + 1] = cost[n] + listing.price[j]
            n += 1
    return n


@njit(cache=True, nogil=True)
def slot_costs(workers, ps, needed, t, listing, worker_cost, ps_cost, cost):
    """Fill ``cost[n]``: cheapest cost of `n` workers with their PSs; returns the largest n."""
    most = needed.shape[0] - 1
    listed = sort_servers(workers, t, most, listing)
    able = prefix_costs(listed, listing, most, worker_cost)
    listed = sort_servers(ps, t, needed[able], listing) if needed[able] > 0 else 0
    servers = prefix_costs(listed, listing, needed[able], ps_cost)
    while able > 0 and needed[able] > servers:
        able -= 1
    for n in range(able + 1):
        cost[n] = worker_cost[n] + ps_cost[needed[n]]
    return able


@njit(cache=True, nogil=True)
def best_schedule(workers, ps, task, floor, scratch):
    """Best payoff of one job and its completion slot; -inf and 0 if none is above `floor`.

    `scratch` receives the number of workers by slot.
    """
    needed, steps, total, utilities, arrival = task
    table, costs, windows, chosen = scratch
    most = needed.shape[0] - 1
    listing = empty_listing(workers, ps)
    worker_cost = np.empty(most + 1)
    ps_cost = np.empty(needed[most] + 1)

    tie = TIE if workers.limited else 0.0
    best, end = floor, 0
    last = utilities.shape[0] - 1
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
        n_max = slot_costs(workers, ps, needed, t - 1, listing, worker_cost, ps_cost, cost)
        cost[n_max + 1 :] = np.inf
        old, new = table[t - 1], table[t]
        old_lo, old_hi = windows[t - 1, 0], windows[t - 1, 1]
        lo = max(old_lo, total - steps[most] * (last - t))
        hi = min(total, old_hi + steps[n_max])
        if lo > hi:
            break
        relax_states(old, old_lo, old_hi, new, lo, hi, cost, steps, n_max)
        if hi == total and utilities[t] - new[total] > best + tie * utilities[t]:
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
    trace_back(table, costs, windows, steps, total, arrival, end, tie, chosen)
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
def trace_back(table, costs, windows, steps, total, arrival, end, tie, workers):
    """Recover the workers by slot: the fewest that explain each state's cost up to a tie."""
    workers[:] = 0
    slack = 1.0 + tie
    s = total
    for t in range(end, arrival - 1, -1):
        old_lo, old_hi = windows[t - 1, 0], windows[t - 1, 1]
        for n in range(steps.shape[0]):
            previous = max(0, s - steps[n])
            if not old_lo <= previous <= old_hi:
                continue
            if table[t - 1, previous] + costs[t, n] <= table[t, s] * slack:
                workers[t] = n
                s = previous
                break


@njit(cache=True, nogil=True)
def place_schedule(workers, ps, needed, chosen, first, last, entries):
    """Write the placements of the `chosen` workers by slot, (T + 1,), in slots `first` .. `last`.

    `entries`, (3, entries), receives slot, server and count: worker entries first, then those of
    PSs. Returns the number of worker entries, and of all entries.
    """
    listing = empty_listing(workers, ps)
    stop = 0
    for t in range(first, last + 1):
        if chosen[t] > 0:
            listed = sort_servers(workers, t - 1, chosen[t], listing)
            stop = fill_cheapest(listed, listing, chosen[t], t, entries, stop)
    split = stop
    for t in range(first, last + 1):
        wanted = needed[chosen[t]]
        if chosen[t] > 0 and wanted > 0:
            listed = sort_servers(ps, t - 1, wanted, listing)
            stop = fill_cheapest(listed, listing, wanted, t, entries, stop)
    return split, stop


@njit(cache=True, nogil=True)
def fill_cheapest(listed, listing, wanted, t, entries, stop):
    """Put `wanted` units on the listed servers in their order; returns the number of entries."""
    for j in range(listed):
        units = min(listing.room[j], wanted)
        if units > 0:
            entries[0, stop] = t
            entries[1, stop] = listing.order[j]
            entries[2, stop] = units
            stop += 1
            wanted -= units
        if wanted == 0:
            break
    return stop


@njit(cache=True, nogil=True)
def best_schedules(worker_prices, ps_prices, jobs, values, worker_use, ps_use):
    """Best responses of many jobs at full capacity, with staying out at 0.

    `values`, (J,), receives each job's; `worker_use` and `ps_use`, shaped as the prices, (H, R, T)
    and (K, R, T), the use of all.
    """
    horizon = jobs.utilities.shape[1] - 1
    widest = jobs.needed.shape[1]
    largest = 0
    for j in range(values.shape[0]):
        largest = max(largest, jobs.total[j])
    scratch = Scratch(
        np.empty((horizon + 1, largest + 1)),
        np.empty((horizon + 1, widest)),
        np.empty((horizon + 1, 2), np.int64),
        np.zeros(horizon + 1, np.int64),
    )
    steps = np.arange(widest)
    size = horizon * (jobs.worker_room.shape[1] + jobs.ps_room.shape[1])
    entries = np.empty((3, size), np.int64)
    for j in range(values.shape[0]):
        n = jobs.most[j] + 1
        worker_demand, ps_demand = jobs.worker_demand[j], jobs.ps_demand[j]
        workers = full_side(worker_prices, jobs.worker_room[j], worker_demand)
        ps = full_side(ps_prices, jobs.ps_room[j], ps_demand)
        needed, arrival = jobs.needed[j, :n], jobs.arrival[j]
        task = Task(needed, steps[:n], jobs.total[j], jobs.utilities[j], arrival)
        value, end = best_schedule(workers, ps, task, 0.0, scratch)
        values[j] = 0.0
        if end == 0:
            continue
        values[j] = value
        split, stop = place_schedule(workers, ps, needed, scratch.workers, arrival, end, entries)
        for e in range(stop):
            t, h, k = entries[0, e] - 1, entries[1, e], entries[2, e]
            if e < split:
                for r in range(worker_demand.shape[0]):
                    worker_use[h, r, t] += k * worker_demand[r]
            else:
                for r in range(ps_demand.shape[0]):
                    ps_use[h, r, t] += k * ps_demand[r]


@njit(cache=True, nogil=True)
def unit_prices(side, t, price_of):
    """Price of one unit on every server in slot index `t`."""
    for h in range(price_of.shape[0]):
        total = 0.0
        for r in range(side.demand.shape[0]):
            if side.demand[r] > 0.0:
                total += side.prices[h, r, t] * side.demand[r]
        price_of[h] = total


@njit(cache=True, nogil=True)
def best_limited_schedule(
    workers, ps, task, first_end, last_end, in_slot, on_worker, on_ps, worker_counts, ps_counts
):
    """Best payoff and end of a job within limits, at full capacity; -inf and 0 if there is none.

    For a branching: the end lies in `first_end` .. `last_end`, the workers of a slot, and the
    workers and PSs on a server in a slot, in Ranges of shape (T,), (T, H), (T, K). Schedules make
    `total` worker-slots, no more, run a worker in their end slot, and use exactly the PSs that the
    workers need; leaving out others loses nothing, as dropping idle ones keeps a schedule feasible.
    `worker_counts` and `ps_counts`, (T, H), (T, K), receive the schedule.
    """
    needed, _, total, utilities, arrival = task
    most = needed.shape[0] - 1
    width = total + 1
    table = np.full((last_end + 1, width), np.inf)
    costs = np.full((last_end + 1, most + 1), np.inf)
    worker_price = np.empty(workers.room.shape[0])
    ps_price = np.empty(ps.room.shape[0])
    ps_cost = np.empty(needed[most] + 1)
    worker_most = np.minimum(workers.room, on_worker.high)
    ps_most = np.minimum(ps.room, on_ps.high)
    best, end = -np.inf, 0
    table[arrival - 1, 0] = 0.0
    reached = 0
    for t in range(arrival, last_end + 1):
        cost, old, new = costs[t], table[t - 1], table[t]
        unit_prices(workers, t - 1, worker_price)
        unit_prices(ps, t - 1, ps_price)
        order = stable_order(worker_price)
        limited_prefix(NOTHING, on_worker.low[t - 1], worker_most[t - 1], worker_price, order, cost)
        order = stable_order(ps_price)
        limited_prefix(NOTHING, on_ps.low[t - 1], ps_most[t - 1], ps_price, order, ps_cost)
        for n in range(most + 1):
            if in_slot.low[t - 1] <= n <= in_slot.high[t - 1]:
                cost[n] += ps_cost[needed[n]]
            else:
                cost[n] = np.inf
        if t >= first_end:
            cheapest = np.inf
            for n in range(1, min(most, total) + 1):
                cheapest = min(cheapest, old[total - n] + cost[n])
            if utilities[t] - cheapest > best:
                best, end = utilities[t] - cheapest, t
        least = max(0, total - most * (last_end - t))
        before = reached
        reached = min(total, reached + most)
        for n in range(most + 1):
            c = cost[n]
            if c == np.inf:
                continue
            first = max(least, n)
            for s in range(first, min(reached, before + n) + 1):
                new[s] = min(new[s], old[s - n] + c)
    if end == 0:
        return -np.inf, 0
    worker_counts[:] = 0
    ps_counts[:] = 0
    s = total
    for t in range(end, arrival - 1, -1):
        chosen = -1
        value = np.inf
        for n in range(1 if t == end else 0, min(most, s) + 1):
            if table[t - 1, s - n] + costs[t, n] < value:
                value = table[t - 1, s - n] + costs[t, n]
                chosen = n
        unit_prices(workers, t - 1, worker_price)
        unit_prices(ps, t - 1, ps_price)
        order = stable_order(worker_price)
        fill_limited(
            NOTHING, on_worker.low[t - 1], worker_most[t - 1], order, chosen, worker_counts[t - 1]
        )
        order = stable_order(ps_price)
        fill_limited(
            NOTHING, on_ps.low[t - 1], ps_most[t - 1], order, needed[chosen], ps_counts[t - 1]
        )
        s -= chosen
    return best, end
