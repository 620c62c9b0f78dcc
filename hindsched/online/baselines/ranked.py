"""Jobs served in the order of a key: ``shortest-remaining``, ``least-attained``, Tiresias.

The first two are yardsticks that every family has; they look at no weights, utilities or deadlines:
they say what order alone is worth.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.baselines.cluster import Gangs
from hindsched.online.protocol import Capabilities, Decision, Environment, Natural


def comparable(total: float) -> float:
    """A sum of many terms in twelve digits: sums that are equal exactly stay ties."""
    return float(f"{total:.12g}")


class Ranked(FixedWidth):
    """At every event the jobs are ranked and placed in turn; those that are not placed pause.

    Progress is kept and pausing is free. A job that stays keeps its placement if that is still
    free.

    Parameters
    ----------
    elastic : bool
        Give each job in turn as many workers as it can use and as fit. Without, all of its fixed
        number of workers or none.
    gangs : {"drawn", "half", "ideal"}
        That number where jobs are not elastic, see `hindsched.online.baselines.cluster.Gangs`.
    """

    def __init__(self, elastic: bool = True, gangs: Gangs = "ideal") -> None:
        super().__init__("ideal" if elastic else gangs)
        self.elastic = elastic

    @abstractmethod
    def key(self, name: str) -> tuple[float, ...]:
        """Smaller is first; ties go to the earlier arrival."""

    def width(self, job: JobRecord) -> int:
        """Workers that a job is given if they fit."""
        return self.cluster.max_workers(job) if self.elastic else self.cluster.fixed_workers(job)

    def reallocate(self) -> None:
        """Rank all jobs and place them in turn."""
        ranked = sorted(self.jobs, key=self.key)
        before = self.release_all()
        for name in ranked:
            width = self.width(self.jobs[name])
            if self.resume(name, before, width):
                continue
            if self.hold(name, width) or (self.elastic and self.hold(name, width - 1, fewer=True)):
                self.placed_anew(name)


class ShortestRemaining(Ranked):
    """Shortest remaining work first (SRPT): by the slots that a job still needs at full width.

    The textbook rule, optimal for the mean completion time of one machine. No paper's algorithm: it
    is Tiresias' 2D-SRSF without the factor of the job's resources and without restoring, and it is
    elastic where jobs are.
    """

    def key(self, name: str) -> tuple[float, ...]:
        """Remaining slots at full width on the empty cluster."""
        job = self.jobs[name]
        return (self.remaining[name] / self.cluster.speed(job, max(1, self.width(job))),)


class LeastAttained(Ranked):
    """Least attained service first (foreground-background): by dominant share x slots had so far.

    The textbook rule for unknown durations, asked anew in every slot. It is Tiresias-L without
    queues, so that jobs of equal service take turns; pausing costs nothing here.
    """

    card: ClassVar[Capabilities] = Capabilities(knows_durations=False)
    every_slot = True

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._attained: dict[str, float] = {}

    def key(self, name: str) -> tuple[float, ...]:
        """Service so far: dominant share x slots."""
        return (comparable(self._attained.get(name, 0.0)),)

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Account for what runs."""
        decision = super().step(slot, arrivals)
        for name, placement in self.held.items():
            service = self.cluster.dominant_share(self.jobs[name], placement.num_workers)
            self._attained[name] = self._attained.get(name, 0.0) + service
        return decision


class Tiresias(Ranked):
    """Shortest remaining service first, as batchsched's paper words it (2D-SRSF).

    The key is remaining slots x GPUs (the dominant share stands for the GPUs of any cluster):
    smaller first. A job gets all of its fixed number of workers or none; running jobs that are no
    longer placed are paused, keeping their progress. A job that stays keeps its placement if that
    is still free. Left out: that skewed models are placed on few machines.

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
        super().__init__(elastic=False, gangs=gangs)
        self.restore_slots = restore_slots

    def key(self, name: str) -> tuple[float, ...]:
        """Smaller is first."""
        job = self.jobs[name]
        workers = self.cluster.fixed_workers(job)
        left = self.remaining[name] / self.cluster.speed(job, workers)
        return (left * self.cluster.dominant_share(job, workers),)


class TiresiasL(Tiresias):
    """Least attained service in queues: ranked by queue, then by arrival.

    The discretised policy of Gu et al., "Tiresias: A GPU cluster manager for distributed deep
    learning" (NSDI 2019), from the paper and its public simulator. Left out: that jobs which have
    waited long start over in the first queue.

    Parameters
    ----------
    limits : list of float
        Attained service in worker-hours at which a job moves to the next queue. The authors'
        simulator uses one limit of 3250 GPU-seconds, 0.9 GPU-hours.
    restore_slots : int
        As in `Tiresias`.
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
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
