"""Best (mode, start, placement) of one gang job under limits on its window and its servers.

A job runs N workers without pause on servers whose capacity is all there: what fits does not depend
on the window, only the prices do. One host holds all PSs; given the host and the workers on it the
rest is the cheapest workers elsewhere, as in ``placement.py``, within the limits of each server.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.modes import ModeColumns
from hindsched.solvers.kernels.cheapest_workers import room_for
from hindsched.solvers.kernels.limited_servers import Range, fill_limited, limited_prefix
from hindsched.solvers.kernels.placement import NOTHING, Kinds, fits_together, num_ps
from hindsched.solvers.kernels.stable_order import stable_order


@njit(cache=True)
def window_prices(
    start: int, end: int, prefix: Floats, worker: Floats, server: Floats, price: Floats,
    ps_price: Floats,
) -> None:  # fmt: skip
    """Fill the window prices of a worker and of a PS on every server; slots are 1-based."""
    for h in range(price.shape[0]):
        price[h], ps_price[h] = 0.0, 0.0
        for r in range(worker.shape[0]):
            paid = prefix[end, h, r] - prefix[start - 1, h, r]
            price[h] += worker[r] * paid
            if server.shape[0]:
                ps_price[h] += server[r] * paid


@njit(cache=True)
def best_limited_window(
    base: Floats,
    starts: tuple[int, int],
    ends: tuple[int, int],
    modes: ModeColumns,
    kinds: Kinds,
    capacity: Floats,
    prefix: Floats,
    on_worker: Range,
    on_ps: Range,
    workers: Ints,
    ps: Ints,
) -> tuple[float, int, int]:
    """Find the cheapest schedule within limits.

    Parameters
    ----------
    base : ndarray, shape (slots + 1,)
        Cost by the last slot of the window, 1-based; inf where the job must not end.
    starts, ends : (int, int)
        First and last start slot and end slot, all 1-based and inclusive.
    modes, kinds : tuple
        The job's modes, and what workers and PSs need, as `ModeColumns` and `Kinds`.
    capacity : ndarray, shape (servers, resources)
        What an empty server has, `loosened`.
    prefix : ndarray, shape (slots + 1, servers, resources)
        Sums of the slots' prices.
    on_worker, on_ps : tuple
        Limits on the workers and PSs of each server, as `Range`.
    workers, ps : ndarray of int, shape (servers,)
        Receive the placement.

    Returns
    -------
    cost, mode, start (1-based)
        Mode -1 if there is none. Ties: the first mode, then the earlier start.
    """
    worker, server, ratio, has_ps = kinds
    worker_type, ps_type, together, count, length = modes
    worker_low, worker_high = on_worker
    ps_low, ps_high = on_ps
    servers = capacity.shape[0]
    slots = prefix.shape[0] - 1
    most = np.empty(servers, dtype=np.int64)
    price, ps_price = np.empty(servers), np.zeros(servers)
    no_demand = np.empty(0)
    forced_workers, forced_ps = worker_low.sum(), ps_low.sum()
    best, best_mode, best_start, best_host, best_on = np.inf, NOTHING, 0, NOTHING, 0
    for k in range(count.shape[0]):
        n, d, w = count[k], length[k], worker_type[k]
        if forced_workers > n:
            continue
        p = ps_type[k] if has_ps else 0
        ps_demand = server[p] if has_ps else no_demand
        for h in range(servers):
            most[h] = min(room_for(capacity[h], worker[w]), worker_high[h])
        elsewhere = np.empty(n + 1)
        first = max(starts[0], ends[0] - d + 1)
        last = min(starts[1], min(ends[1], slots) - d + 1)
        for start in range(first, last + 1):
            end = start + d - 1
            if base[end] >= best:
                continue
            window_prices(start, end, prefix, worker[w], ps_demand, price, ps_price)
            if together[k]:
                for h in range(servers):
                    if most[h] < n or worker_low[h] != forced_workers or ps_low[h] != forced_ps:
                        continue
                    cost = base[end] + n * price[h] + ps_price[h]
                    if cost >= best:
                        continue
                    if has_ps:
                        if not ps_low[h] <= 1 <= ps_high[h]:
                            continue
                        if not fits_together(n, 1, worker[w], server[p], capacity[h]):
                            continue
                    best, best_mode, best_start, best_host, best_on = cost, k, start, h, n
                continue
            order = stable_order(price)
            if not has_ps:
                limited_prefix(NOTHING, worker_low, most, price, order, elsewhere)
                if base[end] + elsewhere[n] < best:
                    best, best_mode, best_start = base[end] + elsewhere[n], k, start
                    best_host, best_on = NOTHING, 0
                continue
            for host in range(servers):
                if ps_low[host] != forced_ps:
                    continue
                limited_prefix(host, worker_low, most, price, order, elsewhere)
                for on_host in range(worker_low[host], min(most[host], n - 1) + 1):
                    units = num_ps(n - on_host, ratio[w, p])
                    cost = base[end] + on_host * price[host] + units * ps_price[host]
                    cost += elsewhere[n - on_host]
                    if cost >= best or not ps_low[host] <= units <= ps_high[host]:
                        continue
                    if fits_together(on_host, units, worker[w], server[p], capacity[host]):
                        best, best_mode, best_start = cost, k, start
                        best_host, best_on = host, on_host
    if best_mode < 0:
        return best, best_mode, best_start
    k = best_mode
    n, w = count[k], worker_type[k]
    workers[:] = 0
    ps[:] = 0
    if together[k]:
        workers[best_host] = n
        ps[best_host] = 1
        return best, best_mode, best_start
    for h in range(servers):
        most[h] = min(room_for(capacity[h], worker[w]), worker_high[h])
    end = best_start + length[k] - 1
    window_prices(best_start, end, prefix, worker[w], no_demand, price, ps_price)
    order = stable_order(price)
    fill_limited(best_host, worker_low, most, order, n - best_on, workers)
    if best_host >= 0:
        workers[best_host] = best_on
        ps[best_host] = num_ps(n - best_on, ratio[w, ps_type[k]])
    return best, best_mode, best_start
