"""The registered algorithms of gang and the estimates that they are told: none."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.online.gang.hindsight import Hindsight
from hindsched.online.gang.planning import DualPrice, Reoptimise
from hindsched.online.gang.policies import (
    Conservative,
    Easy,
    Fifo,
    FifoSkip,
    Las,
    Sjf,
    SmallestFirst,
    Srtf,
    Wspt,
)
from hindsched.online.gang.theorems import THEOREMS
from hindsched.online.registry import Factory

ALGORITHMS: dict[str, Factory] = {
    policy.name: policy
    for policy in (
        Fifo, FifoSkip, Sjf, SmallestFirst, Wspt, Easy, Conservative, Srtf, Las,
    )
}  # fmt: skip
ALGORITHMS |= {"dual-price": DualPrice, "reoptimise": Reoptimise, "hindsight": Hindsight}
THEOREM_ALGORITHMS = THEOREMS


def declared_estimates(instance: Instance) -> JsonObject:
    """Nothing is told in advance."""
    return {}
