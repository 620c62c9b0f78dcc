"""Local search on the exact cost of one mlbroker slot, compiled.

The jobs of a slot are tied only by the tiered price of what they rent together. A pass goes over
the jobs; each moves to the cheapest of its neighbours at the exact cost, all others fixed:

- the PS to another centre;
- one or all workers of a centre to another, with or without the PS;
- everything into one centre (but for pinned data);
- one surplus worker gone;
- the exact best response to the average price that joining each centre would have.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hindsched.solutions.mlbroker_transport import ship
from hindsched.solvers.kernels.geo_placement import best_placement, pinned_workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True)
def tier_price(unit: float, discounted: float, fee: float, used: float) -> float:
    """Two-tier price F of `used` units."""
    return min(unit * used, discounted * used + fee)


@njit(cache=True)
def joining_price(
    workers: Ints,
    ps: int,
    worker: Floats,
    server: Floats,
    others: Floats,
    unit: Floats,
    discounted: Floats,
    fee: Floats,
) -> float:
    """What a job's resources add to the tiered bill when the others use `others` (R, K)."""
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
                cost += tier_price(unit[r, k], discounted[r, k], fee[r, k], others[r, k] + more)
                cost -= tier_price(unit[r, k], discounted[r, k], fee[r, k], others[r, k])
    return cost


@njit(cache=True)
def _job_cost(
    workers: Ints,
    ps: int,
    data: Floats,
    capacity: float,
    worker: Floats,
    server: Floats,
    exchange: Floats,
    arc: Floats,
    launch: Floats,
    others: Floats,
    unit: Floats,
    discounted: Floats,
    fee: Floats,
) -> float:
    cost, left, _ = ship(data, capacity * workers.astype(np.float64), arc)
    if left > 5e-7 * max(1.0, data.sum()):
        return np.inf
    for r in range(data.size):
        cost += workers[r] * exchange[r, ps]
        if workers[r] > 0 or r == ps:
            cost += launch[r]
    return cost + joining_price(workers, ps, worker, server, others, unit, discounted, fee)


@njit(cache=True)
def relocate(
    workers: Ints,
    ps: Ints,
    data: Floats,
    capacity: Floats,
    needed: Ints,
    worker: Floats,
    server: Floats,
    exchange: Floats,
    distance: Floats,
    arc: Floats,
    launch: Floats,
    unit: Floats,
    discounted: Floats,
    fee: Floats,
    passes: int,
    respond: bool,
) -> int:
    """Improve a slot's integer placement in place until no single job gains.

    Parameters
    ----------
    workers, ps : ndarray of int, shapes (J, R), (J,)
        The placement; changed in place. It must hold the data.
    data, capacity, needed : ndarray, shapes (J, R), (J,), (J,)
        D, P and N of each job.
    worker, server : ndarray, shape (J, K)
        n and m.
    exchange : ndarray, shape (J,)
        B in GB; times `distance` it is the weighted price of a remote worker.
    distance : ndarray, shape (R, R)
        Weighted d for communication.
    arc : ndarray, shape (J, R, R)
        Weighted transfer price, infinite where pinned data would leave.
    launch : ndarray, shape (J, R)
        Weighted launch cost, 0 where the job already runs.
    unit, discounted, fee : ndarray, shape (R, K)
        Weighted a, b and e.
    passes : int
        Most passes over the jobs.
    respond : bool
        Whether the exact best response is among the neighbours.

    Returns
    -------
    int
        Number of moves made.
    """
    jobs, centers = workers.shape
    kinds = unit.shape[1]
    used = np.zeros((centers, kinds))
    for j in range(jobs):
        for k in range(kinds):
            for r in range(centers):
                used[r, k] += workers[j, r] * worker[j, k]
            used[ps[j], k] += server[j, k]
    moves = 0
    trial = np.zeros(centers, dtype=np.int64)
    for _ in range(passes):
        improved = False
        for j in range(jobs):
            others = used.copy()
            for k in range(kinds):
                for r in range(centers):
                    others[r, k] -= workers[j, r] * worker[j, k]
                others[ps[j], k] -= server[j, k]
            for r in range(centers):
                for k in range(kinds):
                    if others[r, k] < 1e-9:
                        others[r, k] = 0.0
            talk = exchange[j] * distance
            floor = pinned_workers(data[j], capacity[j], arc[j])
            here = _job_cost(
                workers[j], ps[j], data[j], capacity[j], worker[j], server[j], talk, arc[j],
                launch[j], others, unit, discounted, fee,
            )  # fmt: skip
            best = here
            best_workers = workers[j].copy()
            best_ps = ps[j]
            # Everything into one centre.
            for r in range(centers):
                trial[:] = floor
                rest = needed[j]
                for i in range(centers):
                    if i != r:
                        rest -= floor[i]
                trial[r] = max(trial[r], rest)
                cost = _job_cost(
                    trial, r, data[j], capacity[j], worker[j], server[j], talk, arc[j],
                    launch[j], others, unit, discounted, fee,
                )  # fmt: skip
                if cost < best:
                    best, best_workers, best_ps = cost, trial.copy(), r
            # The PS alone.
            for p in range(centers):
                if p == ps[j]:
                    continue
                cost = _job_cost(
                    workers[j], p, data[j], capacity[j], worker[j], server[j], talk, arc[j],
                    launch[j], others, unit, discounted, fee,
                )  # fmt: skip
                if cost < best:
                    best, best_workers, best_ps = cost, workers[j].copy(), p
            # Workers of one centre to another, and a surplus worker gone.
            for r in range(centers):
                if workers[j, r] == 0:
                    continue
                trial[:] = workers[j]
                trial[r] -= 1
                if trial.sum() >= needed[j] and trial[r] >= floor[r]:
                    cost = _job_cost(
                        trial, ps[j], data[j], capacity[j], worker[j], server[j], talk, arc[j],
                        launch[j], others, unit, discounted, fee,
                    )  # fmt: skip
                    if cost < best:
                        best, best_workers, best_ps = cost, trial.copy(), ps[j]
                for q in range(centers):
                    if q == r:
                        continue
                    for kind in range(3):
                        count = 1 if kind == 0 else workers[j, r]
                        if kind == 1 and count == 1:
                            continue
                        if kind == 2 and ps[j] != r:
                            continue
                        trial[:] = workers[j]
                        trial[r] -= count
                        trial[q] += count
                        to = q if kind == 2 else ps[j]
                        cost = _job_cost(
                            trial, to, data[j], capacity[j], worker[j], server[j], talk, arc[j],
                            launch[j], others, unit, discounted, fee,
                        )  # fmt: skip
                        if cost < best:
                            best, best_workers, best_ps = cost, trial.copy(), to
            if respond:
                worker_price, server_price = average_prices(
                    needed[j], worker[j], server[j], others, unit, discounted, fee
                )
                _, _, response, to = best_placement(
                    data[j], capacity[j], needed[j], worker_price, server_price, talk, arc[j],
                    launch[j], 2000,
                )  # fmt: skip
                cost = _job_cost(
                    response, to, data[j], capacity[j], worker[j], server[j], talk, arc[j],
                    launch[j], others, unit, discounted, fee,
                )  # fmt: skip
                if cost < best:
                    best, best_workers, best_ps = cost, response, to
            if best < here - 1e-10 * (1.0 + abs(here)):
                workers[j] = best_workers
                ps[j] = best_ps
                improved = True
                moves += 1
            used[:] = others
            for k in range(kinds):
                for r in range(centers):
                    used[r, k] += workers[j, r] * worker[j, k]
                used[ps[j], k] += server[j, k]
        if not improved:
            break
    return moves


@njit(cache=True)
def average_prices(
    needed: int,
    worker: Floats,
    server: Floats,
    others: Floats,
    unit: Floats,
    discounted: Floats,
    fee: Floats,
) -> tuple[Floats, Floats]:
    """Average price per worker and per PS if the whole job joined each centre, shapes (R,), (R,).

    The prices of ``oasis-style``'s sequential variant: units are charged at what they would add to
    the tiered bill if all `needed` workers and the PS came to the centre.
    """
    centers, kinds = unit.shape
    worker_price = np.zeros(centers)
    server_price = np.zeros(centers)
    for r in range(centers):
        for k in range(kinds):
            more = needed * worker[k] + server[k]
            if more <= 0.0:
                continue
            price = tier_price(unit[r, k], discounted[r, k], fee[r, k], others[r, k] + more)
            price -= tier_price(unit[r, k], discounted[r, k], fee[r, k], others[r, k])
            worker_price[r] += worker[k] * price / more
            server_price[r] += server[k] * price / more
    return worker_price, server_price
