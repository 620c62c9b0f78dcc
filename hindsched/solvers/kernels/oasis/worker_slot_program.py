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
from hindsched.solvers.kernels.placement import NOTHING, Range, fill_limited, limited_prefix
from hindsched.solvers.kernels.ties import TIE


class ServerPool(NamedTuple):
    """The servers of workers, or of PSs, as one job meets them."""

    prices: Floats  # prices of the capacity rows, (H, R, T)
    residual: Floats  # what is left of the capacities, `loosened`; only if `limited`, (H, R, T)
    limited: bool  # whether the residual limits how many fit
    room: Ints  # how many units fit on an empty server (or group of servers), (H,)
    demand: Floats  # demand of one unit, (R,)


class Workload(NamedTuple):
    """What a job has to do, and what it is worth."""

    needed: Ints  # PSs needed for 0..N workers, (N + 1,)
    steps: Ints  # progress of 0..N workers in a slot; never falls, (N + 1,)
    total: int  # progress to reach
    utilities: Floats  # utility by completion slot, never rising from `arrival` on, (T + 1,)
    arrival: int  # first slot


@njit(cache=True, nogil=True)
def cheapest_first(side, t, most):
    """Servers with room in slot index `t`, cheapest unit first, ties by index.

    And by server the units that fit, of at most `most`, and the price of one.
    """
    demand = side.demand
    equal = 1.0 + TIE if side.limited else 1.0
    order = np.empty(side.room.shape[0], np.int64)
    room = np.minimum(side.room, most)
    prices = np.zeros(room.shape[0])
    listed = 0
    for h in range(room.shape[0]):
        price = 0.0
        for r in range(demand.shape[0]):
            if demand[r] > 0.0 and room[h] > 0:
                price += side.prices[h, r, t] * demand[r]
                if side.limited:
                    fits = np.floor(side.residual[h, r, t] / demand[r])
                    if fits < room[h]:
                        room[h] = int(fits)
        if room[h] <= 0:
            room[h] = 0
            continue
        prices[h] = price
        j = listed
        while j > 0 and prices[order[j - 1]] > price * equal:
            order[j] = order[j - 1]
            j -= 1
        order[j] = h
        listed += 1
    return order[:listed], room, prices


@njit(cache=True, nogil=True)
def slot_costs(workers, ps, needed, t, on_worker, on_ps, cost):
    """Fill ``cost[n]``: cheapest cost of `n` workers with their PSs, inf where they do not fit.

    Servers take units within the Ranges `on_worker`, (H,), and `on_ps`. Returns the largest n.
    """
    worker_cost, ps_cost = np.empty(needed.shape[0]), np.empty(needed[-1] + 1)
    order, room, prices = cheapest_first(workers, t, on_worker.high)
    limited_prefix(NOTHING, on_worker.low, room, prices, order, worker_cost)
    order, room, prices = cheapest_first(ps, t, on_ps.high)
    limited_prefix(NOTHING, on_ps.low, room, prices, order, ps_cost)
    able = 0
    for n in range(needed.shape[0]):
        cost[n] = worker_cost[n] + ps_cost[needed[n]]
        if cost[n] < np.inf:
            able = n
    return able


@njit(cache=True, nogil=True)
def best_schedule(workers, ps, task, floor):
    """Best payoff of one job, its completion slot, and the `units_by_slot` workers and PSs.

    -inf, 0 and nothing if no payoff is above `floor`.
    """
    needed, steps, total, utilities, arrival = task
    most = needed.shape[0] - 1
    last = utilities.shape[0] - 1
    table = np.empty((last + 1, total + 1))
    costs = np.empty((last + 1, most + 1))
    windows = np.empty((last + 1, 2), np.int64)
    chosen = np.zeros(last + 1, np.int64)
    on_worker = Range(np.zeros_like(workers.room), workers.room)
    on_ps = Range(np.zeros_like(ps.room), ps.room)

    tie = TIE if workers.limited else 0.0
    best, end = floor, 0
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
        n_max = slot_costs(workers, ps, needed, t - 1, on_worker, on_ps, cost)
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
        best = -np.inf
    else:
        trace_back(table, costs, windows, steps, total, arrival, end, tie, chosen)
    return best, end, units_by_slot(workers, chosen), units_by_slot(ps, needed[chosen])


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
def units_by_slot(side, wanted):
    """Slot, server and number of the `wanted` units by slot, (T + 1,), cheapest first."""
    entries = np.empty((3, wanted.shape[0] * side.room.shape[0]), np.int64)
    stop = 0
    for t in range(wanted.shape[0]):
        left = wanted[t]
        if left == 0:
            continue
        order, room, _ = cheapest_first(side, t - 1, side.room)
        for h in order:
            units = min(room[h], left)
            if units > 0:
                entries[0, stop] = t
                entries[1, stop] = h
                entries[2, stop] = units
                stop += 1
                left -= units
    return entries[:, :stop].copy()


@njit(cache=True, nogil=True)
def in_slot_of(limits, t):
    """Limits by slot and server in slot index `t`."""
    return Range(limits.low[t], limits.high[t])


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
    table = np.full((last_end + 1, total + 1), np.inf)
    costs = np.full((last_end + 1, most + 1), np.inf)
    best, end = -np.inf, 0
    table[arrival - 1, 0] = 0.0
    for t in range(arrival, last_end + 1):
        cost, old, new = costs[t], table[t - 1], table[t]
        limits = in_slot_of(on_worker, t - 1), in_slot_of(on_ps, t - 1)
        slot_costs(workers, ps, needed, t - 1, limits[0], limits[1], cost)
        for n in range(most + 1):
            if not in_slot.low[t - 1] <= n <= in_slot.high[t - 1]:
                cost[n] = np.inf
        if t >= first_end:
            cheapest = np.inf
            for n in range(1, min(most, total) + 1):
                cheapest = min(cheapest, old[total - n] + cost[n])
            if utilities[t] - cheapest > best:
                best, end = utilities[t] - cheapest, t
        least = max(0, total - most * (last_end - t))
        for n in range(most + 1):
            if cost[n] < np.inf:
                for s in range(max(least, n), total + 1):
                    new[s] = min(new[s], old[s - n] + cost[n])
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
        limits = in_slot_of(on_worker, t - 1), in_slot_of(on_ps, t - 1)
        order, room, _ = cheapest_first(workers, t - 1, limits[0].high)
        fill_limited(NOTHING, limits[0].low, room, order, chosen, worker_counts[t - 1])
        order, room, _ = cheapest_first(ps, t - 1, limits[1].high)
        fill_limited(NOTHING, limits[1].low, room, order, needed[chosen], ps_counts[t - 1])
        s -= chosen
    return best, end
