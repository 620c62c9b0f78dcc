"""``shortest-remaining`` and ``least-attained``: two yardsticks that every family has.

Jobs are served in the order of a key, each at its full width, and whoever finds no room pauses.
Neither looks at weights, utilities or deadlines: they say what order alone is worth.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from hindsched.instances.base import JobRecord
from hindsched.online.baselines.elastic import FixedWidth
from hindsched.online.dynamics import Gangs
from hindsched.online.protocol import Capabilities, Decision, Environment


def comparable(total: float) -> float:
    """A sum of many terms in twelve digits: sums that are equal exactly are equal, ties are ties.

    Examples
    --------
    >>> 0.1 + 0.2 == 0.3, comparable(0.1 + 0.2) == comparable(0.3)
    (False, True)
    """
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
    gangs : {"drawn", "half", "ideal", "best"}
        That number where jobs are not elastic, see `hindsched.online.dynamics.Gangs`.
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
        before = self.held
        self.release_all()
        for name in ranked:
            job, former = self.jobs[name], before.get(name)
            width = self.width(job)
            stays = former is not None and former.num_workers == width
            if former is not None and stays and self.cluster.fits(job, former):
                self.cluster.book(job, former)
                self.held[name] = former
                continue
            placement = self.cluster.place(job, width) if width else None
            if placement is None and self.elastic:
                placement = self.cluster.place_most(job, width - 1)
            if placement is not None:
                self.held[name] = placement
                self.placed_anew(name)

    def placed_anew(self, name: str) -> None:
        """Hear that a job was given another placement than it had."""


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
    queues and promotion, so that jobs of equal service take turns; pausing costs nothing here.
    """

    card: ClassVar[Capabilities] = Capabilities(knows_durations=False)

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._attained: dict[str, float] = {}

    def key(self, name: str) -> tuple[float, ...]:
        """Service so far."""
        return (comparable(self._attained.get(name, 0.0)),)

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Rank anew in every slot, and account for what runs."""
        self._event = True
        decision = super().step(slot, arrivals)
        for name, placement in self.held.items():
            service = self.cluster.dominant_share(self.jobs[name], placement.num_workers)
            self._attained[name] = self._attained.get(name, 0.0) + service
        return decision
