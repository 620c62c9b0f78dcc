"""List schedules of batchsched: one job after the other at its earliest completion on what is left.

The one by Smith's rule is the incumbent of the exact methods, the time limit of the programs and
the start of every search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import Modes, modes
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.families.windows.schedules import ScheduleSearch

INSTANCE_ATTRIBUTE = "_smith_schedule"
"""Where an instance keeps its list schedule."""


def list_jobs(
    cluster: BatchschedInstance, jobs: Sequence[JobRecord], tables: Mapping[str, Modes],
    booked: Sequence[WindowRow] = (), first: int = 1,
) -> dict[str, WindowRow]:  # fmt: skip
    """Jobs in this order, each from slot `first` on at its earliest completion on what is left.

    `booked` rows stand already. Slots are added until all jobs fit.
    """
    slots = max([first, *(job.arrival for job in jobs), *(row.last for row in booked)])
    slots += 2 * max((int(tables[job.name].duration.min()) for job in jobs), default=1) + 8
    schedules: dict[str, WindowRow] = {}
    while len(schedules) < len(jobs):
        search = ScheduleSearch(cluster, slots)
        for row in (*booked, *schedules.values()):
            search.book(row)
        for job in jobs[len(schedules) :]:
            earliest = max(first, job.arrival)
            placed = search.cheapest(tables[job.name], rate=1.0, earliest=earliest)
            if placed is None:
                break
            search.book(placed)
            schedules[job.name] = placed
        slots *= 2
    return schedules


def smith_schedule(instance: BatchschedInstance) -> Mapping[str, WindowRow]:
    """List schedule by Smith's rule on durations (weight over shortest), kept with the instance."""
    kept = vars(instance)
    if INSTANCE_ATTRIBUTE not in kept:
        tables = {job.name: modes(instance, job) for job in instance.jobs}
        order = sorted(
            instance.jobs, key=lambda job: -float(job.weight) / int(tables[job.name].duration.min())
        )
        kept[INSTANCE_ATTRIBUTE] = list_jobs(instance, order, tables)
        for row in kept[INSTANCE_ATTRIBUTE].values():  # whoever asks has the same ones
            row.workers.flags.writeable = row.ps.flags.writeable = False
    listed: Mapping[str, WindowRow] = kept[INSTANCE_ATTRIBUTE]
    return listed


def find_incumbent(instance: BatchschedInstance, formulation: str) -> BatchschedSolution:
    """The list schedule by Smith's rule as a solution."""
    rows = {name: (row,) for name, row in smith_schedule(instance).items()}
    return BatchschedSolution(instance, rows, formulation)
