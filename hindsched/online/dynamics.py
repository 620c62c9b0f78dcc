"""The cluster as a baseline sees it: what is free, where a job would go, how fast it progresses.

Baselines are written once over `Cluster`; a family's ``online/<family>/dynamics.py`` says what a
placement is and what work is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.base import Record
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment

Job = TypeVar("Job", bound=Record)
"""A family's job."""


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


Gangs = Literal["drawn", "half", "ideal", "best"]
"""How wide the gangs of baselines with a fixed number of workers are: requested in the file or else
drawn, half of the most that the job can use, or the most; ``best`` is the best of these three on
each instance, known only after the runs: `simulate` makes all and reports which."""
WIDTHS: tuple[Gangs, ...] = ("ideal", "half", "drawn")
"""What ``best`` chooses from; the first of equals."""


def gang_width(gangs: Gangs, drawn: Callable[[], int], most: int) -> int:
    """Workers of a fixed gang, at most `most`."""
    if gangs == "best":
        raise InputError("set.gangs", gangs, "is chosen by simulate, after a run with each width")
    if gangs == "drawn":
        return min(drawn(), most)
    return most if gangs == "ideal" else -(-most // 2)


class Cluster(ABC, Generic[Job]):
    """Free capacity, placement and progress; a baseline books on it and never elsewhere.

    Attributes
    ----------
    gangs : {"drawn", "half", "ideal"}
        Width of fixed gangs, set by the baseline.
    """

    gangs: Gangs = "drawn"

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def turn(self, slot: int, arrivals: Sequence[Job]) -> bool:
        """Begin a slot; whether room may have opened by itself, so that a baseline decides anew."""
        return False

    def leaving(
        self, jobs: Mapping[str, Job], held: Mapping[str, Placement], left: Mapping[str, Fraction]
    ) -> Collection[str]:
        """Jobs that now go for good to where nothing is scheduled, and what they hold is free.

        `held` is what each job was given in this slot and `left` the work that it has left.
        """
        return ()

    def finished(self, job: Job, slot: int) -> None:
        """Hear that a job's work is done after `slot`."""

    @abstractmethod
    def place(self, job: Job, workers: int) -> Placement | None:
        """Find room for `workers` workers and their parameter servers and book it, or None."""

    @abstractmethod
    def extend(self, job: Job, placement: Placement | None) -> Placement | None:
        """Book one more worker (and the parameter servers it then needs) for `job`.

        `placement` is what the job holds (None for nothing). Returns what it holds then, or None
        if it does not fit; in that case nothing has changed.
        """

    @abstractmethod
    def book(self, job: Job, placement: Placement) -> None:
        """Book a known placement (one that was released before and fits)."""

    @abstractmethod
    def release(self, job: Job, placement: Placement) -> None:
        """Give a placement back."""

    def place_most(self, job: Job, most: int) -> Placement | None:
        """Book as many workers as fit, at most `most`: fewer workers fit where more do."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            placement = self.place(job, middle)
            if placement is None:
                high = middle - 1
            else:
                self.release(job, placement)
                low = middle
        return self.place(job, low) if low else None

    @abstractmethod
    def fits(self, job: Job, placement: Placement) -> bool:
        """Whether a placement that was released before could be booked again now."""

    @abstractmethod
    def work(self, job: Job) -> Fraction:
        """Total work of the job, in the family's unit, exactly."""

    @abstractmethod
    def progress(self, job: Job, placement: Placement) -> Fraction:
        """Work done in one slot with `placement`, exactly."""

    @abstractmethod
    def speed(self, job: Job, workers: int) -> float:
        """Work done in one slot by `workers` workers where the empty cluster would place them."""

    @abstractmethod
    def max_workers(self, job: Job) -> int:
        """Most workers the job can use at once on the empty cluster."""

    def can_run(self, job: Job) -> bool:
        """Whether the job can run at all."""
        return self.max_workers(job) >= 1

    @abstractmethod
    def drawn_workers(self, job: Job) -> int:
        """Gang size requested in the file, or else drawn by (seed, job name)."""

    def fixed_workers(self, job: Job) -> int:
        """Fixed gang size, by the cluster's `gangs`."""
        return gang_width(self.gangs, lambda: self.drawn_workers(job), self.max_workers(job))

    @abstractmethod
    def shares(self, job: Job, workers: int) -> Floats:
        """Share of every resource's total that `workers` workers and their PSs hold."""

    def dominant_share(self, job: Job, workers: int) -> float:
        """Largest share of any resource's total that `workers` workers and their PSs hold."""
        return float(self.shares(job, workers).max(initial=0.0))

    @abstractmethod
    def row(self, job: Job, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file for a placement held in slots first..last."""

    def rows(
        self, slot: int, running: Mapping[str, tuple[Job, Placement]]
    ) -> dict[str, list[Assignment]]:
        """Rows by job that say what runs in `slot`: all jobs that do, and what each holds."""
        return {
            name: [self.row(job, placement, slot, slot)]
            for name, (job, placement) in running.items()
        }


class GangCluster(Cluster[Job]):
    """A cluster that places a job as a whole: one that grows is placed anew."""

    @abstractmethod
    def change(self, placement: Placement, sign: int) -> None:
        """Add `sign` times a placement's resources to what is free."""

    def extend(self, job: Job, placement: Placement | None) -> Placement | None:
        """Book one worker more; the job may be placed anew."""
        if placement is None:
            return self.place(job, 1)
        self.release(job, placement)
        grown = self.place(job, placement.num_workers + 1)
        if grown is None:
            self.book(job, placement)
        return grown

    def book(self, job: Job, placement: Placement) -> None:
        """Book a placement that is known to fit."""
        self.change(placement, -1)

    def release(self, job: Job, placement: Placement) -> None:
        """Give a placement back."""
        self.change(placement, 1)
