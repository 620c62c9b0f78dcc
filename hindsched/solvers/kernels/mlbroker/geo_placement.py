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
from hindsched.solvers.kernels.stable_order import copy_to

LEFT = 1e-9
"""Share of a slot's data that counts as rounding where it finds no worker."""
TIE = 1e-11
"""Relative gap below which a case is not split any more; its bound is kept."""
NODE_LIMIT = 20_000
"""Nodes of one branch and bound; beyond it the bound returned is that of the open nodes."""
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
def relaxed_placement(block: PricedBlock, ps: int, limit: float = np.inf) -> tuple[float, Floats]:
    """Least cost with fractional workers and the PS in centre `ps`, and the workers, (R,).

    A bound in closed form, at most the integer cost; infinite where it is above `limit`.
    """
    data, capacity, needed, _, worker_price, ps_price, exchange, arc, launch = block
    centers = data.size
    workers = np.zeros(centers)
    cost = ps_price[ps] + launch[ps]
    if needed == 0:
        return cost, workers
    per_gb = np.empty(centers)
    cheapest = 0
    for r in range(centers):
        each = worker_price[r] + exchange[r, ps]
        if r != ps:
            each += launch[r] / needed
        per_gb[r] = each / capacity
        if per_gb[r] < per_gb[cheapest]:
            cheapest = r
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
        if cost > limit:
            return np.inf, workers
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
def relaxed_best(block: PricedBlock) -> tuple[float, Floats, int]:
    """Least `relaxed_placement` over all places of the PS: cost, workers, PS."""
    best, best_workers = relaxed_placement(block, 0)
    best_ps = 0
    for ps in range(1, block.data.size):
        cost, workers = relaxed_placement(block, ps, best)
        if cost < best:
            best, best_workers, best_ps = cost, workers, ps
    return best, best_workers, best_ps


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
    rest = limit * (1.0 + TIE) - ps_price[ps]
    for r in range(data.size):
        rest -= workers[r] * (worker_price[r] + exchange[r, ps])
        if workers[r] > 0 or r == ps:
            rest -= launch[r]
    cost, left, _ = ship(data, capacity * workers.astype(np.float64), arc, rest)
    if left > LEFT * data.sum() or cost > rest:
        return np.inf
    cost += ps_price[ps]
    for r in range(data.size):
        cost += workers[r] * (worker_price[r] + exchange[r, ps])
        if workers[r] > 0 or r == ps:
            cost += launch[r]
    return cost


@njit(cache=True)
def best_placement(
    block: PricedBlock, node_limit: int = NODE_LIMIT, cutoff: float = np.inf
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

    Returns the same; infinite where there is none.
    """
    data, _, needed, pinned, worker_price, _, exchange, _, launch = block
    centers = data.size
    relaxed = np.empty(centers)
    cheapest: Any = np.int64(0)
    for place in range(centers):
        relaxed[place] = np.inf
        if may_serve[place]:
            relaxed[place], _ = relaxed_placement(block, place)
            for r in range(centers):
                if needed == 0 and least[r] > 0:  # workers without data
                    relaxed[place] += least[r] * (worker_price[r] + exchange[r, place])
                    relaxed[place] += 0.0 if r == place else launch[r]
        if relaxed[place] < relaxed[cheapest]:
            cheapest = place
    best = cutoff
    best_workers = np.zeros(centers, dtype=np.int64)
    best_ps: Any = np.int64(-1)
    if needed == 0:
        if relaxed[cheapest] < cutoff:
            best, best_ps = relaxed[cheapest], cheapest
            copy_to(best_workers, least)
        return best, best, best_workers, best_ps
    floor = np.zeros(centers, dtype=np.int64)
    top = np.zeros(centers, dtype=np.int64)
    open_bound = np.inf
    nodes: Any = np.int64(0)  # a literal 0 would be a type of its own, compiled once more
    for _ in range(centers):
        ps: Any = np.int64(0)
        for other in range(centers):  # the most promising place that is left
            if relaxed[other] < relaxed[ps]:
                ps = other
        if relaxed[ps] >= best * (1.0 - TIE):
            open_bound = min(open_bound, relaxed[ps])
            break
        relaxed[ps] = np.inf
        fits = True
        for r in range(centers):
            floor[r] = max(pinned[r], least[r])
            top[r] = min(max(needed, floor[r]), most[r])
            fits = fits and floor[r] <= top[r]
        if fits:
            best, best_workers, best_ps, unproven, nodes = _branch_and_bound(
                block, floor, top, ps, best, best_workers, best_ps, nodes, node_limit
            )
            open_bound = min(open_bound, unproven)
    return best, min(best, open_bound), best_workers, best_ps


@njit(cache=True)
def _branch_and_bound(
    block: PricedBlock, floor: Ints, top: Ints, ps: int, best: float, best_workers: Ints,
    best_ps: int, nodes: int, node_limit: int,
) -> tuple[float, Ints, int, float, int]:  # fmt: skip
    """Branch on workers with the PS fixed; returns the incumbent, open bound and node count.

    Loops in place of array expressions keep the time to compile low.
    """
    data, capacity, needed, _, worker_price, ps_price, exchange, arc, launch = block
    centers = data.size
    supply = np.zeros(centers + 1)
    total = 0.0
    for r in range(centers):
        supply[r] = data[r]
        total += data[r]
    supply[centers] = max(0.0, needed * capacity - total)  # sum y >= N as a source of room
    total += supply[centers]
    price = np.zeros((centers + 1, 2 * centers))
    room = np.zeros(2 * centers)
    lower = np.zeros((STACK, centers), dtype=np.int64)
    upper = np.zeros((STACK, centers), dtype=np.int64)
    low = np.zeros(centers, dtype=np.int64)
    high = np.zeros(centers, dtype=np.int64)
    fractional = np.zeros(centers)
    rounded = np.zeros(centers, dtype=np.int64)
    for r in range(centers):
        lower[0, r] = floor[r]
        upper[0, r] = top[r]
    size = 1
    open_bound = np.inf
    while size > 0:
        size -= 1
        base = ps_price[ps] + launch[ps]
        for r in range(centers):
            low[r] = lower[size, r]
            high[r] = upper[size, r]
            each = worker_price[r] + exchange[r, ps]
            base += low[r] * each
            if r != ps:
                if low[r] > 0:
                    base += launch[r]
                elif high[r] > 0:
                    each += launch[r] / high[r]
            room[r] = capacity * low[r]
            room[centers + r] = capacity * (high[r] - low[r])
            if low[r] > 0:
                for i in range(centers):
                    price[i, r] = arc[i, r]
                price[centers, r] = 0.0
            if high[r] > low[r]:
                for i in range(centers):
                    price[i, centers + r] = arc[i, r] + each / capacity
                price[centers, centers + r] = each / capacity
        nodes += 1
        cost, left, flow = ship(supply, room, price, best - base)
        if left > LEFT * total:
            continue
        bound = base + cost
        if bound >= best * (1.0 - TIE):
            open_bound = min(open_bound, bound)
            continue
        if nodes >= node_limit or size + 2 > STACK:
            open_bound = min(open_bound, bound)
            if nodes > 1:  # the first node gives an incumbent whatever the limit
                continue
        split = -1
        farthest = 1e-10
        for r in range(centers):
            fractional[r] = 0.0
            for i in range(centers + 1):
                fractional[r] += flow[i, centers + r]
            fractional[r] = low[r] + fractional[r] / capacity
            rounded[r] = int(np.rint(fractional[r]))
            distance = abs(fractional[r] - rounded[r])
            if distance > farthest:
                farthest = distance
                split = r
        if split >= 0:
            rounded = round_largest_remainder(fractional, needed, floor)
        found = placement_cost(block, rounded, ps, best)
        for r in range(centers):
            if rounded[r] > top[r]:  # rounding went where nothing may be
                found = np.inf
        if found < best:
            best, best_ps = found, ps
            best_workers = rounded.copy()
        if nodes >= node_limit:
            continue
        at_most, at_least = 0, 1
        if found <= bound * (1.0 + TIE):
            open_bound = min(open_bound, bound)
            continue
        if split >= 0:
            at_most = int(np.floor(fractional[split]))
            at_least = at_most + 1
        else:
            # Integral: only a launch that was paid in part can hold a gap.
            unpaid = 0.0
            for r in range(centers):
                if r != ps and low[r] == 0 and 0 < rounded[r] < high[r]:
                    gap = launch[r] * (1.0 - fractional[r] / high[r])
                    if gap > unpaid:
                        unpaid = gap
                        split = r
            if split < 0:
                open_bound = min(open_bound, bound)
                continue
        for child in range(2):
            for r in range(centers):
                lower[size, r] = low[r]
                upper[size, r] = high[r]
            if child == 0:
                upper[size, split] = at_most
            else:
                lower[size, split] = at_least
            size += 1
    return best, best_workers, best_ps, open_bound, nodes
