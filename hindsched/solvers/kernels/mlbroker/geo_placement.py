"""Placements of mlbroker's jobs in one slot, one job or all, compiled.

One job at linear prices: integer workers y >= 0 with room P y for the data, one PS, and

    sum_r (kappa_r + exchange[r, p]) y_r + mu_p + transport + sum_{r used} launch_r .

Given the PS the relaxation to fractional workers needs no solver: every GB goes where transport
plus worker price is least. `best_placement` branches over y; its nodes are transport problems.
Workers are `workers` (R,), the centre of the PS is `ps`.

The jobs of a slot are tied only by the tiered price of what they rent together. With prices lambda
on ``w_j <= H_j u`` the jobs are independent: job j pays ``a - max(0, a - b - lambda_j)`` per unit,
and a tier earns ``sum_j lambda_j H_j`` towards its fee. Every lambda >= 0 gives the lower bound
``sum_j relaxed best response + sum min(0, e - sum_j lambda_j H_j)`` on the slot's cost
(`shared_bound`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.transport import min_cost_flow
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
def relaxed_placement(block: PricedBlock, ps: int, limit: float) -> tuple[float, Floats]:
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
        each = worker_price[r] + exchange[r, ps] + (0.0 if r == ps else launch[r] / needed)
        per_gb[r] = each / capacity
        if per_gb[r] < per_gb[cheapest]:
            cheapest = r
    idle = needed * capacity  # room for data that N workers have beside it, GB
    for i in range(centers):
        if data[i] <= 0.0:
            continue
        best, least = 0, np.inf
        for r in range(centers):
            if arc[i, r] + per_gb[r] < least:
                best, least = r, arc[i, r] + per_gb[r]
        workers[best] += data[i] / capacity
        idle -= data[i]
        cost += data[i] * least
        if cost > limit:
            return np.inf, workers
    idle = max(0.0, idle)
    workers[cheapest] += idle / capacity
    return cost + idle * per_gb[cheapest], workers


@njit(cache=True)
def relaxed_best(block: PricedBlock) -> tuple[float, Floats, int]:
    """Least `relaxed_placement` over all places of the PS: cost, workers, PS."""
    best, best_workers = relaxed_placement(block, 0, np.inf)
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
    fixed = ps_price[ps]
    for r in range(data.size):
        fixed += workers[r] * (worker_price[r] + exchange[r, ps])
        if workers[r] > 0 or r == ps:
            fixed += launch[r]
    rest = limit * (1.0 + TIE) - fixed
    if rest < 0.0:
        return np.inf
    cost, left, _ = min_cost_flow(data, capacity * workers.astype(np.float64), arc, rest)
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
    relaxed = np.full(centers, np.inf)
    floor, top = np.empty(centers, dtype=np.int64), np.empty(centers, dtype=np.int64)
    supply = np.empty(centers + 1)
    supply[centers] = needed * capacity
    size: Any = np.int64(centers)  # a literal would be a type of its own, compiled once more
    for r in range(centers):
        if may_serve[r]:
            relaxed[r], _ = relaxed_placement(block, r, cutoff)
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
        cost, left, flow = min_cost_flow(supply, room, price, best - fixed)
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
        total = placement_cost(block, workers, ps, best)
        for r in range(centers):
            if workers[r] > top[r]:  # rounding went where nothing may be
                total = np.inf
        if total < best:
            best, best_workers, best_ps = total, workers, ps
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
        if split < 0 or total <= bound * (1.0 + TIE) or nodes >= node_limit or size + 2 > STACK:
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


class SlotJobs(NamedTuple):
    """The jobs of a slot, and the tiers of their bill."""

    data: Floats  # D, (J, R)
    capacity: Floats  # P, (J,)
    needed: Ints  # N, (J,)
    pinned: Ints  # least workers for data that may not leave, (J, R)
    worker: Floats  # n, (J, K)
    server: Floats  # m, (J, K)
    exchange: Floats  # B in GB; times `distance` it is the weighted price of a remote worker, (J,)
    distance: Floats  # weighted d for communication, (R, R)
    arc: Floats  # weighted transfer price, infinite where pinned data would leave, (J, R, R)
    launch: Floats  # weighted launch cost, 0 where the job already runs, (J, R)
    unit: Floats  # weighted a, (R, K)
    discounted: Floats  # weighted b, the same
    fee: Floats  # weighted e, the same


@njit(cache=True)
def priced_job(slot: SlotJobs, j: int, worker_price: Floats, ps_price: Floats) -> PricedBlock:
    """One job of a slot at prices of a worker and of the PS, (R,) each."""
    return PricedBlock(
        slot.data[j], slot.capacity[j], slot.needed[j], slot.pinned[j], worker_price, ps_price,
        slot.exchange[j] * slot.distance, slot.arc[j], slot.launch[j],
    )  # fmt: skip


@njit(cache=True)
def added_price(slot: SlotJobs, r: int, k: int, used: float, more: float) -> float:
    """What `more` units add to the two-tier price F of `used`."""
    unit, discounted, fee = slot.unit[r, k], slot.discounted[r, k], slot.fee[r, k]
    both = used + more
    before = min(unit * used, discounted * used + fee)
    after: float = min(unit * both, discounted * both + fee)
    return after - before


@njit(cache=True)
def average_prices(slot: SlotJobs, j: int, others: Floats) -> tuple[Floats, Floats]:
    """Average price per worker and per PS if the whole job joined each centre, shapes (R,), (R,).

    The prices of ``oasis-style``'s sequential variant: units are charged at what they would add to
    the tiered bill if all N workers and the PS came to the centre.
    """
    centers, kinds = others.shape
    worker_price, server_price = np.zeros(centers), np.zeros(centers)
    for r in range(centers):
        for k in range(kinds):
            more = slot.needed[j] * slot.worker[j, k] + slot.server[j, k]
            if more > 0.0:
                price = added_price(slot, r, k, others[r, k], more) / more
                worker_price[r] += slot.worker[j, k] * price
                server_price[r] += slot.server[j, k] * price
    return worker_price, server_price


@njit(cache=True)
def shared_bound(slot: SlotJobs, most: Floats, shares: Floats) -> tuple[float, Floats]:
    """Bound on a slot's cost at given shares and its subgradient, (J, R, K).

    `most` is H, (J, K); `shares` are lambda, weighted USD per unit, (J, R, K); the gradient is ``w
    - H u`` at the jobs' relaxed best responses.
    """
    unit, discounted, fee = slot.unit, slot.discounted, slot.fee
    worker, server = slot.worker, slot.server
    jobs, centers, kinds = shares.shape
    gradient = np.zeros_like(shares)
    bound = 0.0
    price = np.empty((centers, kinds))
    for j in range(jobs):
        worker_price = np.zeros(centers)
        ps_price = np.zeros(centers)
        for r in range(centers):
            for k in range(kinds):
                gain = unit[r, k] - discounted[r, k] - shares[j, r, k]
                price[r, k] = unit[r, k] - max(0.0, gain)
                worker_price[r] += price[r, k] * worker[j, k]
                ps_price[r] += price[r, k] * server[j, k]
        cost, workers, ps = relaxed_best(priced_job(slot, j, worker_price, ps_price))
        bound += cost
        for r in range(centers):
            for k in range(kinds):
                if shares[j, r, k] < unit[r, k] - discounted[r, k]:
                    used = workers[r] * worker[j, k]
                    if r == ps:
                        used += server[j, k]
                    gradient[j, r, k] = used
    for r in range(centers):
        for k in range(kinds):
            left = fee[r, k]
            for j in range(jobs):
                left -= shares[j, r, k] * most[j, k]
            if left < 0.0:
                bound += left
                for j in range(jobs):
                    gradient[j, r, k] -= most[j, k]
    return bound, gradient
