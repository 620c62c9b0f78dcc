"""What slot-by-slot baselines share: jobs' progress, and holding placements between events."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from hindsched.instances.base import JobRecord, family_module
from hindsched.online.dynamics import Cluster, Gangs, Placement
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm


class Baseline(OnlineAlgorithm):
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
        self.jobs: dict[str, JobRecord] = {}
        self.remaining: dict[str, Fraction] = {}
        self.held: dict[str, Placement] = {}
        self.slot = 0
        self._event = True

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Reallocate if something arrived or finished, then run every holder for one slot."""
        self.slot = slot
        opened = self.cluster.turn(slot, arrivals)
        rejected = []
        for job in arrivals:
            if self.admit(job):
                self.jobs[job.name] = job
                self.remaining[job.name] = self.cluster.work(job)
            else:
                rejected.append(job.name)
        if arrivals or self._event or opened:
            self.reallocate()
            self._event = False
            for name in self.cluster.leaving(self.jobs, self.held, self.remaining):
                self._drop(name)
        running = {
            name: (self.jobs[name], placement)
            for name, placement in self.held.items()
            if self.runs(name)
        }
        rows = self.cluster.rows(slot, running)
        for name, (job, placement) in running.items():
            self.remaining[name] -= self.cluster.progress(job, placement)
            if self.remaining[name] <= 0:
                self.cluster.finished(job, slot)
                self._drop(name)
        admitted = tuple(job.name for job in arrivals if job.name not in rejected)
        return Decision(rows, admitted, tuple(rejected))

    def _drop(self, name: str) -> None:
        """Forget a job that is over for the baseline."""
        if name in self.held:
            self.cluster.release(self.jobs[name], self.held.pop(name))
        del self.jobs[name], self.remaining[name]
        self._event = True

    def admit(self, job: JobRecord) -> bool:
        """Whether to take an arriving job; every job that the empty cluster can run at all."""
        return self.cluster.can_run(job)

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


class FixedWidth(Baseline):
    """A baseline whose gangs have as many workers as a setting says.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    def __init__(self, gangs: Gangs = "ideal") -> None:
        self.gangs = gangs
        # whether the seed can change a decision
        self.randomised = gangs in ("drawn", "best")  # type: ignore[misc]
