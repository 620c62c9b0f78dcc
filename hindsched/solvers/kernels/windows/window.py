"""Best (mode, start, placement) of one job under limits on its window and its servers.

A job runs N workers without pause. One host holds all PSs; given the host and the workers on it the
rest is the cheapest workers elsewhere, as in ``placement.py``, within the limits of each server.
The search over windows is plain, pruned by the best cost so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.modes import ModeColumns
from hindsched.solvers.kernels.cheapest_workers import room_for
from hindsched.solvers.kernels.limited_servers import Range, fill_limited, limited_prefix
from hindsched.solvers.kernels.placement import NOTHING, Kinds, fits_together, num_ps
from hindsched.solvers.kernels.stable_order import order_up_to_ties
from hindsched.solvers.kernels.ties import TIE


class Parts(NamedTuple):
    """Values by server, resource and slot, in two parts of the resources, as rows lie."""

    first: Floats  # the second may be of no resources, (servers, resources, slots)
    second: Floats

    @classmethod
    def of(cls, values: Floats) -> Parts:
        """All resources in the first part."""
        return cls(np.ascontiguousarray(values), np.zeros((len(values), 0, values.shape[2])))


@njit(cache=True)
def _add_up(sums: Floats, offset: int, prices: Floats, begin: int, end: int) -> None:
    """Go on with the sums of prices, shape (servers, resources, slots + 1), up to a slot."""
    for h in range(prices.shape[0]):
        for r in range(prices.shape[1]):
            for t in range(begin, end):
                sums[h, offset + r, t + 1] = sums[h, offset + r, t] + prices[h, r, t]


@njit(cache=True)
def _least(free: Parts, h: int, start: int, end: int, slack: float, left: Floats) -> None:
    """Fill `left`, shape (resources,), with what is free on a server in slots `start` .. `end`."""
    first, second = free
    for r in range(left.shape[0]):
        row = first[h, r] if r < first.shape[1] else second[h, r - first.shape[1]]
        least = row[start - 1]
        for t in range(start, end):
            least = min(least, row[t])
        left[r] = least + slack


@njit(cache=True)
def _counts(
    cost: float, chosen: tuple[int, int, int, int], least: float,
    best: tuple[int, int, int, int], tie: float,
) -> bool:  # fmt: skip
    """Whether a schedule of this cost at least may be the cheapest, or the first of a tie."""
    return bool(cost < least or (cost < np.inf and cost <= least + tie and chosen < best))


@njit(cache=True)
def cheapest_window(
    base: Floats,
    starts: tuple[int, int],
    ends: tuple[int, int],
    modes: ModeColumns,
    kinds: Kinds,
    free: Parts,
    prices: Parts,
    slack: float,
    on_worker: Range,
    on_ps: Range,
    workers: Ints,
    ps: Ints,
) -> tuple[float, int, int]:
    """Find the cheapest schedule within limits.

    Parameters
    ----------
    base : ndarray, shape (slots + 1,)
        Cost by the last slot of the window, 1-based; it never falls; inf where it must not end.
    starts, ends : (int, int)
        First and last start slot and end slot, all 1-based and inclusive.
    modes, kinds : tuple
        The job's modes, and what workers and PSs need, as `ModeColumns` and `Kinds`.
    free, prices : tuple
        What is free, and unit prices, as `Parts`.
    slack : float
        By how much what is free may fall short by rounding.
    on_worker, on_ps : tuple
        Limits on the workers and PSs of each server, as `Range`.
    workers, ps : ndarray of int, shape (servers,)
        Receive the placement.

    Returns
    -------
    cost, mode, start (1-based)
        The least cost of all, from which that of the chosen schedule differs by a tie at most. Mode
        -1 if there is none. Ties (`ties.TIE`): earlier completion, fewer workers, fewer PSs, then
        the order of the modes and of the servers.

    Notes
    -----
    The shortest windows come first and tell how little the others may cost.
    """
    worker, server, ratio, has_ps = kinds
    worker_type, ps_type, together, count, length = modes
    worker_low, worker_high = on_worker
    ps_low, ps_high = on_ps
    servers, slots = free[0].shape[0], free[0].shape[2]
    split, resources = free[0].shape[1], free[0].shape[1] + free[1].shape[1]
    sums = np.zeros((servers, resources, slots + 1))
    built = max(0, starts[0] - 1)  # sums of prices are known up to this slot
    left, no_demand = np.empty((servers, resources)), np.zeros(resources)
    most = np.empty(servers, dtype=np.int64)
    price, ps_price = np.empty(servers), np.zeros(servers)
    forced_workers, forced_ps = worker_low.sum(), ps_low.sum()
    least, best_start, best_host, best_on = np.inf, 0, NOTHING, 0
    best = slots + 1, 0, 0, NOTHING  # end, workers, PSs, mode: who is first takes a tie
    shortest = int(np.argmin(length)) if length.shape[0] else 0
    for turn in range(length.shape[0]):
        k = shortest if turn == 0 else turn - int(turn <= shortest)
        n, d, need = count[k], length[k], worker[worker_type[k]]
        if forced_workers > n:
            continue
        fewest = 1 if has_ps else 0
        ps_need = server[ps_type[k]] if has_ps else no_demand
        per_worker = ratio[worker_type[k], ps_type[k]] if has_ps else 0.0
        elsewhere = np.empty(n + 1)
        first = max(starts[0], ends[0] - d + 1)
        for start in range(first, min(starts[1], min(ends[1], slots) - d + 1) + 1):
            end = start + d - 1
            tie = TIE * max(abs(base[end]), abs(least) if least < np.inf else 0.0)
            if base[end] > least + tie or base[end] == np.inf:
                break
            if built < end:
                _add_up(sums, 0, prices[0], built, end)
                _add_up(sums, split, prices[1], built, end)
                built = end
            cheapest, cheapest_ps = np.inf, np.inf
            for h in range(servers):
                price[h], ps_price[h] = 0.0, 0.0
                for r in range(resources):
                    paid = sums[h, r, end] - sums[h, r, start - 1]
                    price[h] += need[r] * paid
                    ps_price[h] += ps_need[r] * paid
                cheapest, cheapest_ps = min(cheapest, price[h]), min(cheapest_ps, ps_price[h])
            # whatever is free
            bound = base[end] + n * cheapest + cheapest_ps
            if not _counts(bound, (end, n, fewest, k), least, best, tie):
                continue
            if together[k]:
                for h in range(servers):
                    if worker_low[h] != forced_workers or worker_high[h] < n:
                        continue
                    if ps_low[h] != forced_ps or not ps_low[h] <= fewest <= ps_high[h]:
                        continue
                    cost, chosen = base[end] + n * price[h] + ps_price[h], (end, n, fewest, k)
                    if not _counts(cost, chosen, least, best, tie):
                        continue
                    _least(free, h, start, end, slack, left[h])
                    if fits_together(n, fewest, need, ps_need, left[h]):
                        if cost < least - tie or chosen < best:
                            best, best_start, best_host, best_on = chosen, start, h, n
                        least = min(least, cost)
                continue
            for h in range(servers):
                _least(free, h, start, end, slack, left[h])
                most[h] = min(room_for(left[h], need), worker_high[h])
            order = order_up_to_ties(price)
            limited_prefix(NOTHING, worker_low, most, price, order, elsewhere)
            anywhere, chosen = base[end] + elsewhere[n], (end, n, fewest, k)
            if not _counts(anywhere, chosen, least, best, tie):
                continue
            if not has_ps:
                if anywhere < least - tie or chosen < best:
                    best, best_start, best_host, best_on = chosen, start, NOTHING, 0
                least = min(least, anywhere)
                continue
            for host in range(servers):
                most_on = min(most[host], n - 1)
                units = num_ps(n - most_on, per_worker)
                cost = anywhere + units * ps_price[host]
                if ps_low[host] != forced_ps:
                    continue
                if not _counts(cost, (end, n, units, k), least, best, tie):
                    continue
                if not fits_together(0, units, need, ps_need, left[host]):
                    continue
                limited_prefix(host, worker_low, most, price, order, elsewhere)
                for on_host in range(most_on, worker_low[host] - 1, -1):
                    units = num_ps(n - on_host, per_worker)
                    paid = on_host * price[host] + units * ps_price[host] + elsewhere[n - on_host]
                    cost, chosen = base[end] + paid, (end, n, units, k)
                    if not ps_low[host] <= units <= ps_high[host]:
                        continue
                    if not _counts(cost, chosen, least, best, tie):
                        continue
                    if fits_together(on_host, units, need, ps_need, left[host]):
                        if cost < least - tie or chosen < best:
                            best, best_start, best_host, best_on = chosen, start, host, on_host
                        least = min(least, cost)
    best_mode = best[3]
    if best_mode < 0:
        return least, best_mode, best_start
    workers[:], ps[:] = 0, 0
    n, end, need = (
        count[best_mode],
        best_start + length[best_mode] - 1,
        worker[worker_type[best_mode]],
    )
    if best_on < n:
        price[:] = 0.0
        for h in range(servers):
            _least(free, h, best_start, end, slack, left[h])
            most[h] = min(room_for(left[h], need), worker_high[h])
            for t in range(best_start - 1, end):
                for r in range(resources):
                    part = prices[0][h, r, t] if r < split else prices[1][h, r - split, t]
                    price[h] += need[r] * part
        fill_limited(best_host, worker_low, most, order_up_to_ties(price), n - best_on, workers)
    if best_host >= 0:
        workers[best_host] = best_on
        if has_ps:
            elsewhere_now = n - best_on
            ps[best_host] = num_ps(elsewhere_now, ratio[worker_type[best_mode], ps_type[best_mode]])
    return least, best_mode, best_start
