"""Bounds of mlbroker without branching: P_f (9) by linear programs, and certified prices.

The certified ones (chord, PS-conditioned, Lagrangian) are one formula at different prices: the
oracle's best responses of the jobs plus the tiers that do not earn their fee. A launch is spread
evenly over a job's life, which makes the slots independent; within a slot the fees are shared among
the jobs: the equal share e / sum_j H_j is the chord of the concave price, and a projected
subgradient method with Polyak steps looks for better ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsched.arrays import Bools, Floats
from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.offline import build_chord, build_offline
from hindsched.models.mlbroker.slot_program import Price
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.work import Clock, spend
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.placements import jobs_of, tight_placement
from hindsched.solvers.kernels.mlbroker.geo_placement import SlotJobs, shared_bound

ITERATIONS = 400
"""Most subgradient steps a slot."""
PATIENCE, SHRINK, LEAST_STEP = 8, 0.7, 1e-4
"""Steps without gain after which they become shorter, by how much, and where they end."""
MOMENTUM = 0.3
"""Weight of the directions before in a step's direction."""


def relaxation_bound(
    instance: MlbrokerInstance, price: Price = "chord", *, time_limit: float | None = None
) -> float:
    """Optimum of P_f, weighted USD: a lower bound on every schedule's realised cost.

    With the chord of the concave price the jobs fall apart into one program each; ``paper`` is the
    relaxed big-M bill, in one program. `time_limit` is in seconds for each program.
    """
    if price == "paper":
        models = [build_offline(instance, "paper", relax=True).model]
    else:
        models = [build_chord(instance, j) for j in range(len(instance.jobs))]
    total = 0.0
    for model in models:
        found = solve_program(model, SolveOptions(time_limit=time_limit))
        if found.bound is None or not found.has_point:
            raise SolveFailed(f"P_f of {instance.name}: {found.status}, {found.stopped_by}")
        total += found.bound
    return total


def lagrangian_certificate(
    instance: MlbrokerInstance, formulation: str = "tight", *, oracle: MlbrokerOracle | None = None,
    iterations: int = ITERATIONS, clock: Clock | None = None,
    on_slot: Callable[[float, int], None] | None = None, held: Bools | None = None,
) -> Certificate:  # fmt: skip
    """Certificate of the best shares found; 0 iterations give the PS-conditioned chord bound.

    `iterations` are the most subgradient steps a slot; once the clock is over, slots keep their
    equal shares. `on_slot` is called with the relaxed bound so far and the slot. Where a job is
    `held`, (J, R), it ran before its first slot, and a launch costs it nothing.
    """
    oracle = oracle or MlbrokerOracle(instance, formulation)
    launches = np.repeat(oracle.launches[:, None], len(instance.datacenters), axis=1)
    launches /= instance.slots_left.max(axis=1)[:, None]  # spread evenly over a job's life
    if held is not None:
        launches[held] = 0.0
    prices = np.zeros(oracle.rows.size)
    arrays = oracle.rows.unpack(prices)
    arrays["deployment"][:] = launches.T[:, :, None] * instance.slots_left
    total = 0.0
    for t, alive in enumerate(instance.alive.T):
        if not alive.any():
            continue
        slot = SlotData.at(instance, t + 1)
        jobs = jobs_of(slot, launches[alive])
        if formulation == "paper":  # talk with the PS is free
            jobs = jobs._replace(distance=0.0 * slot.distance)
        spend()
        late = clock is not None and clock.is_over
        target, steps = np.inf, 1
        if iterations and not late:
            target = tight_placement(slot, launches[alive], relocation=False).cost
            steps = iterations
        bound, shares = _share_fees(jobs, slot.largest_use, target, steps)
        arrays["discount"][:, :, alive, t] = shares.transpose(1, 2, 0)
        total += bound
        if on_slot is not None:
            on_slot(total, t + 1)
    return certify(oracle, prices)


def _share_fees(
    jobs: SlotJobs, most: Floats, target: float, iterations: int
) -> tuple[float, Floats]:
    """The best bound on a slot that shares of its fees prove, and those shares, (J, R, K).

    `most` is H, (J, K); no bound can pass `target`, the cost of a feasible placement of the slot.
    """
    full = jobs.unit - jobs.discounted
    together = most.sum(axis=0)
    equal = np.divide(jobs.fee, together, out=np.zeros_like(full), where=together > 0)
    shares = best_shares = np.repeat(np.minimum(equal, full)[None], len(most), axis=0)
    size = np.where(most > 0, most, 1.0)[:, None]  # steps are taken in money: lambda H
    direction = np.zeros_like(shares)
    best, step, stale = -np.inf, 1.0, 0
    for _ in range(iterations):
        bound, gradient = shared_bound(jobs, most, shares)
        if best == -np.inf or bound > best + 1e-9 * abs(best):
            best, best_shares, stale = bound, shares, 0
        elif stale + 1 >= PATIENCE:
            step, stale, shares = SHRINK * step, 0, best_shares
            direction = np.zeros_like(shares)
            continue
        else:
            stale += 1
        if target - best <= 1e-9 * abs(target) or step < LEAST_STEP:
            break
        move = gradient / size
        outward = ((shares <= 0) & (move < 0)) | ((shares >= full) & (move > 0))
        direction = (1 - MOMENTUM) * np.where(outward, 0.0, move) + MOMENTUM * direction
        length = float((direction**2).sum())
        if length <= 0:
            break
        far = step * max(target - bound, 1e-6 * abs(target)) / length
        shares = np.clip(shares + far * direction / size, 0.0, full)
    return best, best_shares
