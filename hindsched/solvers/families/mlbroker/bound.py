"""Certified bounds of mlbroker: chord, PS-conditioned and Lagrangian.

All are one formula at different prices: the oracle's best responses of the jobs plus the tiers that
do not earn their fee. A launch is spread evenly over a job's life, which makes the slots
independent; within a slot the fees are shared among the jobs (`share_fees`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.work import now, spend
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.slot import jobs_of, tiers_of, tight_placement
from hindsched.solvers.kernels.mlbroker.blocks import SlotJobs, Tiers
from hindsched.solvers.kernels.mlbroker.fee_sharing import share_fees, shared_bound

ITERATIONS = 400
"""Most subgradient steps a slot."""
Listener = Callable[[float, int], None]


def chord_shares(slot: SlotData) -> Floats:
    """The equal share e / hmax of each tier's fee, at most a - b, shape (J, R, K)."""
    most = slot.largest_use.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = np.where(most > 0, slot.fee / most, 0.0)
    shares = np.minimum(equal, slot.unit - slot.discounted)
    return np.repeat(shares[None], len(slot.jobs), axis=0)


def lagrangian_certificate(
    instance: MlbrokerInstance,
    formulation: str = "tight",
    *,
    oracle: MlbrokerOracle | None = None,
    iterations: int = ITERATIONS,
    deadline: float | None = None,
    on_slot: Listener | None = None,
) -> Certificate:
    """Certificate of the best shares found; 0 iterations give the PS-conditioned chord bound.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    formulation : {"tight", "paper"}
        Which problem is bounded.
    oracle : MlbrokerOracle, optional
        Its pricing oracle, where the caller goes on with it.
    iterations : int
        Most subgradient steps a slot.
    deadline : float, optional
        Value of `now` after which slots keep their equal shares.
    on_slot : callable, optional
        Called with (relaxed bound so far, slot).
    """
    oracle = oracle or MlbrokerOracle(instance, formulation)
    discount = np.zeros(next(s.shape for s in oracle.rows.sets if s.name == "discount"))
    index = {job.name: j for j, job in enumerate(instance.jobs)}
    life = np.array([job.departure - job.arrival + 1 for job in instance.jobs], dtype=float)
    total = 0.0
    for t in range(1, instance.horizon + 1):
        slot = SlotData.at(instance, t)
        if not slot.jobs:
            continue
        jobs = [index[name] for name in slot.jobs]
        presence = slot.deployment / life[jobs]
        launch = np.repeat(presence[:, None], slot.num_centers, axis=1)
        shares = chord_shares(slot)
        arrays = _arrays(slot, launch, formulation)
        spend()
        late = deadline is not None and now() > deadline
        if iterations and not late:
            target = tight_placement(slot, launch, relocation=False).cost
            bound, shares = share_fees(*arrays, shares, target, iterations)
        else:
            bound, _ = shared_bound(*arrays, shares)
        discount[:, :, jobs, t - 1] = shares.transpose(1, 2, 0)
        total += bound
        if on_slot is not None:
            on_slot(total, t)
    prices = oracle.rows.pack({"discount": discount, "deployment": oracle.amortised_launches()})
    return certify(oracle, prices)


def _arrays(slot: SlotData, launch: Floats, formulation: str) -> tuple[SlotJobs, Tiers, Floats]:
    jobs = jobs_of(slot, launch)
    if formulation == "paper":  # talk with the PS is free
        jobs = jobs._replace(distance=0.0 * slot.distance)
    return jobs, tiers_of(slot), slot.largest_use
