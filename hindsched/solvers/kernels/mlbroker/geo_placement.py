"""Best placement of one mlbroker job in one slot at linear prices, compiled.

The block is: integer workers y >= 0 with room P y for the data, one PS, and

    sum_r (kappa_r + exchange[r, p]) y_r + mu_p + transport + sum_{r used} launch_r .

Given the PS the continuous relaxation needs no solver: every GB goes where transport plus worker
price is least. `relaxed_placement` is that closed form (a bound), `best_placement` the exact
integer optimum by branch and bound over y whose nodes are transport problems.

==============  =====================================================
paper           here
==============  =====================================================
``D^r, P, N``   `data` (R,), `capacity`, `needed`
``y, s``        workers (R,), position `ps`
``kappa_r``     `worker_price`: sum_k price n_k (weighted USD)
``mu_r``        `ps_price`: sum_k price m_k
``B d^{rr'}``   `exchange` (R, R)
``d^{rr'}``     `arc` (R, R), infinite where pinned data would leave
==============  =====================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hindsched.solutions.mlbroker.transport import ship

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE = 1e-15
"""Relative error of a quotient: a floor of workers must not be too high."""
LEFT = 1e-9
"""Share of a slot's data that counts as rounding where it finds no worker."""
TIE = 1e-11
"""Relative gap below which a case is not split any more; its bound is kept."""
NODE_LIMIT = 20_000
"""Nodes of one branch and bound; beyond it the bound returned is that of the open nodes."""
STACK = 2048


@njit(cache=True)
def relaxed_placement(
    data: Floats,
    capacity: float,
    needed: int,
    worker_price: Floats,
    ps_price: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
    ps: int,
) -> tuple[float, Floats]:
    """Least cost with fractional workers and the PS in centre `ps`: a bound, in closed form.

    Returns
    -------
    cost : float
        The relaxed optimum: at most the integer one.
    workers : ndarray, shape (R,)
        Fractional workers that attain it, `needed` in total.
    """
    centers = data.size
    workers = np.zeros(centers)
    cost = ps_price[ps] + launch[ps]
    if needed == 0:
        return cost, workers
    per_gb = np.empty(centers)
    cheapest = _prices_per_gb(capacity, needed, worker_price, exchange, launch, ps, per_gb)
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
def _prices_per_gb(
    capacity: float,
    needed: int,
    worker_price: Floats,
    exchange: Floats,
    launch: Floats,
    ps: int,
    per_gb: Floats,
) -> int:
    """Write what a GB costs in each centre with the PS in `ps`; the cheapest centre."""
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
def relaxed_best(
    data: Floats,
    capacity: float,
    needed: int,
    worker_price: Floats,
    ps_price: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
) -> tuple[float, Floats, int]:
    """Least `relaxed_placement` over all positions of the PS: cost, workers, PS.

    A position is left as soon as what it costs so far and the least that the other data costs
    anywhere pass the best one; the first to be tried is the best for everything in one centre.
    """
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
            cheapest = _prices_per_gb(capacity, needed, worker_price, exchange, launch, ps, per_gb)
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
    cost, workers = relaxed_placement(
        data, capacity, needed, worker_price, ps_price, exchange, arc, launch, best_ps
    )
    return cost, workers, best_ps


@njit(cache=True)
def placement_cost(
    workers: Ints,
    ps: int,
    data: Floats,
    capacity: float,
    worker_price: Floats,
    ps_price: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
) -> float:
    """Cost of integer workers at the prices; infinite if the data does not fit on them."""
    cost, left, _ = ship(data, capacity * workers.astype(np.float64), arc)
    if left > LEFT * data.sum():
        return np.inf
    cost += ps_price[ps]
    for r in range(data.size):
        cost += workers[r] * (worker_price[r] + exchange[r, ps])
        if workers[r] > 0 or r == ps:
            cost += launch[r]
    return cost


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


@njit(cache=True)
def pinned_workers(data: Floats, capacity: float, arc: Floats) -> Ints:
    """Least workers in each centre for data that may not leave it, shape (R,)."""
    floor = np.zeros(data.size, dtype=np.int64)
    for i in range(data.size):
        stays = data[i] > 0.0
        for r in range(data.size):
            if r != i and arc[i, r] < np.inf:
                stays = False
        if stays:
            floor[i] = int(np.ceil(data[i] / capacity * (1.0 - NOISE)))
    return floor


@njit(cache=True)
def best_placement(
    data: Floats,
    capacity: float,
    needed: int,
    worker_price: Floats,
    ps_price: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
    node_limit: int = NODE_LIMIT,
    cutoff: float = np.inf,
) -> tuple[float, float, Ints, int]:
    """Integer placement of least cost.

    Parameters
    ----------
    node_limit : int
        Nodes after which the open ones are left.
    cutoff : float
        Only a placement below this cost is looked for.

    Returns
    -------
    cost : float
        Cost of the placement found, or `cutoff`.
    bound : float
        Proven lower bound, the least of all cases left: within 1e-9 of `cost` in relative terms
        unless the node limit was hit.
    workers : ndarray of int, shape (R,)
        y.
    ps : int
        Position of the PS; -1 if no placement below `cutoff` was found.
    """
    least = np.zeros(data.size, dtype=np.int64)
    return restricted_placement(
        data, capacity, needed, worker_price, ps_price, exchange, arc, launch, least,
        np.full(data.size, np.int64(2**31 - 1)), np.ones(data.size, dtype=np.bool_), node_limit,
        cutoff,
    )  # fmt: skip


@njit(cache=True)
def restricted_placement(
    data: Floats,
    capacity: float,
    needed: int,
    worker_price: Floats,
    ps_price: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
    least: Ints,
    most: Ints,
    may_serve: Any,
    node_limit: int,
    cutoff: float,
) -> tuple[float, float, Ints, int]:
    """`best_placement` with `least` to `most` workers by centre, the PS where it `may_serve`.

    Returns the same; infinite where there is none.
    """
    centers = data.size
    relaxed = np.empty(centers)
    cheapest: Any = np.int64(0)
    for place in range(centers):
        relaxed[place] = np.inf
        if may_serve[place]:
            relaxed[place], _ = relaxed_placement(
                data, capacity, needed, worker_price, ps_price, exchange, arc, launch, place
            )
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
            best_workers[:] = least
        return best, best, best_workers, best_ps
    pinned = pinned_workers(data, capacity, arc)
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
                data, capacity, needed, worker_price, ps_price, exchange, arc, launch, floor, top,
                ps, best, best_workers, best_ps, nodes, node_limit,
            )  # fmt: skip
            open_bound = min(open_bound, unproven)
    return best, min(best, open_bound), best_workers, best_ps


@njit(cache=True)
def _branch_and_bound(
    data: Floats,
    capacity: float,
    needed: int,
    worker_price: Floats,
    ps_price: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
    floor: Ints,
    top: Ints,
    ps: int,
    best: float,
    best_workers: Ints,
    best_ps: int,
    nodes: int,
    node_limit: int,
) -> tuple[float, Ints, int, float, int]:
    """Branch on workers with the PS fixed; returns the incumbent, open bound and node count.

    Loops in place of array expressions keep the time to compile low.
    """
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
            for i in range(centers):
                price[i, r] = arc[i, r]
                price[i, centers + r] = arc[i, r] + each / capacity
            price[centers, r] = 0.0
            price[centers, centers + r] = each / capacity
        nodes += 1
        easy = base  # every source in its cheapest open centre, whatever the room
        for i in range(centers + 1):
            least = np.inf
            for c in range(2 * centers):
                if room[c] > 0.0:
                    least = min(least, price[i, c])
            if supply[i] > 0.0:
                easy += supply[i] * least
        if easy >= best * (1.0 - TIE):
            open_bound = min(open_bound, easy)
            continue
        cost, left, flow = ship(supply, room, price)
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
        found = placement_cost(
            rounded, ps, data, capacity, worker_price, ps_price, exchange, arc, launch
        )
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
