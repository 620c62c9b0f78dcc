"""The dual (6) of astraea's program over schedules (5)."""

from __future__ import annotations

from dataclasses import dataclass

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import modes
from hindsched.models.astraea.offline import family_of
from hindsched.models.declared import symbols
from hindsched.models.windows.dual import ScheduleDual, dual_model, schedules
from hindsched.models.windows.program import refuse_in_pieces
from hindsched.models.windows.sets import EmptyCluster


@dataclass(kw_only=True, eq=False, repr=False)
class AstraeaDual(ScheduleDual):
    """The dual (6) of (5), one row (6a) a schedule; prices are eta."""

    SYMBOLS = symbols(
        "job: payoff; server, worker or PS type, slot: price; job, schedule: eq_6a",
        "revenue: payoff; revenue a worker or PS: price; share of the schedule: eq_6a",
    )
    OBJECTIVE_UNIT = "revenue"


def build_dual(instance: AstraeaInstance, formulation: str) -> AstraeaDual:
    """Build (6); jobs in pieces have no such dual."""
    refuse_in_pieces(formulation)
    family, last, jobs = family_of(instance), instance.horizon, instance.jobs
    empty = EmptyCluster(family.cluster)
    sets = {
        j: empty.job_sets(modes(instance, job), job.arrival + 1, last) for j, job in enumerate(jobs)
    }
    listed = schedules(empty, sets, lambda j, slot: instance.revenue(jobs[j], slot))
    return AstraeaDual(
        instance=instance, formulation=formulation, family=family, listed=listed, slots=last,
        whose="dual (6) of (5)",
        model=dual_model(instance.name, listed, len(jobs), family, last, "6a"),
    )  # fmt: skip
