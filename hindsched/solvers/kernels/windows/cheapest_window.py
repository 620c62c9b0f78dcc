"""Best (mode, start, placement) of one job, within limits on its window and its servers.

A job runs N workers without pause. One host holds all PSs; given the host and the workers on it the
rest is the cheapest workers elsewhere, as in ``placement.py``, within the limits of each server.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.placement import (
    NOTHING,
    UNLIMITED,
    Kinds,
    Range,
    covering_ps,
    fill_limited,
    fits_together,
    limited_prefix,
    room_for,
)
from hindsched.solvers.kernels.stable_order import order_up_to_ties, stable_order
from hindsched.solvers.kernels.ties import TIE


@njit(cache=True)
def _least(free: Floats, h: int, start: int, end: int, left: Floats) -> None:
    """Fill `left`, shape (resources,), with what is free on a server in slots `start` .. `end`."""
    for r in range(left.shape[0]):
        row = free[h, r]
        least = row[start - 1]
        for t in range(start, end):
            least = min(least, row[t])
        left[r] = least


@njit(cache=True)
def _room_in(free: Floats, slot: int, need: Floats, most: int, left: Floats) -> int:
    """How many workers all servers hold in one slot, counted up to `most`."""
    room = 0
    for h in range(left.shape[0]):
        _least(free, h, slot, slot, left[h])
        room += min(room_for(left[h], need), most)
        if room >= most:
            return most
    return room


@njit(cache=True)
def _is_better(
    cost: float, chosen: tuple[int, int], known: float, best: tuple[int, int], tie: float
) -> bool:
    """Whether a cost is below the known one, or the first of a tie; of hosts the cheapest is."""
    if chosen == best:
        return bool(cost < known)
    return bool(cost < known - tie or (cost <= known + tie and chosen < best))


@njit(cache=True)
def _starts(length: int, starts: tuple[int, int], ends: tuple[int, int]) -> tuple[int, int]:
    """First start of a window of so many slots, and the one behind the last."""
    return max(starts[0], ends[0] - length + 1), min(starts[1], ends[1] - length + 1) + 1


@njit(cache=True)
def cheapest_window(
    base: Floats, starts: tuple[int, int], ends: tuple[int, int], modes: tuple[Ints, ...],
    kinds: Kinds, free: Floats, sums: Floats, floor: Floats, quota: Ints, on_worker: Range,
    on_ps: Range, limit: float, greedy: bool, workers: Ints, ps: Ints,
) -> tuple[float, int, int]:  # fmt: skip
    """Find the cheapest schedule within limits that costs less than `limit`: cost, mode, start.

    The least cost of all, from which that of the chosen schedule differs by a tie at most; mode -1
    if there is none; start 1-based. Ties (`ties.TIE`): earlier completion, then the order of the
    modes; of its hosts the cheapest. ``base[t]`` is the cost of ending in slot t, 1-based,
    (slots + 1,); it never falls from the first start on; inf where a job must not end. `starts` and
    `ends` are the first and last slots of each, 1-based. `free`, `loosened`, is (servers,
    resources, slots), `sums` of the prices up to each slot (servers, resources, slots + 1). Types
    of workers stand before those of PSs in `floor`, (types, slots + 1), sums of what the cheapest
    unit of each slot costs, and in `quota`, (types, slots), how many units the job may have. With
    `greedy` Algorithm 4 of batchsched places, without limits on servers. `workers` and `ps`,
    (servers,), receive the placement.
    """
    worker, server, ratio, has_ps = kinds
    worker_type, ps_type, together, count, length = modes
    worker_low, worker_high = on_worker
    ps_low, ps_high = on_ps
    servers, resources, slots = free.shape
    ends = ends[0], min(ends[1], slots)
    # The cheapest units of every slot alone bound what a window costs; best modes come first.
    ps_floor = floor[worker.shape[0] :]
    cheapest_units = np.full((floor.shape[0], slots + 1), np.inf)  # by type and length, when asked
    bounds = np.full(length.shape[0], np.inf)
    largest = 0.0
    for k in range(length.shape[0]):
        d = length[k]
        first, behind = _starts(d, starts, ends)
        if first >= behind or base[first + d - 1] == np.inf:
            continue
        bounds[k] = base[first + d - 1]
        worker_units, ps_units = (worker_type[k], count[k]), (worker.shape[0] + ps_type[k], 1)
        for kind, units in (worker_units, ps_units if has_ps else (worker_type[k], 0)):
            if cheapest_units[kind, d] == np.inf:
                for start in range(first, behind):
                    paid = floor[kind, start + d - 1] - floor[kind, start - 1]
                    cheapest_units[kind, d] = min(cheapest_units[kind, d], paid)
            bounds[k] += units * cheapest_units[kind, d]
    for end in range(1, ends[1] + 1):
        if base[end] < np.inf:
            largest = max(largest, abs(base[end]))
    left, no_demand = np.empty((servers, resources)), np.zeros(resources)
    most, room_before = np.empty(servers, dtype=np.int64), np.empty(servers, dtype=np.int64)
    price, ps_price = np.empty(servers), np.zeros(servers)
    forced_workers, forced_ps = worker_low.sum(), ps_low.sum()
    held = np.full((worker.shape[0], slots + 1), NOTHING)  # workers of a type in a slot, when asked
    largest_count = count.max() if count.size else 0
    least = known = limit  # of all, and of the chosen schedule, which a tie may be between
    best_start, best_host, best_on = 0, NOTHING, 0
    best = NOTHING, NOTHING  # end, mode: who is first takes a tie
    for k in stable_order(bounds):
        if bounds[k] == np.inf or bounds[k] > known + TIE * max(largest, abs(known)):
            break
        m, p, n, d, need = worker_type[k], ps_type[k], count[k], length[k], worker[worker_type[k]]
        if forced_workers > n:
            continue
        fewest = 1 if has_ps else 0
        ps_need = server[p] if has_ps else no_demand
        per_worker = ratio[m, p] if has_ps else 0.0
        elsewhere = np.empty(n + 1)
        clear = blocked = 0  # looked up to there; last slot that does not hold n
        for start in range(*_starts(d, starts, ends)):
            end = start + d - 1
            chosen = end, k
            tie = TIE * max(abs(base[end]), abs(known) if known < np.inf else 0.0)
            if base[end] > known + tie or base[end] == np.inf:
                break
            if chosen >= best and bounds[k] >= known - tie:  # a tie at most, and it ends later
                least = min(least, bounds[k])
                break
            bound = base[end] + n * (floor[m, end] - floor[m, start - 1])
            if has_ps:
                bound += ps_floor[p, end] - ps_floor[p, start - 1]
            if not _is_better(bound, chosen, known, best, tie):
                least = min(least, bound)
                continue
            for slot in range(max(clear + 1, start), end + 1):
                if held[m, slot] == NOTHING:
                    held[m, slot] = min(
                        quota[m, slot - 1], _room_in(free, slot, need, largest_count, left)
                    )
                if held[m, slot] < n:
                    blocked = slot
            clear = max(clear, end)
            if blocked >= start:
                continue
            most_units = UNLIMITED
            for slot in range(start - 1, end if has_ps else 0):
                most_units = min(most_units, quota[worker.shape[0] + p, slot])
            if most_units < fewest:
                continue
            cheapest, cheapest_ps = np.inf, np.inf
            for h in range(servers):
                price[h], ps_price[h] = 0.0, 0.0
                for r in range(resources):
                    paid = sums[h, r, end] - sums[h, r, start - 1]
                    price[h] += need[r] * paid
                    ps_price[h] += ps_need[r] * paid
                cheapest, cheapest_ps = min(cheapest, price[h]), min(cheapest_ps, ps_price[h])
            bound = base[end] + n * cheapest + cheapest_ps  # whatever is free
            if not _is_better(bound, chosen, known, best, tie):
                least = min(least, bound)
                continue
            if together[k]:
                for h in range(servers):
                    if worker_low[h] != forced_workers or worker_high[h] < n:
                        continue
                    if ps_low[h] != forced_ps or not ps_low[h] <= fewest <= ps_high[h]:
                        continue
                    cost = base[end] + n * price[h] + ps_price[h]
                    is_better = _is_better(cost, chosen, known, best, tie)
                    if not is_better and cost >= least:
                        continue
                    _least(free, h, start, end, left[h])
                    if fits_together(n, fewest, need, ps_need, left[h]):
                        least = min(least, cost)
                        if is_better:
                            known, best, best_start, best_host, best_on = cost, chosen, start, h, n
                continue
            for h in range(servers):
                _least(free, h, start, end, left[h])
                most[h] = min(room_for(left[h], need), worker_high[h])
            order = order_up_to_ties(price)
            limited_prefix(NOTHING, worker_low, most, price, order, elsewhere)
            anywhere = base[end] + elsewhere[n]
            if not _is_better(anywhere, chosen, known, best, tie):
                least = min(least, anywhere)
                continue
            if not has_ps:
                least = min(least, anywhere)
                known, best, best_start = anywhere, chosen, start
                best_host, best_on = NOTHING, 0
                continue
            cheaper = 0
            for h in order:  # room on cheaper servers, which Algorithm 4 fills before the host
                room_before[h] = cheaper
                cheaper += most[h]
            for host in range(servers):
                most_on = min(most[host], n - 1)
                if greedy:
                    most_on = max(0, min(most_on, n - room_before[host]))
                units = covering_ps(n - most_on, per_worker)
                if ps_low[host] != forced_ps:
                    continue
                bound = anywhere + units * ps_price[host]
                if bound > known + tie:
                    continue
                if not fits_together(0, units, need, ps_need, left[host]):
                    continue
                limited_prefix(host, worker_low, most, price, order, elsewhere)
                for on_host in range(most_on, worker_low[host] - 1, -1):
                    units = covering_ps(n - on_host, per_worker)
                    if not ps_low[host] <= units <= min(ps_high[host], most_units):
                        continue
                    paid = on_host * price[host] + units * ps_price[host] + elsewhere[n - on_host]
                    cost = base[end] + paid
                    is_better = _is_better(cost, chosen, known, best, tie)
                    if not is_better and cost >= least and not greedy:
                        continue
                    if fits_together(on_host, units, need, ps_need, left[host]):
                        least = min(least, cost)
                        if is_better:
                            known, best, best_start = cost, chosen, start
                            best_host, best_on = host, on_host
                        if greedy:  # the most workers that leave room
                            break
    best_mode = best[1]
    if best_mode < 0:
        return least, best_mode, best_start
    workers[:], ps[:] = 0, 0
    m, n, end = worker_type[best_mode], count[best_mode], best_start + length[best_mode] - 1
    if best_on < n:
        for h in range(servers):
            _least(free, h, best_start, end, left[h])
            most[h] = min(room_for(left[h], worker[m]), worker_high[h])
            price[h] = 0.0
            for r in range(resources):
                price[h] += worker[m, r] * (sums[h, r, end] - sums[h, r, best_start - 1])
        fill_limited(best_host, worker_low, most, order_up_to_ties(price), n - best_on, workers)
    if best_host >= 0:
        workers[best_host] = best_on
        if has_ps:
            ps[best_host] = covering_ps(n - best_on, ratio[m, ps_type[best_mode]])
    return least, best_mode, best_start
