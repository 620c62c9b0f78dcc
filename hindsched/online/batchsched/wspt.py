"""``wspt``: elastic list scheduling in the order of weight over shortest duration."""

from __future__ import annotations

from dataclasses import replace

from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm
from hindsched.solvers.families.batchsched.oracle_search import ModeIndex, Schedule, ScheduleSearch


class Wspt(OnlineAlgorithm):
    """Weighted shortest processing time first, non-preemptive, worker counts chosen.

    At each arrival all jobs that have not started are planned anew in descending order of weight
    over shortest duration (ties: order of arrival), each at its earliest completion on what is
    left; a job starts when its plan says so and then keeps its window and placement. The plan is
    a list schedule, so no job waits while it could complete no later without moving one that is
    denser.

    Notes
    -----
    The plans of jobs denser than all that arrive are kept: they would come out the same. What has
    started since was planned beside them, so they still fit, and they were best where more was
    free.
    """

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        self.cluster: BatchschedInstance = environment.cluster  # type: ignore[assignment]
        self._search = ScheduleSearch(self.cluster, max(16, environment.cluster.horizon), 1)
        self._running: list[Schedule] = []
        self._waiting: list[JobRecord] = []
        self._modes: dict[str, ModeIndex] = {}
        self._plan: dict[str, Schedule] = {}
        self._most = 1

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> Decision:
        """Plan again if jobs arrived; start what is planned to start now."""
        for job in arrivals:
            self._modes[job.name] = self._search.index(job)
            self._most = max(self._most, job.chunks)
        if arrivals:
            self._waiting += arrivals
            self._plan_again(slot)
        rows = {}
        for job in list(self._waiting):
            schedule = self._plan[job.name]
            if schedule.start == slot:
                rows[job.name] = [self._search.assignment(schedule)]
                self._running.append(schedule)
                self._waiting.remove(job)
                del self._plan[job.name]
        return Decision(rows, tuple(rows)) if rows else NOTHING

    def _density(self, job: BatchschedJob) -> float:
        return float(job.weight) / int(self._modes[job.name].modes.duration.min())

    def _plan_again(self, slot: int) -> None:
        """Plan from the densest arrival on, in a window that grows until every job fits."""
        self._running = [schedule for schedule in self._running if schedule.last >= slot]
        self._waiting.sort(key=self._density, reverse=True)  # ties: by arrival
        first = min(i for i, job in enumerate(self._waiting) if job.name not in self._plan)
        shift = slot - 1
        shortest = [int(self._modes[job.name].modes.duration.min()) for job in self._waiting]
        planned = [schedule.last for schedule in [*self._running, *self._plan.values()]]
        slots = max(planned, default=shift) - shift + 2 * max(shortest)
        kept = [self._plan[job.name] for job in self._waiting[:first]]
        booked = [*self._running, *kept]
        search = self._search_with(booked, shift, slots)
        for job in self._waiting[first:]:
            while (found := search.cheapest(self._modes[job.name], rate=1.0)) is None:
                slots *= 2
                search = self._search_with(booked, shift, slots)
            search.book(found)
            self._plan[job.name] = found.shifted(shift)
            booked.append(self._plan[job.name])

    def _search_with(self, booked: list[Schedule], shift: int, slots: int) -> ScheduleSearch:
        """Search over the `slots` after `shift`, in which these schedules are booked."""
        search = ScheduleSearch(self.cluster, slots, self._most)
        for schedule in booked:
            start = max(1, schedule.start - shift)
            ahead = replace(schedule, start=start, duration=schedule.last - shift - start + 1)
            search.book(ahead)
        return search
