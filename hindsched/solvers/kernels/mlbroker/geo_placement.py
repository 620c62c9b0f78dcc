"""Best placement of one mlbroker job in one slot at linear prices, compiled.

The block is: integer workers y >= 0 with room P y for the data, one PS, and

    sum_r (kappa_r + exchange[r, p]) y_r + mu_p + transport + sum_{r used} launch_r .

Given the PS the relaxation to fractional workers needs no solver: every GB goes where transport
plus worker price is least. `best_placement` branches over y; its nodes are transport problems.
Workers are `workers` (R,), the centre of the PS is `ps`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solutions.mlbroker.transport import ship
from hindsched.solvers.kernels.stable_order import copy_to, stable_order

LEFT = 1e-9
"""Share of a slot's data that counts as rounding where it finds no worker."""
TIE = 1e-11
"""Relative gap below which a case is not split any more; its bound is kept."""
STACK = 2048


class PricedBlock(NamedTuple):
    """One job in one slot at linear prices."""

    data: Floats  # D, GB, (R,)
    capacity: float  # P, GB a worker
    needed: int  # N
    pinned: Ints  # least workers in each centre for data that may not leave it, (R,)
    worker_price: Floats  # weighted price of what a worker rents, (R,)
    ps_price: Floats  # and of what the PS rents, (R,)
    exchange: Floats  # weighted price of a worker's exchange with the PS, by their centres, (R, R)
    arc: Floats  # weighted transfer price a GB, infinite where pinned data would leave, (R, R)
    launch: Floats  # weighted cost of using a centre, 0 where the job already runs, (R,)


@njit(cache=True)
def relaxed_placement(block: PricedBlock, ps: int) -> tuple[float, Floats]:
    """Least cost with fractional workers and the PS in centre `ps`, and the workers, (R,).

    A bound in closed form, at most the integer cost.
    """
    data, capacity, needed, _, worker_price, ps_price, exchange, arc, launch = block
    centers = data.size
    workers = np.zeros(centers)
    cost = ps_price[ps] + launch[ps]
    if needed == 0:
        return cost, workers
    each = np.empty(centers)
    cheapest = 0
    for r in range(centers):
        each[r] = worker_price[r] + exchange[r, ps]
        if r != ps:
            each[r] += launch[r] / needed
        if each[r] < each[cheapest]:
            cheapest = r
    idle = float(needed)
    for i in range(centers):
        best = 0
        for r in range(centers):
            if arc[i, r] + each[r] / capacity < arc[i, best] + each[best] / capacity:
                best = r
        workers[best] += data[i] / capacity
        idle -= data[i] / capacity
        cost += data[i] * (arc[i, best] + each[best] / capacity)
    idle = max(0.0, idle)
    workers[cheapest] += idle
    return cost + idle * each[cheapest], workers


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
def relaxed_best(block: PricedBlock) -> tuple[float, Floats, int]:
    """Least `relaxed_placement` over all places of the PS: cost, workers, PS."""
    costs, workers = relaxed_by_place(block)
    ps = int(np.argmin(costs))
    return costs[ps], workers[ps], ps


@njit(cache=True)
def round_largest_remainder(fractional: Floats, needed: int, floor: Ints) -> Ints:
    """Round to `needed` workers in total: floors, then the largest remainders go up.

    `floor` has the least number in each centre (workers for pinned data), which may ask for more.
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


@njit(cache=True)
def placement_cost(block: PricedBlock, workers: Ints, ps: int, limit: float) -> float:
    """Cost of integer workers; infinite if the data does not fit on them, or above `limit`."""
    data, capacity, _, _, worker_price, ps_price, exchange, arc, launch = block
    fixed = ps_price[ps]
    for r in range(data.size):
        fixed += workers[r] * (worker_price[r] + exchange[r, ps])
        if workers[r] > 0 or r == ps:
            fixed += launch[r]
    rest = limit * (1.0 + TIE) - fixed
    if rest < 0.0:
        return np.inf
    cost, left, _ = ship(data, capacity * workers.astype(np.float64), arc, rest)
    return np.inf if left > LEFT * data.sum() or cost > rest else fixed + cost


@njit(cache=True)
def best_placement(
    block: PricedBlock, node_limit: int, cutoff: float = np.inf
) -> tuple[float, float, Ints, int]:
    """Integer placement of least cost below `cutoff`: cost, bound, workers (R,), PS (-1: none).

    The bound is the least of all cases left: within 1e-9 of the cost in relative terms unless the
    open ones were left after `node_limit` nodes.
    """
    centers = block.data.size
    return restricted_placement(
        block, np.zeros(centers, dtype=np.int64), np.full(centers, np.int64(2**31 - 1)),
        np.ones(centers, dtype=np.bool_), node_limit, cutoff,
    )  # fmt: skip


@njit(cache=True)
def restricted_placement(
    block: PricedBlock, least: Ints, most: Ints, may_serve: Any, node_limit: int, cutoff: float
) -> tuple[float, float, Ints, int]:
    """`best_placement` with `least` to `most` workers by centre, the PS where it `may_serve`.

    Returns the same; infinite where there is none. Branches on the workers of a centre, the most
    promising place of the PS first. A node is a transport problem: data, and room that N workers
    have beside it, go to rooms that the least workers pay, or to more at the price of a worker.
    """
    data, capacity, needed, pinned, worker_price, ps_price, exchange, arc, launch = block
    centers = data.size
    relaxed, _ = relaxed_by_place(block)
    floor, top = np.empty(centers, dtype=np.int64), np.empty(centers, dtype=np.int64)
    supply = np.empty(centers + 1)
    supply[centers] = needed * capacity
    size: Any = np.int64(centers)  # a literal would be a type of its own, compiled once more
    for r in range(centers):
        if not may_serve[r]:
            relaxed[r] = np.inf
        floor[r] = max(pinned[r], least[r])
        top[r] = min(max(needed, floor[r]), most[r])
        if floor[r] > top[r]:
            size = np.int64(0)
        supply[r] = data[r]
        supply[centers] -= data[r]
    supply[centers] = max(0.0, supply[centers])
    places = np.empty(STACK + centers, dtype=np.int64)
    lower = np.empty((STACK + centers, centers), dtype=np.int64)
    upper = np.empty((STACK + centers, centers), dtype=np.int64)
    order = stable_order(relaxed)
    for n in range(centers):
        places[n] = order[centers - 1 - n]
        copy_to(lower[n], floor)
        copy_to(upper[n], top)
    best, best_workers = cutoff, np.zeros(centers, dtype=np.int64)
    best_ps: Any = np.int64(-1)
    open_bound = np.inf
    nodes = 0
    price, room = np.zeros((centers + 1, 2 * centers)), np.zeros(2 * centers)
    fractional = np.empty(centers)
    while size > 0:
        size -= 1
        ps, low, high = places[size], lower[size].copy(), upper[size].copy()
        if relaxed[ps] >= best * (1.0 - TIE):
            open_bound = min(open_bound, relaxed[ps])
            continue
        nodes += 1
        fixed = ps_price[ps] + launch[ps]
        for r in range(centers):
            each = worker_price[r] + exchange[r, ps]
            fixed += low[r] * each
            if r != ps and low[r] > 0:
                fixed += launch[r]
            elif r != ps:
                each += launch[r] / max(1, high[r])
            room[r], room[centers + r] = capacity * low[r], capacity * (high[r] - low[r])
            for i in range(centers + 1):
                price[i, r] = arc[i, r] if i < centers else 0.0
                price[i, centers + r] = price[i, r] + each / capacity
        cost, left, flow = ship(supply, room, price, best - fixed)
        bound = fixed + cost
        if left > LEFT * supply.sum():
            continue
        if bound >= best * (1.0 - TIE):
            open_bound = min(open_bound, bound)
            continue
        split = -1
        farthest = 1e-10
        for r in range(centers):
            fractional[r] = low[r]
            for i in range(centers + 1):
                fractional[r] += flow[i, centers + r] / capacity
            distance = abs(fractional[r] - np.rint(fractional[r]))
            if distance > farthest:
                farthest, split = distance, r
        workers = round_largest_remainder(fractional, needed, floor)
        found = placement_cost(block, workers, ps, best)
        for r in range(centers):
            if workers[r] > top[r]:  # rounding went where nothing may be
                found = np.inf
        if found < best:
            best, best_workers, best_ps = found, workers, ps
        at_most = 0
        if split >= 0:
            at_most = int(np.floor(fractional[split]))
        else:  # integral: only a launch that was paid in part can hold a gap
            unpaid = 0.0
            for r in range(centers):
                if r != ps and low[r] == 0 and 0 < workers[r] < high[r]:
                    gap = launch[r] * (1.0 - fractional[r] / high[r])
                    if gap > unpaid:
                        unpaid, split = gap, r
        if split < 0 or found <= bound * (1.0 + TIE) or nodes >= node_limit or size + 2 > STACK:
            open_bound = min(open_bound, bound)
            continue
        for n in range(size, size + 2):
            places[n] = ps
            copy_to(lower[n], low)
            copy_to(upper[n], high)
        upper[size, split] = at_most
        lower[size + 1, split] = at_most + 1
        size += 2
    return best, min(best, open_bound), best_workers, best_ps
