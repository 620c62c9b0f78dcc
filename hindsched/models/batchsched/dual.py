"""The dual (9)/(18) of a round's program over schedules (8)/(17); the paper has none of (2)."""

from __future__ import annotations

from dataclasses import dataclass

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import modes
from hindsched.models.batchsched.offline import family_of
from hindsched.models.declared import symbols
from hindsched.models.windows.dual import ScheduleDual, dual_model, schedules
from hindsched.models.windows.program import refuse_in_pieces
from hindsched.models.windows.sets import EmptyCluster


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedDual(ScheduleDual):
    """(9)/(18): it bounds the round problem (7)/(16) up to a slot, not the offline one."""

    SYMBOLS = symbols(
        "job: payoff; server, resource, slot: price; job, schedule: eq_9a eq_18a",
        "weight: payoff; weight a unit: price; share of the schedule: eq_9a eq_18a",
    )
    OBJECTIVE_UNIT = "weight"


def build_dual(
    instance: BatchschedInstance, formulation: str, *, last: int | None = None
) -> BatchschedDual:
    """Build (9)/(18), one row a schedule that ends by slot `last`; arrivals do not matter."""
    refuse_in_pieces(formulation)
    last = instance.horizon if last is None else last
    empty, family = EmptyCluster(instance), family_of(instance)
    sets = {j: empty.job_sets(modes(instance, job), 1, last) for j, job in enumerate(instance.jobs)}
    listed = schedules(empty, sets, lambda j, _: float(instance.jobs[j].weight))
    primal, row = ("(8)", "9a") if instance.has_ps else ("(17)", "18a")
    return BatchschedDual(
        instance=instance, formulation=formulation, family=family, listed=listed,
        slots=last, whose=f"dual ({row[:-1]}) of {primal}, all jobs in slots 1 to {last},",
        model=dual_model(instance.name, listed, len(instance.jobs), family, last, row),
    )  # fmt: skip
