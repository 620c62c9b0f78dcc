"""Every algorithm of the astraea family by name, their estimates and the paper's guarantee."""

from __future__ import annotations

from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.online.astraea.baselines import GandivaFair, Hived
from hindsched.online.astraea.batchsche import Batchsche
from hindsched.online.astraea.literal import AstraeaLiteral
from hindsched.online.astraea.paper import Astraea
from hindsched.online.astraea.theorem import theorem
from hindsched.online.baselines.infeasible_baselines import relaxing_baselines
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.registry import Factory


class AstraeaDualPrice(DualPrice):
    """Best responses to the capacity duals of the relaxation over whole schedules.

    Parameters
    ----------
    iterations : int
        Simplex iterations a relaxation; see `DualPrice`.
    """

    over_schedules = True


ALGORITHMS: dict[str, Factory] = {
    "astraea": Astraea,
    "astraea-literal": AstraeaLiteral,
    "dual-price": AstraeaDualPrice,
    "reoptimise": Reoptimise,
    "batchsche": Batchsche,
    "gandiva-fair": GandivaFair,
    "hived": Hived,
    **relaxing_baselines(rigid=True),
}


def declared_estimates(instance: Instance) -> JsonObject:
    """Nothing is declared in advance: theta follows from each batch."""
    return {}


__all__ = ["ALGORITHMS", "declared_estimates", "theorem"]
