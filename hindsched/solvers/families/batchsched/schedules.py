"""The list schedule: one job after the other at its earliest completion on what is left.

It is the incumbent of the exact methods, the time limit of the programs and the start of every
search.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import modes
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.families.windows.schedules import ScheduleSearch

KEPT = "_list_schedule"
"""Where an instance keeps its list schedule."""


def list_schedule(instance: BatchschedInstance) -> Mapping[str, WindowRow]:
    """List schedule in order of weight over shortest duration, kept with the instance.

    Smith's rule on durations; slots are added until all jobs fit.
    """
    kept = vars(instance)
    if KEPT not in kept:
        jobs = instance.jobs
        tables = [modes(instance, job) for job in jobs]
        fastest = np.array([each.duration.min() for each in tables], dtype=np.int64)
        weights = np.array([job.weight for job in jobs], dtype=float)
        order = np.argsort(-weights / fastest, kind="stable").tolist()
        slots = max((job.arrival for job in jobs), default=1)
        slots += 2 * int(fastest.max(initial=1)) + 8
        found: dict[str, WindowRow] = {}
        while len(found) < len(jobs):
            search = ScheduleSearch(instance, slots)
            for known in found.values():
                search.book(known)
            for at in order[len(found) :]:
                job = jobs[at]
                row = search.cheapest(tables[at], rate=float(job.weight), earliest=job.arrival)
                if row is None:
                    break
                search.book(row)
                row.workers.flags.writeable = False  # whoever asks has the same ones
                row.ps.flags.writeable = False
                found[job.name] = row
            slots *= 2
        kept[KEPT] = found
    listed: Mapping[str, WindowRow] = kept[KEPT]
    return listed


def as_solution(
    instance: BatchschedInstance, schedules: Mapping[str, WindowRow], formulation: str | None = None
) -> BatchschedSolution:
    """Schedules as a solution."""
    return BatchschedSolution(
        instance, {name: (row,) for name, row in schedules.items()}, formulation
    )
