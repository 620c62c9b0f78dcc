"""All jobs of one mlbroker slot: local search at the exact cost, and shared fees, compiled.

The jobs of a slot are tied only by the tiered price of what they rent together. `relocate` moves
each to the cheapest of its neighbours at the exact cost, all others fixed: the PS to another
centre; one or all workers of a centre to another, with or without the PS; everything into one
centre (but for pinned data); one surplus worker gone; the exact best response to the average price
that joining each centre would have.

With prices lambda on ``w_j <= H_j u`` the jobs are independent: job j pays
``a - max(0, a - b - lambda_j)`` per unit, and a tier earns ``sum_j lambda_j H_j`` towards its fee.
Every lambda >= 0 gives the lower bound ``sum_j relaxed best response + sum min(0, e - sum_j
lambda_j H_j)`` on the slot's cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.solutions.mlbroker.transport import ship
from hindsched.solvers.kernels.mlbroker.geo_placement import (
    LEFT,
    PricedBlock,
    best_placement,
    relaxed_best,
)


class SlotJobs(NamedTuple):
    """The jobs of a slot."""

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


class Tiers(NamedTuple):
    """Weighted a, b and e, each of shape (R, K)."""

    unit: Floats
    discounted: Floats
    fee: Floats


@njit(cache=True)
def priced_job(slot: SlotJobs, j: int, worker_price: Floats, ps_price: Floats) -> PricedBlock:
    """One job of a slot at prices of a worker and of the PS, (R,) each."""
    return PricedBlock(
        slot.data[j], slot.capacity[j], slot.needed[j], slot.pinned[j], worker_price, ps_price,
        slot.exchange[j] * slot.distance, slot.arc[j], slot.launch[j],
    )  # fmt: skip


@njit(cache=True)
def added_price(tier: tuple[float, float, float], used: float, more: float) -> float:
    """What `more` units add to the two-tier price F of `used`, at (a, b, e)."""
    unit, discounted, fee = tier
    both = used + more
    before = min(unit * used, discounted * used + fee)
    after: float = min(unit * both, discounted * both + fee)
    return after - before


@njit(cache=True)
def _joining_price(
    workers: Ints, ps: int, worker: Floats, server: Floats, others: Floats, unit: Floats,
    discounted: Floats, fee: Floats,
) -> float:  # fmt: skip
    """What a job's resources add to the tiered bill when the others use `others` (R, K).

    It takes arrays, as does `_cost_beside`: counting references to those of a tuple would take a
    quarter of the search's time.
    """
    centers, kinds = unit.shape
    cost = 0.0
    for r in range(centers):
        if workers[r] == 0 and r != ps:
            continue
        for k in range(kinds):
            more = workers[r] * worker[k]
            if r == ps:
                more += server[k]
            if more > 0.0:
                cost += added_price((unit[r, k], discounted[r, k], fee[r, k]), others[r, k], more)
    return cost


@njit(cache=True)
def _cost_beside(
    rent: float, workers: Ints, ps: int, data: Floats, capacity: float, exchange: Floats,
    arc: Floats, launch: Floats, best: float,
) -> float:  # fmt: skip
    """Exact cost of a job that adds `rent` to the bill; infinite where it is not below `best`."""
    fixed = rent
    for r in range(data.size):
        fixed += workers[r] * exchange[r, ps]
        if workers[r] > 0 or r == ps:
            fixed += launch[r]
    rest = best * (1.0 + 1e-12) - fixed
    if rest < 0.0:
        return np.inf
    cost, left, _ = ship(data, capacity * workers.astype(np.float64), arc, rest)
    if left > LEFT * data.sum() or cost > rest:
        return np.inf
    return cost + fixed


@njit(cache=True)
def relocate(
    slot: SlotJobs, tiers: Tiers, workers: Ints, ps: Ints, passes: int, node_limit: int
) -> int:
    """Improve a slot's integer placement in place until no single job gains; the moves made.

    `workers`, (J, R), and `ps`, (J,), must hold the data. The best response, of so many nodes, is
    among the neighbours unless `node_limit` is 0.
    """
    worker, server = slot.worker, slot.server
    jobs, centers = workers.shape
    kinds = worker.shape[1]
    used, others = np.zeros((centers, kinds)), np.zeros((centers, kinds))
    for j in range(jobs):
        for k in range(kinds):
            for r in range(centers):
                used[r, k] += workers[j, r] * worker[j, k]
            used[ps[j], k] += server[j, k]
    moves = 0
    nothing = np.zeros(centers)
    for _ in range(passes):
        improved = False
        for j in range(jobs):
            for r in range(centers):
                for k in range(kinds):
                    left = used[r, k] - workers[j, r] * worker[j, k]
                    if r == ps[j]:
                        left -= server[j, k]
                    others[r, k] = left if left > 1e-12 * used[r, k] else 0.0
            moved, ps[j] = _improve(
                priced_job(slot, j, nothing, nothing), worker[j], server[j], workers[j], ps[j],
                others, tiers, node_limit,
            )  # fmt: skip
            if moved:
                improved = True
                moves += 1
            for r in range(centers):
                for k in range(kinds):
                    used[r, k] = others[r, k] + workers[j, r] * worker[j, k]
                    if r == ps[j]:
                        used[r, k] += server[j, k]
        if not improved:
            break
    return moves


@njit(cache=True)
def _improve(
    job: PricedBlock, worker: Floats, server: Floats, workers: Ints, ps: int, others: Floats,
    tiers: Tiers, node_limit: int,
) -> tuple[bool, int]:  # fmt: skip
    """Move one job to its cheapest neighbour in place; whether it moved, and its PS.

    All neighbours pass through one call of the cost, which keeps the time to compile low.
    """
    data, capacity, needed, pinned, _, _, exchange, arc, launch = job
    unit, discounted, fee = tiers
    centers = workers.size
    trial, best_workers = workers.copy(), workers.copy()
    here = best = np.inf
    best_ps = ps
    total = 1 + 2 * centers + centers * (1 + 3 * centers) + 1
    for number in range(total):
        to = ps
        if number == 0:
            pass  # where it is
        elif number < total - 1:
            to = _neighbour(number - 1, workers, ps, needed, pinned, trial)
        elif node_limit > 0:
            each, serving = average_prices(needed, worker, server, others, tiers)
            at = data, capacity, needed, pinned, each, serving, exchange, arc, launch
            # chords of what joining costs: what is above `best` at them is above it here
            _, _, response, to = best_placement(PricedBlock(*at), node_limit, best)
            for r in range(centers):
                trial[r] = response[r]
        else:
            to = -1
        if to < 0:
            continue
        rent = _joining_price(trial, to, worker, server, others, unit, discounted, fee)
        cost = _cost_beside(rent, trial, to, data, capacity, exchange, arc, launch, best)
        if number == 0:
            here = cost
        if cost < best:
            best = cost
            best_ps = to
            for r in range(centers):
                best_workers[r] = trial[r]
    if not best < here * (1.0 - 1e-10):
        return False, ps
    for r in range(centers):
        workers[r] = best_workers[r]
    return True, best_ps


@njit(cache=True)
def _neighbour(number: int, workers: Ints, ps: int, needed: int, pinned: Ints, trial: Ints) -> int:
    """Write neighbour `number` of a placement into `trial`; its PS, or -1 if there is none."""
    centers = workers.size
    if number < centers:  # everything into one centre
        rest = needed
        for i in range(centers):
            trial[i] = pinned[i]
            if i != number:
                rest -= pinned[i]
        trial[number] = max(pinned[number], rest)
        return number
    for i in range(centers):
        trial[i] = workers[i]
    number -= centers
    if number < centers:  # the PS alone
        return number if number != ps else -1
    number -= centers
    r = number // (1 + 3 * centers)
    number %= 1 + 3 * centers
    if workers[r] == 0:
        return -1
    if number == 0:  # a surplus worker gone
        trial[r] -= 1
        placed = 0
        for i in range(centers):
            placed += trial[i]
        return ps if placed >= needed and trial[r] >= pinned[r] else -1
    q = (number - 1) // 3
    kind = (number - 1) % 3  # one worker, all workers, all with the PS
    count = 1 if kind == 0 else workers[r]
    if q == r or (kind == 1 and count == 1) or (kind == 2 and ps != r):
        return -1
    if workers[r] - count < pinned[r]:
        return -1
    trial[r] -= count
    trial[q] += count
    return q if kind == 2 else ps


@njit(cache=True)
def average_prices(
    needed: int, worker: Floats, server: Floats, others: Floats, tiers: Tiers
) -> tuple[Floats, Floats]:
    """Average price per worker and per PS if the whole job joined each centre, shapes (R,), (R,).

    The prices of ``oasis-style``'s sequential variant: units are charged at what they would add to
    the tiered bill if all `needed` workers and the PS came to the centre.
    """
    unit, discounted, fee = tiers
    centers, kinds = others.shape
    worker_price = np.zeros(centers)
    server_price = np.zeros(centers)
    for r in range(centers):
        for k in range(kinds):
            more = needed * worker[k] + server[k]
            if more <= 0.0:
                continue
            price = added_price((unit[r, k], discounted[r, k], fee[r, k]), others[r, k], more)
            worker_price[r] += worker[k] * price / more
            server_price[r] += server[k] * price / more
    return worker_price, server_price


@njit(cache=True)
def shared_bound(
    slot: SlotJobs, tiers: Tiers, most: Floats, shares: Floats
) -> tuple[float, Floats]:
    """Bound on a slot's cost at given shares and its subgradient, (J, R, K).

    `most` is H, (J, K); `shares` are lambda, weighted USD per unit, (J, R, K); the gradient is ``w
    - H u`` at the jobs' relaxed best responses.
    """
    unit, discounted, fee = tiers
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
