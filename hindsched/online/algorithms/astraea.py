"""Every algorithm of the astraea family by name, their estimates and the paper's guarantee."""

from __future__ import annotations

from typing import Any

from hindsched.instances.base import Instance
from hindsched.online.algorithms.astraea_literal import AstraeaLiteral
from hindsched.online.algorithms.astraea_online import Astraea
from hindsched.online.algorithms.astraea_theorem import theorem
from hindsched.online.dual_price import DualPrice
from hindsched.online.registry import Factory
from hindsched.online.reoptimise import Reoptimise
from hindsched.online.rivals.batchsche import Batchsche
from hindsched.online.rivals.gandiva_fair import GandivaFair
from hindsched.online.rivals.hived import Hived

ALGORITHMS: dict[str, Factory] = {
    "astraea": Astraea,
    "astraea-literal": AstraeaLiteral,
    "dual-price": DualPrice,
    "reoptimise": Reoptimise,
    "batchsche": Batchsche,
    "gandiva-fair": GandivaFair,
    "hived": Hived,
}


def declared_estimates(instance: Instance) -> dict[str, Any]:
    """Nothing is declared in advance: theta follows from each batch."""
    return {}


__all__ = ["ALGORITHMS", "declared_estimates", "theorem"]
