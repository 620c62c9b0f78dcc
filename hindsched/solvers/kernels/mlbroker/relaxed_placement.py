"""Least cost of one mlbroker job in one slot with fractional workers, and its rounding, compiled.

Given the PS the continuous relaxation needs no solver: every GB goes where transport plus worker
price is least. That is a bound in closed form, and the start of the heuristics.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solvers.kernels.mlbroker.blocks import PricedBlock
from hindsched.solvers.kernels.stable_order import copy_to


@njit(cache=True)
def relaxed_placement(block: PricedBlock, ps: int) -> tuple[float, Floats]:
    """Least cost with fractional workers and the PS in centre `ps`: a bound, in closed form.

    Returns
    -------
    cost : float
        The relaxed optimum: at most the integer one.
    workers : ndarray, shape (R,)
        Fractional workers that attain it, `needed` in total.
    """
    data, capacity, needed, _, _, ps_price, _, arc, launch = block
    centers = data.size
    workers = np.zeros(centers)
    cost = ps_price[ps] + launch[ps]
    if needed == 0:
        return cost, workers
    per_gb = np.empty(centers)
    cheapest = _prices_per_gb(block, ps, per_gb)
    total = 0.0
    for i in range(centers):
        if data[i] <= 0.0:
            continue
        total += data[i]
        best = -1
        best_price = np.inf
        for r in range(centers):
            price = arc[i, r] + per_gb[r]
            if price < best_price:
                best = r
                best_price = price
        workers[best] += data[i] / capacity
        cost += data[i] * best_price
    idle = max(0.0, needed - total / capacity)
    workers[cheapest] += idle
    cost += idle * (per_gb[cheapest] * capacity)
    return cost, workers


@njit(cache=True)
def relaxed_by_place(block: PricedBlock) -> tuple[Floats, Floats]:
    """`relaxed_placement` for every place of the PS: costs (R,), workers by place (R, R)."""
    centers = block.data.size
    costs, workers = np.empty(centers), np.empty((centers, centers))
    for ps in range(centers):
        costs[ps], own = relaxed_placement(block, ps)
        copy_to(workers[ps], own)
    return costs, workers


@njit(cache=True)
def _prices_per_gb(block: PricedBlock, ps: int, per_gb: Floats) -> int:
    """Write what a GB costs in each centre with the PS in `ps`; the cheapest centre."""
    _, capacity, needed, _, worker_price, _, exchange, _, launch = block
    cheapest = 0
    for r in range(per_gb.size):
        each = worker_price[r] + exchange[r, ps]
        if r != ps:
            each += launch[r] / needed
        per_gb[r] = each / capacity
        if per_gb[r] < per_gb[cheapest]:
            cheapest = r
    return cheapest


@njit(cache=True)
def relaxed_best(block: PricedBlock) -> tuple[float, Floats, int]:
    """Least `relaxed_placement` over all positions of the PS: cost, workers, PS.

    A position is left as soon as what it costs so far and the least that the other data costs
    anywhere pass the best one; the first to be tried is the best for everything in one centre.
    """
    data, capacity, needed, _, worker_price, ps_price, _, arc, launch = block
    centers = data.size
    per_gb = np.empty(centers)
    rest = np.zeros(centers + 1)
    first = 0
    if needed > 0:
        for r in range(centers):
            per_gb[r] = worker_price[r] / capacity
        for i in range(centers - 1, -1, -1):
            least = np.inf
            for r in range(centers):
                least = min(least, arc[i, r] + per_gb[r])
            rest[i] = rest[i + 1] + (data[i] * least if data[i] > 0.0 else 0.0)
        together = np.inf
        for r in range(centers):
            cost = ps_price[r] + launch[r]
            for i in range(centers):
                if data[i] > 0.0:
                    cost += data[i] * (arc[i, r] + per_gb[r])
            if cost < together:
                together = cost
                first = r
    best = np.inf
    best_ps = -1
    for number in range(-1, centers):
        ps = first if number < 0 else number
        if number == first:
            continue
        cost = ps_price[ps] + launch[ps]
        limit = best * (1.0 + 1e-9)  # so far above that rounding decides nothing
        if needed > 0:
            if cost + rest[0] > limit:
                continue
            cheapest = _prices_per_gb(block, ps, per_gb)
            total = 0.0
            for i in range(centers):
                if data[i] <= 0.0:
                    continue
                total += data[i]
                least = np.inf
                for r in range(centers):
                    least = min(least, arc[i, r] + per_gb[r])
                cost += data[i] * least
                if cost + rest[i + 1] > limit:
                    cost = np.inf
                    break
            idle = max(0.0, needed - total / capacity)
            cost += idle * (per_gb[cheapest] * capacity)
        if cost < best or (cost == best and ps < best_ps):
            best, best_ps = cost, ps
    cost, workers = relaxed_placement(block, best_ps)
    return cost, workers, best_ps


@njit(cache=True)
def round_largest_remainder(fractional: Floats, needed: int, floor: Ints) -> Ints:
    """Round to `needed` workers in total: floors, then the largest remainders go up.

    Parameters
    ----------
    fractional : ndarray, shape (R,)
        Fractional workers.
    needed : int
        Total to reach (more only if `floor` asks for more).
    floor : ndarray of int, shape (R,)
        Least number in each centre (workers for pinned data).
    """
    size = fractional.size
    workers = np.zeros(size, dtype=np.int64)
    remainder = np.empty(size)
    for r in range(size):
        value = fractional[r]
        if abs(value - np.rint(value)) < 1e-4:
            value = np.rint(value)
        workers[r] = max(int(np.floor(value)), floor[r])
        remainder[r] = value - workers[r]
    while workers.sum() < needed:
        best = 0
        for r in range(size):
            if remainder[r] > remainder[best]:
                best = r
        workers[best] += 1
        remainder[best] -= 1.0
    return workers
