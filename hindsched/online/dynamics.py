"""The cluster as a baseline sees it: what is free, where a job would go, how fast it progresses.

Baselines are written once over `Cluster`; a family's ``online/<family>/dynamics.py`` says what a
placement is and what work is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment


@dataclass(frozen=True)
class Placement:
    """Workers and parameter servers of one job by server name, and the family's own facts.

    Parameters
    ----------
    workers, ps : dict
        Number by server name.
    facts : dict
        What else the family needs to write a row: worker type, tenant and the like.
    """

    workers: dict[str, int]
    ps: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def num_workers(self) -> int:
        """Workers in total."""
        return sum(self.workers.values())


Gangs = Literal["drawn", "half", "ideal"]
"""How wide the gangs of rivals with a fixed number of workers are: requested in the file or else
drawn, half of the most that the job can use, or the most."""


def gang_width(gangs: Gangs, drawn: Callable[[], int], most: int) -> int:
    """Workers of a fixed gang, at most `most`."""
    if gangs == "drawn":
        return min(drawn(), most)
    return most if gangs == "ideal" else -(-most // 2)


class Cluster(ABC):
    """Free capacity, placement and progress; a baseline books on it and never elsewhere.

    Attributes
    ----------
    gangs : {"drawn", "half", "ideal"}
        Width of fixed gangs, set by the baseline.
    """

    gangs: Gangs = "drawn"

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @abstractmethod
    def place(self, job: Any, workers: int) -> Placement | None:
        """Find room for `workers` workers and their parameter servers and book it, or None."""

    @abstractmethod
    def extend(self, job: Any, placement: Placement | None) -> Placement | None:
        """Book one more worker (and the parameter servers it then needs) for `job`.

        `placement` is what the job holds (None for nothing). Returns what it holds then, or None
        if it does not fit; in that case nothing has changed.
        """

    @abstractmethod
    def book(self, job: Any, placement: Placement) -> None:
        """Book a known placement (one that was released before and fits)."""

    @abstractmethod
    def release(self, job: Any, placement: Placement) -> None:
        """Give a placement back."""

    def fits(self, job: Any, placement: Placement) -> bool:
        """Whether a placement that was released before could be booked again now."""
        raise TypeError(f"{type(self).__name__} does not say whether a placement still fits")

    @abstractmethod
    def work(self, job: Any) -> float:
        """Total work of the job, in the family's unit."""

    @abstractmethod
    def progress(self, job: Any, placement: Placement) -> float:
        """Work done in one slot with `placement`."""

    @abstractmethod
    def max_workers(self, job: Any) -> int:
        """Most workers the job can use at once on the empty cluster."""

    @abstractmethod
    def drawn_workers(self, job: Any) -> int:
        """Gang size requested in the file, or else drawn by (seed, job name)."""

    def fixed_workers(self, job: Any) -> int:
        """Fixed gang size, by the cluster's `gangs`."""
        return gang_width(self.gangs, lambda: self.drawn_workers(job), self.max_workers(job))

    @abstractmethod
    def dominant_share(self, job: Any, workers: int) -> float:
        """Largest share of any resource's total that `workers` workers and their PSs hold."""

    @abstractmethod
    def row(self, job: Any, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file for a placement held in slots first..last."""


class GangCluster(Cluster):
    """A cluster that places a job as a whole: one that grows is placed anew."""

    @abstractmethod
    def change(self, placement: Placement, sign: int) -> None:
        """Add `sign` times a placement's resources to what is free."""

    def extend(self, job: Any, placement: Placement | None) -> Placement | None:
        """Book one worker more; the job may be placed anew."""
        if placement is None:
            return self.place(job, 1)
        self.release(job, placement)
        grown = self.place(job, placement.num_workers + 1)
        if grown is None:
            self.book(job, placement)
        return grown

    def book(self, job: Any, placement: Placement) -> None:
        """Book a placement that is known to fit."""
        self.change(placement, -1)

    def release(self, job: Any, placement: Placement) -> None:
        """Give a placement back."""
        self.change(placement, 1)
