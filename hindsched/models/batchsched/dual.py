"""The dual (9)/(18) of a round's program over schedules (8)/(17); the paper has none of (2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.models.batchsched.symbols import BatchschedNames
from hindsched.models.declared import Symbol
from hindsched.models.windows.block import refuse_in_pieces
from hindsched.models.windows.dual import ScheduleDual, build_dual_model, schedules
from hindsched.models.windows.sets import EmptyCluster, Starts, job_sets


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedDual(BatchschedNames, ScheduleDual):
    """(9)/(18): it bounds the round problem (7)/(16) up to a slot, not the offline one."""

    SYMBOLS: ClassVar[dict[str, Symbol]] = {
        "payoff": Symbol("job", "weight"),
        "price": Symbol("server, resource, slot", "weight a unit"),
        "eq_9a": Symbol("job, schedule", "share of the schedule"),
        "eq_18a": Symbol("job, schedule", "share of the schedule"),
    }
    OBJECTIVE_UNIT = "weight"

    def prices(self) -> dict[str, Floats]:
        """``capacity``: delta, shape (H, R, last)."""
        return {"capacity": self.price_array}


def build_dual(
    instance: BatchschedInstance, formulation: str | None = None, *, last: int | None = None
) -> BatchschedDual:
    """Build (9)/(18), one row a schedule.

    Parameters
    ----------
    instance : BatchschedInstance
        The batch; arrivals do not matter.
    formulation : str, optional
        ``modes`` and ``literal`` have this dual.
    last : int, optional
        Last slot; by default the horizon.

    Examples
    --------
    >>> import hindsched as hs
    >>> print(build_dual(hs.generate("batchsched", jobs=1, seed=1), last=2).title)
    batchsched: dual of (8), all jobs in slots 1 to 2, of batchsched-small-j1-s1
    """
    formulation = instance.check_formulation(formulation)
    refuse_in_pieces(formulation)
    last = instance.horizon if last is None else last
    empty = EmptyCluster(instance)
    listed = [
        found
        for j, job in enumerate(instance.jobs)
        for sets in [job_sets(Starts.of(empty, modes(instance, job), 1, last))]
        for found in schedules(j, empty, sets, lambda _, w=float(job.weight): w)
    ]
    primal, row = ("(8)", "9a") if instance.has_ps else ("(17)", "18a")
    jobs, capacity = len(instance.jobs), instance.server_capacity
    return BatchschedDual(
        instance=instance, formulation=formulation, listed=listed, capacity=capacity, row=row,
        slots=last, primal=f"{primal}, all jobs in slots 1 to {last},",
        model=build_dual_model(instance.name, listed, jobs, capacity, last, row),
    )  # fmt: skip
