"""Left shift of a planned batch: every job as early as the jobs around it allow."""

from __future__ import annotations

import numpy as np

from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.solvers.families.batchsched.oracle_search import ModeIndex, Schedule, ScheduleSearch


class LeftShift:
    """Moves the jobs of a batch, in the order of their planned starts, to their earliest windows.

    Types, numbers of workers and durations stay as planned; servers may change. While a job is
    moved all others stand where they are, those of earlier batches included, and its own place
    stays open to it: no job ends later than planned.

    Parameters
    ----------
    cluster : BatchschedInstance
        The cluster.
    """

    def __init__(self, cluster: BatchschedInstance) -> None:
        self.cluster = cluster
        self._running: list[Schedule] = []

    @property
    def last(self) -> int:
        """Last slot that any job uses; 0 without jobs."""
        return max((schedule.last for schedule in self._running), default=0)

    def shift(
        self, now: int, batch: list[tuple[JobRecord, ModeIndex, Schedule]]
    ) -> dict[str, Schedule]:
        """Place a batch for good.

        Parameters
        ----------
        now : int
            Jobs of the batch start after this slot.
        batch : list of (job, modes, schedule)
            What was planned, in absolute slots.

        Returns
        -------
        dict
            Schedules by job name, in absolute slots.
        """
        self._running = [schedule for schedule in self._running if schedule.last > now]
        planned = sorted(batch, key=lambda item: item[2].start)
        slots = max(s.last for s in (*self._running, *(item[2] for item in planned))) - now
        most = max(job.chunks for job, _, _ in batch)
        search = ScheduleSearch(self.cluster, slots, most)
        for schedule in (*self._running, *(item[2] for item in planned)):
            search.book(_after(schedule, now))
        placed = {}
        for job, index, schedule in planned:
            own = _after(schedule, now)
            search.book(own, sign=-1.0)
            found = search.cheapest(_same_mode(index, own, self.cluster.has_ps), rate=1.0)
            best = own if found is None or found.completion > own.completion else found
            search.book(best)
            placed[job.name] = best.shifted(now)
        self._running += placed.values()
        return placed


def _after(schedule: Schedule, now: int) -> Schedule:
    """The part of a schedule after slot `now`, counted from there."""
    first = max(1, schedule.start - now)
    return Schedule(
        first,
        schedule.last - now - first + 1,
        schedule.worker_type,
        schedule.ps_type,
        schedule.workers,
        schedule.ps,
        0.0,
    )


def _same_mode(index: ModeIndex, schedule: Schedule, has_ps: bool) -> ModeIndex:
    """The modes with the schedule's types, number of workers and duration."""
    table = index.modes
    same = (table.worker_type == schedule.worker_type) & (table.duration == schedule.duration)
    same &= table.workers == int(schedule.workers.sum())
    if has_ps:
        same &= table.ps_type == schedule.ps_type
    return ModeIndex.of(table.take(np.flatnonzero(same)))
