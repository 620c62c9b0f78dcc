"""List scheduling: one job after the other at its earliest completion on what is left.

The incumbent of the exact methods, the time limit of the programs and the start of every search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solvers.families.batchsched.oracle_search import (
    ModeIndex,
    Schedule,
    ScheduleSearch,
    most_workers,
)

KEPT = "_list_schedule"
"""Where an instance keeps its list schedule."""


class ListScheduler:
    """Schedules jobs in any order on slots that grow as needed.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    """

    def __init__(self, instance: BatchschedInstance) -> None:
        self.instance = instance
        search = ScheduleSearch(instance, 1, 1)
        self.index: list[ModeIndex] = [search.index(job) for job in instance.jobs]
        fastest = [int(index.modes.duration.min()) for index in self.index]
        self.fastest = np.array(fastest, dtype=np.int64)
        self._slots = max((job.arrival for job in instance.jobs), default=1)
        self._slots += 2 * max(fastest, default=1) + 8
        self._search: ScheduleSearch | None = None

    def run(
        self, order: Iterable[int], prices: Floats | None = None, multiple: float = 0.0
    ) -> dict[str, Schedule]:
        """Schedule jobs (positions) in the given order on what is left.

        Parameters
        ----------
        order : iterable of int
            Positions of the jobs.
        prices : ndarray, shape (slots, servers, resources), optional
            Unit prices; slots beyond the last are free.
        multiple : float
            Each job takes the schedule of least weight x completion + multiple x price, so that 0
            means the earliest completion.
        """
        order, placed = list(order), dict[str, Schedule]()
        while not self._place(order, prices, multiple, placed):
            self._slots *= 2
            self._search = None
            if multiple > 0:  # a job may be better off in the new slots
                placed.clear()
        return placed

    def _place(
        self, order: list[int], prices: Floats | None, multiple: float, placed: dict[str, Schedule]
    ) -> bool:
        """Schedule the jobs that are not placed yet; return whether all fit the slots."""
        jobs, spread = self.instance.jobs, None
        if self._search is None:
            self._search = ScheduleSearch(self.instance, self._slots, most_workers(jobs))
        if prices is not None and multiple > 0:
            spread = np.zeros((self._slots, *self.instance.server_capacity.shape))
            common = min(self._slots, len(prices))
            spread[:common] = multiple * prices[:common]
        self._search.reset(prices=spread)
        for known in placed.values():
            self._search.book(known)
        for position in order[len(placed) :]:
            job = jobs[position]
            schedule = self._search.cheapest(
                self.index[position], rate=float(job.weight), earliest=job.arrival
            )
            if schedule is None:
                return False
            self._search.book(schedule)
            placed[job.name] = schedule
        return True

    def density_order(self) -> list[int]:
        """Jobs by weight over shortest duration, densest first (Smith's rule on durations)."""
        weights = np.array([job.weight for job in self.instance.jobs], dtype=float)
        found: list[int] = np.argsort(-weights / self.fastest, kind="stable").tolist()
        return found


def list_schedule(instance: BatchschedInstance) -> Mapping[str, Schedule]:
    """List schedule in order of weight over shortest duration, kept with the instance."""
    kept = vars(instance)
    if KEPT not in kept:
        scheduler = ListScheduler(instance)
        kept[KEPT] = scheduler.run(scheduler.density_order())
        for schedule in kept[KEPT].values():  # whoever asks has the same ones
            schedule.workers.flags.writeable = schedule.ps.flags.writeable = False
    found: Mapping[str, Schedule] = kept[KEPT]
    return found


def weighted_completion(instance: BatchschedInstance, schedules: Mapping[str, Schedule]) -> float:
    """Objective of schedules: sum of weight x (start + duration)."""
    return float(sum(job.weight * schedules[job.name].completion for job in instance.jobs))


def as_solution(
    instance: BatchschedInstance, schedules: Mapping[str, Schedule], formulation: str | None = None
) -> BatchschedSolution:
    """Schedules as a solution."""
    rows = {name: (schedule.row(),) for name, schedule in schedules.items()}
    return BatchschedSolution(instance, dict(rows), formulation)
