"""The dual (6) of astraea's program over schedules (5)."""

from __future__ import annotations

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.models.astraea.offline import family_of
from hindsched.models.declared import symbols
from hindsched.models.windows import dual


class AstraeaDual(dual.ScheduleDual):
    """The dual (6) of (5), one row (6a) a schedule; prices are eta."""

    SYMBOLS = symbols(
        "job: payoff; server, worker or PS type, slot: price; job, schedule: eq_6a",
        "revenue: payoff; revenue a worker or PS: price; share of the schedule: eq_6a",
    )
    OBJECTIVE_UNIT = "revenue"


def build_dual(instance: AstraeaInstance, formulation: str) -> AstraeaDual:
    """Build (6); jobs in pieces have no such dual."""
    last, jobs = instance.horizon, instance.jobs
    found: AstraeaDual = dual.build(
        AstraeaDual, family_of(instance), formulation, "6a",
        {j: (job.arrival + 1, last) for j, job in enumerate(jobs)},
        lambda j, slot: instance.revenue(jobs[j], slot), last, "dual (6) of (5)",
    )  # fmt: skip
    return found
