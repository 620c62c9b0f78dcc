"""What slot-by-slot baselines share: jobs' progress, and holding placements between events."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from hindsched.instances.base import family_module
from hindsched.online.dynamics import Cluster, Gangs, Placement
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm

WORK_TOLERANCE = 1e-9


class EventDriven(OnlineAlgorithm):
    """A baseline that decides anew at every arrival and completion and holds in between.

    Subclasses say in `reallocate` who holds what; this class keeps progress, gives out one row a
    job and slot, and drops finished jobs. Jobs are kept in the order of arrival.
    """

    gangs: Gangs = "ideal"

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        dynamics = family_module("online", environment.cluster.family, "dynamics")
        self.environment = environment
        self.cluster: Cluster = dynamics.build_cluster(environment)
        self.cluster.gangs = self.gangs
        self.jobs: dict[str, Any] = {}
        self.remaining: dict[str, float] = {}
        self.held: dict[str, Placement] = {}
        self.slot = 0
        self._event = True

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        """Reallocate if something arrived or finished, then run every holder for one slot."""
        self.slot = slot
        rejected = []
        for job in arrivals:
            if self.admit(job):
                self.jobs[job.name] = job
                self.remaining[job.name] = self.cluster.work(job)
            else:
                rejected.append(job.name)
        if arrivals or self._event:
            self.reallocate()
            self._event = False
        rows = {}
        for name, placement in list(self.held.items()):
            if not self.runs(name):
                continue
            job = self.jobs[name]
            rows[name] = [self.cluster.row(job, placement, slot, slot)]
            self.remaining[name] -= self.cluster.progress(job, placement)
            if self.remaining[name] <= WORK_TOLERANCE * max(1.0, self.cluster.work(job)):
                self.cluster.release(job, placement)
                del self.held[name], self.jobs[name], self.remaining[name]
                self._event = True
        admitted = tuple(job.name for job in arrivals if job.name not in rejected)
        return Decision(rows, admitted, tuple(rejected))

    def admit(self, job: Any) -> bool:
        """Whether to take an arriving job; every job that the empty cluster can run at all."""
        return self.cluster.max_workers(job) >= 1

    def runs(self, name: str) -> bool:
        """Whether a job that holds a placement runs in this slot, or holds it in vain."""
        return True

    @abstractmethod
    def reallocate(self) -> None:
        """Set `held` through the cluster's booking methods."""

    def release_all(self) -> None:
        """Give everything back."""
        for name, placement in self.held.items():
            self.cluster.release(self.jobs[name], placement)
        self.held = {}
