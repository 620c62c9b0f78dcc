"""The dual (9)/(18) of a round's program over schedules (8)/(17); the paper has none of (2)."""

from __future__ import annotations

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.models.batchsched.offline import family_of
from hindsched.models.declared import symbols
from hindsched.models.windows import dual


class BatchschedDual(dual.ScheduleDual):
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
    last = instance.horizon if last is None else last
    spans = dict.fromkeys(range(len(instance.jobs)), (1, last))
    primal, row = ("(8)", "9a") if instance.has_ps else ("(17)", "18a")
    found: BatchschedDual = dual.build(
        BatchschedDual, family_of(instance), formulation, row, spans,
        lambda j, _: float(instance.jobs[j].weight), last,
        f"dual ({row[:-1]}) of {primal}, all jobs in slots 1 to {last},",
    )  # fmt: skip
    return found
