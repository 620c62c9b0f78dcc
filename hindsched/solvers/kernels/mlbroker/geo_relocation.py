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
from hindsched.solvers.kernels.mlbroker.geo_placement import (
    PricedBlock,
    best_placement,
    placement_cost,
    relaxed_best,
)
from hindsched.solvers.kernels.stable_order import copy_to


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
def _cost_beside(
    slot: SlotJobs, job: PricedBlock, j: int, others: Floats, workers: Ints, ps: int, best: float
) -> float:
    """Exact cost of job j, priced at 0 in `job`, beside what the others use, (R, K).

    Infinite if not below `best`.
    """
    rent = 0.0
    for r in range(workers.size):
        for k in range(others.shape[1] if workers[r] > 0 or r == ps else 0):
            more = workers[r] * slot.worker[j, k] + (slot.server[j, k] if r == ps else 0.0)
            rent += added_price(slot, r, k, others[r, k], more)
    return rent + placement_cost(job, workers, ps, best - rent)


@njit(cache=True)
def relocate(slot: SlotJobs, workers: Ints, ps: Ints, passes: int, node_limit: int) -> None:
    """Improve a slot's integer placement in place until no single job gains.

    `workers`, (J, R), and `ps`, (J,), must hold the data. The best response, of so many nodes, is
    among the neighbours unless `node_limit` is 0.
    """
    jobs, centers = workers.shape
    others = np.empty((centers, slot.worker.shape[1]))
    nothing = np.zeros(centers)
    neighbours = 2 * centers + centers * (1 + 3 * centers)
    improved = True
    while improved and passes > 0:
        improved = False
        passes -= 1
        for j in range(jobs):
            others[:] = 0.0
            for i in range(jobs):
                for k in range(others.shape[1] if i != j else 0):
                    others[ps[i], k] += slot.server[i, k]
                    for r in range(centers):
                        others[r, k] += workers[i, r] * slot.worker[i, k]
            job = priced_job(slot, j, nothing, nothing)
            here = _cost_beside(slot, job, j, others, workers[j], ps[j], np.inf)
            best, best_workers, best_ps = here * (1.0 - 1e-10), workers[j], ps[j]
            for number in range(neighbours + (node_limit > 0)):
                if number < neighbours:
                    to, trial = _neighbour(
                        number, workers[j], ps[j], slot.needed[j], slot.pinned[j]
                    )
                else:  # chords of what joining costs: what is above `best` at them is above it here
                    each, serving = average_prices(slot, j, others)
                    response = priced_job(slot, j, each, serving)
                    _, _, trial, to = best_placement(response, node_limit, best)
                if to >= 0:
                    cost = _cost_beside(slot, job, j, others, trial, to, best)
                    if cost < best:
                        best, best_workers, best_ps = cost, trial, to
            if best_ps != ps[j] or (best_workers != workers[j]).any():
                improved = True
                ps[j] = best_ps
                copy_to(workers[j], best_workers)


@njit(cache=True)
def _neighbour(number: int, workers: Ints, ps: int, needed: int, pinned: Ints) -> tuple[int, Ints]:
    """The PS, or -1 if there is no such neighbour, and the workers of neighbour `number`."""
    centers = workers.size
    if number < centers:  # everything into one centre
        trial = pinned.copy()
        trial[number] += max(0, needed - pinned.sum())
        return number, trial
    trial = workers.copy()
    number -= centers
    if number < centers:  # the PS alone
        return number if number != ps else -1, trial
    number -= centers
    r = number // (1 + 3 * centers)
    number %= 1 + 3 * centers
    if number == 0:  # a surplus worker gone
        trial[r] -= 1
        return ps if trial.sum() >= needed and trial[r] >= pinned[r] else -1, trial
    q = (number - 1) // 3
    kind = (number - 1) % 3  # one worker, all workers, all with the PS
    count = 1 if kind == 0 else workers[r]
    if q == r or workers[r] < max(1, count + pinned[r]) or (kind == 2 and ps != r):
        return -1, trial
    trial[r] -= count
    trial[q] += count
    return q if kind == 2 else ps, trial


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
