"""The dual (6) of astraea's program over schedules (5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes
from hindsched.models.astraea.cluster import AstraeaNames, UnitCluster
from hindsched.models.astraea.printed import REVENUE
from hindsched.models.declared import Symbol
from hindsched.models.windows.block import refuse_in_pieces
from hindsched.models.windows.dual import ScheduleDual, build_dual_model, schedules
from hindsched.models.windows.sets import EmptyCluster, Starts, job_sets


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaDual(AstraeaNames, ScheduleDual):
    """The dual (6), one row (6a) a schedule."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        "payoff": Symbol("job", REVENUE),
        "price": Symbol("server, worker or PS type, slot", f"{REVENUE} a worker or PS"),
        "eq_6a": Symbol("job, schedule", "share of the schedule"),
    }
    OBJECTIVE_UNIT = REVENUE

    instance: AstraeaInstance

    def prices(self) -> dict[str, Floats]:
        """Eta: ``worker_capacity`` (S, W, T) and ``ps_capacity`` (S, P, T)."""
        split, prices = len(self.instance.worker_types), self.price_array
        return {"worker_capacity": prices[:, :split], "ps_capacity": prices[:, split:]}


def build_dual(instance: AstraeaInstance, formulation: str | None = None) -> AstraeaDual:
    """Build the dual (6), one row (6a) a schedule.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("astraea", jobs=1, horizon=4)).payoffs().shape
    (1,)
    """
    formulation = instance.check_formulation(formulation)
    refuse_in_pieces(formulation)
    cluster, last = UnitCluster.of(instance), instance.horizon
    empty = EmptyCluster(cluster)
    listed = [
        found
        for j, job in enumerate(instance.jobs)
        for sets in [job_sets(Starts.of(empty, modes(instance, job), job.arrival + 1, last))]
        for found in schedules(j, empty, sets, partial(instance.revenue, job))
    ]
    model = build_dual_model(
        instance.name, listed, len(instance.jobs), cluster.server_capacity, last, "6a"
    )
    return AstraeaDual(
        instance=instance, formulation=formulation, listed=listed, capacity=cluster.server_capacity,
        row="6a", slots=last, primal="(5)", model=model,
    )  # fmt: skip
