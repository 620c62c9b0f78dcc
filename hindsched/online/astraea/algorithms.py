"""Every algorithm of the astraea family by name, their estimates and the paper's guarantee."""

from __future__ import annotations

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.models.astraea.sets import UnitCluster, last_worthwhile_slot
from hindsched.models.windows.sets import EmptyCluster
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


class AstraeaReoptimise(Reoptimise):
    """`Reoptimise`, with plans over whole schedules where a step's program is large."""

    def num_columns(self, slot: int) -> int:
        """Columns of the jobs that have not begun."""
        known = self._rolling.instance
        assert isinstance(known, AstraeaInstance)
        empty = EmptyCluster(UnitCluster.of(known))
        return sum(
            empty.num_columns(
                modes(known, job), max(job.arrival + 1, slot), last_worthwhile_slot(known, job)
            )
            for job in known.jobs if job.name not in self._locked
        )  # fmt: skip


ALGORITHMS: dict[str, Factory] = {
    "astraea": Astraea,
    "astraea-literal": AstraeaLiteral,
    "dual-price": AstraeaDualPrice,
    "reoptimise": AstraeaReoptimise,
    "batchsche": Batchsche,
    "gandiva-fair": GandivaFair,
    "hived": Hived,
    **relaxing_baselines(rigid=True),
}


def declared_estimates(instance: Instance) -> JsonObject:
    """Nothing is declared in advance: theta follows from each batch."""
    return {}


__all__ = ["ALGORITHMS", "declared_estimates", "theorem"]
