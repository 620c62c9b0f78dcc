"""The paper's claims r1 (Theorem 3), r2 (Theorem 4) and r1 r2 (Theorem 5), and why not to use r2.

r1 is a claim: its proof uses a dual (11) that violates weak duality. r2 has no meaning: it adds
USD/GB to GB/GB, compares GB with USD on the way, and divides by the least data of any centre; the
same instance in cents has another r2. Both are computed as printed; nothing is tested against r2.
"""

from __future__ import annotations

import math

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.online.protocol import Theorem, theorem_of

R2_WARNING = (
    "r2 as printed depends on the currency and on the unit of data; it bounds nothing and is shown "
    "only because the paper states it"
)


def r1(epsilon: float) -> float:
    """Theorem 3's ratio, 2 + (1 + eps) ln(1 + 1 / eps): falls towards 3 as eps grows."""
    if not 0 < epsilon < math.inf:
        raise InputError("epsilon", epsilon, "must be above 0 and finite")
    return 2.0 + (1.0 + epsilon) * math.log1p(1.0 / epsilon)


def r2_paper(instance: MlbrokerInstance) -> dict[str, float | None]:
    """Theorem 4's sum of four terms as printed; None where it divides by 0."""
    alive = instance.alive
    if not alive.any():
        return {"r2": None, "lambda": None}
    least = instance.data.min(axis=2)[alive]
    capacity = np.repeat(instance.capacity[:, None], instance.horizon, axis=1)[alive]
    needed = instance.workers_needed[alive].astype(float)
    job = np.nonzero(alive)[0]
    if (least <= 0).any() or (needed <= 0).any():
        return {"r2": None, "lambda": None}
    centers = len(instance.datacenters)
    lam = float((capacity * (centers + 1) / least).max())
    first = (1 + lam) * float(instance.transfer_price.max())
    units = (1 + lam) * instance.worker_demand[job] + instance.ps_demand[job] / needed[:, None]
    units = units / capacity[:, None]
    full = float((units[:, None] * instance.unit_price[None]).max())
    tier = instance.discounted_price + instance.tier_fee
    second = min(full, float((units[:, None] * tier[None]).max()))
    third = float(((2 + lam) * instance.deployment[job] / (capacity * needed)).max())
    fourth = (1 + lam) * float((instance.exchange / instance.capacity).max())
    return {"r2": first + second + third + fourth, "lambda": lam}


def theorem(instance: Instance, epsilon: float = 0.01) -> Theorem:
    """Theorem 5's ratio r1 r2 as printed, its parts, and what speaks against it.

    The value is None where r2 divides by 0; `epsilon` is that of the regulariser.
    """
    assert isinstance(instance, MlbrokerInstance)
    second = r2_paper(instance)
    value = None if second["r2"] is None else r1(epsilon) * second["r2"]
    data = instance.data[instance.alive]
    least = float(data.min()) if data.size else None
    jobs, tiers = len(instance.jobs), len(instance.datacenters) * len(instance.resources)
    assumed = [
        ("K R <= number of jobs (12d)", tiers <= jobs, tiers - jobs),
        ("every centre has data of every job in every slot (lambda is finite)",
         least is not None and least > 0, least),
        ("the dual (11) of Theorem 3's proof obeys weak duality", False, None),
        ("r2 is free of units", False, None),
    ]  # fmt: skip
    quantities = {"r1": r1(epsilon), "r2_paper": second["r2"], "lambda": second["lambda"],
                  "epsilon": epsilon}  # fmt: skip
    return theorem_of("ratio", value, assumed, quantities=quantities, warning=R2_WARNING)
