"""Sharing the fees of volume discounts among the jobs of a slot, compiled.

With prices lambda on ``w_j <= H_j u`` the jobs of a slot are independent: job j pays
``a - max(0, a - b - lambda_j)`` per unit, and a tier earns ``sum_j lambda_j H_j`` towards its fee.

Every lambda >= 0 gives a lower bound on the slot's cost,

    sum_j relaxed best response + sum min(0, e - sum_j lambda_j H_j) .

The chord of the concave price is the equal share lambda = e / sum_j H_j; `share_fees` looks for
better shares by a projected subgradient method with Polyak steps.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats
from hindsched.solvers.kernels.mlbroker.blocks import PricedBlock, SlotJobs, Tiers
from hindsched.solvers.kernels.mlbroker.relaxed_placement import relaxed_best


@njit(cache=True)
def shared_bound(
    slot: SlotJobs, tiers: Tiers, most: Floats, shares: Floats
) -> tuple[float, Floats]:
    """Bound at given shares and its subgradient.

    Parameters
    ----------
    most : ndarray, shape (J, K)
        H.
    shares : ndarray, shape (J, R, K)
        lambda, weighted USD per unit.

    Returns
    -------
    bound : float
        Lower bound on the slot's cost.
    gradient : ndarray, shape (J, R, K)
        ``w - H u`` at the jobs' relaxed best responses.
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
        block = PricedBlock(
            slot.data[j], slot.capacity[j], slot.needed[j], slot.pinned[j], worker_price, ps_price,
            slot.exchange[j] * slot.distance, slot.arc[j], slot.launch[j],
        )  # fmt: skip
        cost, workers, ps = relaxed_best(block)
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


@njit(cache=True)
def share_fees(
    slot: SlotJobs, tiers: Tiers, most: Floats, shares: Floats, target: float, iterations: int
) -> tuple[float, Floats]:
    """Improve shares by subgradient steps.

    Parameters
    ----------
    shares : ndarray, shape (J, R, K)
        Where to begin.
    target : float
        Cost of a feasible placement of the slot: the bound cannot pass it.
    iterations : int
        Steps.

    Returns
    -------
    bound : float
        The best bound met.
    shares : ndarray, shape (J, R, K)
        The shares that prove it.
    """
    unit, discounted, _ = tiers
    jobs, centers, kinds = shares.shape
    size = np.ones((jobs, kinds))  # steps are taken in money: lambda H
    for j in range(jobs):
        for k in range(kinds):
            if most[j, k] > 0.0:
                size[j, k] = most[j, k]
    now = shares.copy()
    best = -np.inf
    best_shares = now.copy()
    step = 1.0
    stale = 0
    direction = np.zeros_like(now)
    for _ in range(iterations):
        bound, gradient = shared_bound(slot, tiers, most, now)
        if best == -np.inf or bound > best + 1e-9 * abs(best):
            best = bound
            best_shares = now.copy()
            stale = 0
        else:
            stale += 1
            if stale >= 8:
                step *= 0.7
                stale = 0
                now = best_shares.copy()
                direction = np.zeros_like(now)
                continue
        if target - best <= 1e-9 * abs(target) or step < 1e-4:
            break
        length = 0.0
        for j in range(jobs):
            for r in range(centers):
                for k in range(kinds):
                    move = gradient[j, r, k] / size[j, k]
                    full = unit[r, k] - discounted[r, k]
                    if (now[j, r, k] <= 0.0 and move < 0.0) or (
                        now[j, r, k] >= full and move > 0.0
                    ):
                        move = 0.0
                    direction[j, r, k] = 0.7 * move + 0.3 * direction[j, r, k]
                    length += direction[j, r, k] ** 2
        if length <= 0.0:
            break
        far = step * max(target - bound, 1e-6 * abs(target)) / length
        for j in range(jobs):
            for r in range(centers):
                for k in range(kinds):
                    value = now[j, r, k] + far * direction[j, r, k] / size[j, k]
                    now[j, r, k] = min(max(value, 0.0), unit[r, k] - discounted[r, k])
    return best, best_shares
