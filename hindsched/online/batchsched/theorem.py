"""What Theorems 3 and 5 of batchsched say of an instance, and the densities in which it counts."""

from __future__ import annotations

import math

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import modes
from hindsched.online.dynamics import largest_share
from hindsched.online.engines.server_batches import volumes
from hindsched.online.protocol import Theorem, theorem_of


def densities(instance: BatchschedInstance) -> Floats:
    """Weight per least volume of every job."""
    return np.array([job.weight / volumes(instance, job).min() for job in instance.jobs])


OBSERVED_ALPHA = 4  # what the paper observes in its simulations


def theorem(instance: BatchschedInstance) -> Theorem:
    """Theorem 5: A_online is ``4 alpha``-competitive, with the theorem's alpha.

    Beside it stand the paper's further quantities: log2 lambda, Theorem 3's ``2 log2 lambda``, the
    alpha of (6) per batch and the constant one that the paper observes. ``worst`` is by what factor
    an assumption is missed. Logarithms are to base 2, as ``1 + log log lambda`` in Theorem 5
    implies; lambda takes the horizon at which the last batch is planned.
    """
    if not instance.jobs:
        return theorem_of("ratio", None)
    density = densities(instance)
    servers, resources = instance.server_capacity.shape
    last = max(int(modes(instance, job).duration.min()) for job in instance.jobs)
    horizon = 1 << math.ceil(
        math.log2(max(last + 1, max(job.arrival for job in instance.jobs) + 1))
    )
    spread = float(density.max() / density.min())
    log_base = math.log2(2.0 * horizon * servers * resources * spread + 1.0)
    gamma = 2.0 * log_base
    weights = np.array([job.weight for job in instance.jobs], dtype=float)
    alpha = _alpha(float(weights.sum()), float(weights.min()), gamma)
    batches: dict[int, float] = {}
    for job in instance.jobs:
        first = 1 << math.ceil(math.log2(job.arrival + 1))
        batches[first] = batches.get(first, 0.0) + float(job.weight)
    per_batch = {tau: _alpha(w, float(weights.min()), gamma) for tau, w in sorted(batches.items())}
    units = (instance.worker_demand, instance.ps_demand)
    share = largest_share((demand, instance.server_capacity) for demand in units)
    # In units of the smallest density every job's least volume satisfies 1 <= w / sum f <= F.
    thinnest = min(
        float(job.weight / density.min() / volumes(instance, job).max()) for job in instance.jobs
    )
    assumed = [
        ("1 <= weight / (resources x slots) <= F for every schedule (Section 5.1)",
         thinnest >= 1.0, 1.0 / thinnest),
        ("demand of a job on a server / capacity <= 1 / log2 lambda (Theorem 3)",
         share <= 1.0 / log_base, share * log_base),
        ("F, the weights and their minimum are known in advance", False, spread),
    ]  # fmt: skip
    return theorem_of(
        "ratio", 4.0 * alpha, assumed, alpha=alpha, alpha_constant=OBSERVED_ALPHA,
        alpha_per_batch={str(tau): value for tau, value in per_batch.items()},
        log2_lambda=log_base, max_weight_ratio=gamma,
    )  # fmt: skip


def _alpha(total: float, least: float, gamma: float) -> int:
    """(6): sub-rounds after which the accepted weight reaches the optimum's."""
    shrink = math.log2(gamma) - math.log2(gamma - 1.0)
    return math.floor((math.log2(total) - math.log2(least)) / shrink) + 1
