"""List scheduling: one job after the other at its earliest completion on what is left.

The incumbent of the exact methods, the time limit of the programs and the start of every search.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solvers.families.batchsched.oracle_search import (
    Schedule,
    ScheduleSearch,
    most_workers,
)

KEPT = "_list_schedule"
"""Where an instance keeps its list schedule."""


def list_schedule(instance: BatchschedInstance) -> Mapping[str, Schedule]:
    """List schedule in order of weight over shortest duration, kept with the instance.

    Smith's rule on durations; slots are added until all jobs fit.
    """
    kept = vars(instance)
    if KEPT not in kept:
        jobs, once = instance.jobs, ScheduleSearch(instance, 1, 1)
        index = [once.index(job) for job in jobs]
        fastest = np.array([each.modes.duration.min() for each in index], dtype=np.int64)
        weights = np.array([job.weight for job in jobs], dtype=float)
        order = np.argsort(-weights / fastest, kind="stable").tolist()
        slots = max((job.arrival for job in jobs), default=1)
        slots += 2 * int(fastest.max(initial=1)) + 8
        found: dict[str, Schedule] = {}
        while len(found) < len(jobs):
            search = ScheduleSearch(instance, slots, most_workers(jobs))
            for known in found.values():
                search.book(known)
            for at in order[len(found) :]:
                job = jobs[at]
                schedule = search.cheapest(index[at], rate=job.weight, earliest=job.arrival)
                if schedule is None:
                    break
                search.book(schedule)
                schedule.workers.flags.writeable = False  # whoever asks has the same ones
                schedule.ps.flags.writeable = False
                found[job.name] = schedule
            slots *= 2
        kept[KEPT] = found
    listed: Mapping[str, Schedule] = kept[KEPT]
    return listed


def as_solution(
    instance: BatchschedInstance, schedules: Mapping[str, Schedule], formulation: str | None = None
) -> BatchschedSolution:
    """Schedules as a solution."""
    rows = {name: (schedule.row(),) for name, schedule in schedules.items()}
    return BatchschedSolution(instance, dict(rows), formulation)
