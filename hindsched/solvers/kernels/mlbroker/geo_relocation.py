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

from hindsched.solutions.mlbroker.transport import ship
from hindsched.solvers.kernels.mlbroker.geo_placement import LEFT, best_placement, pinned_workers

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
    best: float,
) -> float:
    """Exact cost of one job; infinite where it is not below `best`, or the data does not fit."""
    fixed = joining_price(workers, ps, worker, server, others, unit, discounted, fee)
    for r in range(data.size):
        fixed += workers[r] * exchange[r, ps]
        if workers[r] > 0 or r == ps:
            fixed += launch[r]
    limit = best * (1.0 + 1e-12)
    if fixed > limit:
        return np.inf
    least = fixed  # every source in its cheapest centre with a worker, whatever the room
    for i in range(data.size):
        if data[i] > 0.0:
            nearest = np.inf
            for r in range(data.size):
                if workers[r] > 0:
                    nearest = min(nearest, arc[i, r])
            least += data[i] * nearest
            if least > limit:
                return np.inf
    cost, left, _ = ship(data, capacity * workers.astype(np.float64), arc)
    if left > LEFT * data.sum():
        return np.inf
    return cost + fixed


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
    node_limit: int,
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
    node_limit : int
        Nodes of the best response that is among the neighbours; with 0 it is not.

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
    others = np.zeros((centers, kinds))
    talk = np.zeros((centers, centers))
    for _ in range(passes):
        improved = False
        for j in range(jobs):
            for r in range(centers):
                for k in range(kinds):
                    left = used[r, k] - workers[j, r] * worker[j, k]
                    if r == ps[j]:
                        left -= server[j, k]
                    others[r, k] = left if left > 1e-12 * used[r, k] else 0.0
                for q in range(centers):
                    talk[r, q] = exchange[j] * distance[r, q]
            moved, ps[j] = _improve(
                workers[j], ps[j], data[j], capacity[j], needed[j], worker[j], server[j], talk,
                arc[j], launch[j], others, unit, discounted, fee, node_limit,
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
    workers: Ints,
    ps: int,
    data: Floats,
    capacity: float,
    needed: int,
    worker: Floats,
    server: Floats,
    talk: Floats,
    arc: Floats,
    launch: Floats,
    others: Floats,
    unit: Floats,
    discounted: Floats,
    fee: Floats,
    node_limit: int,
) -> tuple[bool, int]:
    """Move one job to its cheapest neighbour in place; whether it moved, and its PS.

    All neighbours pass through one call of the cost, which keeps the time to compile low.
    """
    centers = data.size
    floor = pinned_workers(data, capacity, arc)
    trial = workers.copy()
    here = best = np.inf
    best_ps = ps
    best_workers = workers.copy()
    total = 1 + 2 * centers + centers * (1 + 3 * centers) + 1
    for number in range(total):
        to = ps
        if number == 0:
            pass  # where it is
        elif number < total - 1:
            to = _neighbour(number - 1, workers, ps, needed, floor, trial)
        elif node_limit > 0:
            worker_price, server_price = average_prices(
                needed, worker, server, others, unit, discounted, fee
            )
            # chords of what joining costs: what is above `best` at them is above it here
            _, _, response, to = best_placement(
                data, capacity, needed, worker_price, server_price, talk, arc, launch, node_limit,
                best,
            )  # fmt: skip
            for r in range(centers):
                trial[r] = response[r]
        else:
            to = -1
        if to < 0:
            continue
        cost = _job_cost(
            trial, to, data, capacity, worker, server, talk, arc, launch, others, unit,
            discounted, fee, best,
        )  # fmt: skip
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
def _neighbour(number: int, workers: Ints, ps: int, needed: int, floor: Ints, trial: Ints) -> int:
    """Write neighbour `number` of a placement into `trial`; its PS, or -1 if there is none."""
    centers = workers.size
    if number < centers:  # everything into one centre
        rest = needed
        for i in range(centers):
            trial[i] = floor[i]
            if i != number:
                rest -= floor[i]
        trial[number] = max(floor[number], rest)
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
        return ps if placed >= needed and trial[r] >= floor[r] else -1
    q = (number - 1) // 3
    kind = (number - 1) % 3  # one worker, all workers, all with the PS
    count = 1 if kind == 0 else workers[r]
    if q == r or (kind == 1 and count == 1) or (kind == 2 and ps != r):
        return -1
    trial[r] -= count
    trial[q] += count
    return q if kind == 2 else ps


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
