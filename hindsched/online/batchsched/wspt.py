"""``wspt``: elastic list scheduling in the order of weight over shortest duration."""

from __future__ import annotations

from typing import Any

from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm
from hindsched.solvers.pricing.batchsched.search import ModeIndex, Schedule, ScheduleSearch


class Wspt(OnlineAlgorithm):
    """Weighted shortest processing time first, non-preemptive, worker counts chosen.

    At each arrival all jobs that have not started are planned anew in descending order of weight
    over shortest duration (ties: order of arrival), each at its earliest completion on what is
    left; a job starts when its plan says so and then keeps its window and placement. The plan is
    a list schedule, so no job waits while it could complete no later without moving one that is
    denser.
    """

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        self.cluster: BatchschedInstance = environment.cluster  # type: ignore[assignment]
        self._search = ScheduleSearch(self.cluster, max(16, environment.cluster.horizon), 1)
        self._running: list[Schedule] = []
        self._waiting: list[Any] = []
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
        return Decision(rows, tuple(rows)) if rows else NOTHING

    def _density(self, job: BatchschedJob) -> float:
        return float(job.weight) / int(self._modes[job.name].modes.duration.min())

    def _plan_again(self, slot: int) -> None:
        """Plan in a window that begins now and is doubled until every waiting job fits."""
        self._running = [schedule for schedule in self._running if schedule.last >= slot]
        ordered = sorted(self._waiting, key=lambda job: -self._density(job))
        shift = slot - 1
        busy = max((schedule.last - shift for schedule in self._running), default=0)
        slots = busy + 2 * max(int(self._modes[job.name].modes.duration.min()) for job in ordered)
        while not self._attempt(ordered, shift, slots):
            slots *= 2

    def _attempt(self, ordered: list[Any], shift: int, slots: int) -> bool:
        search = ScheduleSearch(self.cluster, slots, self._most)
        for schedule in self._running:
            ahead = Schedule(
                max(1, schedule.start - shift),
                schedule.last - max(shift, schedule.start - 1),
                schedule.worker_type,
                schedule.ps_type,
                schedule.workers,
                schedule.ps,
                0.0,
            )
            search.book(ahead)
        self._plan = {}
        for job in ordered:
            found = search.cheapest(self._modes[job.name], rate=1.0)
            if found is None:
                return False
            search.book(found)
            self._plan[job.name] = found.shifted(shift)
        return True
