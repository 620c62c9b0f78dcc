"""Jobs served in the order of a key: ``srtf`` of edgecloud, Tiresias."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.baselines.cluster import Gangs, ServerCluster
from hindsched.online.protocol import Decision, Environment, Natural


class Ranked(FixedWidth):
    """At every event the jobs are ranked and placed in turn; those that are not placed pause.

    A job gets all of its fixed number of workers or none. Progress is kept, and a job that stays
    keeps its placement if that is still free.

    Parameters
    ----------
    restore_slots : int
        Slots that a job which has run before holds its gang in vain when it resumes or moves; 0
        for free preemption.
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
    """

    relaxes_constraints = True

    def __init__(self, restore_slots: Natural = 0, gangs: Gangs = "ideal") -> None:
        super().__init__(gangs)
        self.restore_slots = restore_slots

    @abstractmethod
    def key(self, name: str) -> tuple[float, ...]:
        """Smaller is first; ties go to the earlier arrival."""

    def remaining_slots(self, name: str) -> float:
        """Slots that a job still needs with its workers on the empty cluster."""
        job = self.jobs[name]
        workers = max(1, self.cluster.fixed_workers(job))
        return self.remaining[name] / self.cluster.speed(job, workers)

    def reallocate(self) -> None:
        """Rank all jobs and place them in turn."""
        ranked = sorted(self.jobs, key=self.key)
        before = self.release_all()
        for name in ranked:
            width = self.cluster.fixed_workers(self.jobs[name])
            if not self.resume(name, before, width) and self.hold(name, width):
                self.placed_anew(name)


class Tiresias(Ranked):
    """Shortest remaining service first, as batchsched's paper words it (2D-SRSF).

    The key is remaining slots x GPUs (the dominant share stands for the GPUs of any cluster):
    smaller first. Left out: that skewed models are placed on few machines.

    Parameters
    ----------
    restore_slots, gangs
        As in `Ranked`.
    """

    cluster: ServerCluster

    def key(self, name: str) -> tuple[float, ...]:
        """Remaining slots times dominant share."""
        job = self.jobs[name]
        share = self.cluster.dominant_share(job, self.cluster.fixed_workers(job))
        return (self.remaining_slots(name) * share,)


class TiresiasL(Ranked):
    """Least attained service in queues: ranked by queue, then by arrival.

    The discretised policy of Gu et al., "Tiresias: A GPU cluster manager for distributed deep
    learning" (NSDI 2019), from the paper and its public simulator. Left out: that jobs which have
    waited long start over in the first queue.

    Parameters
    ----------
    limits : list of float
        Attained service in worker-hours at which a job moves to the next queue. The authors'
        simulator uses one limit of 3250 GPU-seconds, 0.9 GPU-hours.
    restore_slots, gangs
        As in `Ranked`.
    """

    def __init__(
        self, limits: Sequence[float] = (0.9,), restore_slots: Natural = 0, gangs: Gangs = "ideal"
    ) -> None:
        super().__init__(restore_slots, gangs)
        if sorted(limits) != list(limits) or not all(limit > 0 for limit in limits):
            raise InputError("set.limits", list(limits), "must be positive and ascending")
        self.limits = tuple(limits)

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._hours = float(environment.cluster.slot_seconds) / 3600.0
        self._run: dict[str, int] = {}
        self._queues: dict[str, tuple[float, ...]] = {}

    def key(self, name: str) -> tuple[float, ...]:
        """Queue, by attained service; inside it the earlier arrival is first."""
        hours = self._hours * self._run.get(name, 0)
        service = hours * self.cluster.fixed_workers(self.jobs[name])
        return (sum(service >= limit * (1 - 1e-9) for limit in self.limits),)

    def reallocate(self) -> None:
        """Rank all jobs, and keep by which queues."""
        self._queues = {name: self.key(name) for name in self.jobs}
        super().reallocate()

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Rank anew also when a job crosses a queue's limit."""
        self._event |= any(self.key(name) != self._queues.get(name) for name in self.jobs)
        decision = super().step(slot, arrivals)
        for name in self.held:
            self._run[name] = self._run.get(name, 0) + 1
        return decision
