"""The cluster as a baseline sees it: what is free, where a job would go, how fast it progresses.

Baselines are written once over `BaselineCluster`; a family's ``online/<family>/dynamics.py`` says
what a placement is and what work is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Floats
from hindsched.instances.base import JobRecord, Record
from hindsched.instances.modes import ps_for
from hindsched.online.protocol import Environment, draws
from hindsched.solutions.base import Assignment

Job = TypeVar("Job", bound=Record)


@dataclass(frozen=True)
class Placement:
    """Workers and parameter servers of one job: their number by server name."""

    workers: dict[str, int]
    ps: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # the family's own: servers of a cell, ...

    @property
    def num_workers(self) -> int:
        """Workers in total."""
        return sum(self.workers.values())


Gangs = Literal["drawn", "half", "ideal"]
"""How wide the gangs of baselines with a fixed number of workers are: requested in the file or else
drawn, half of the most that the job can use, or the most."""


def drawn_gang(job: JobRecord, environment: Environment, most: int, at_most: int = 30) -> int:
    """Requested in the file, else drawn from 1..min(`at_most`, `most`) by (seed, job name)."""
    requested: int | None = getattr(job, "requested_workers", None)
    if requested is not None:
        return requested
    draw = draws(environment.seed, job.name, "workers").random()
    return 1 + int(draw * min(at_most, most))


def gang_width(gangs: Gangs, drawn: Callable[[], int], most: int) -> int:
    """Workers of a fixed gang, at most `most`."""
    if gangs == "drawn":
        return min(drawn(), most)
    return most if gangs == "ideal" else -(-most // 2)


class BaselineCluster(ABC, Generic[Job]):
    """Free capacity, placement and progress; a baseline books on it and never elsewhere."""

    gangs: Gangs = "drawn"  # set by the baseline

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
        """Book so many workers and their parameter servers (PSs) where there is room, or None."""

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

    def progress(self, job: Job, placement: Placement) -> Fraction:
        """Work done in one slot with `placement`, exactly: by a worker one unit."""
        return Fraction(placement.num_workers)

    def speed(self, job: Job, workers: int) -> float:
        """Work done in one slot by `workers` workers where the empty cluster would place them."""
        return float(workers)

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
    def rows(
        self, slot: int, running: Mapping[str, tuple[Job, Placement]]
    ) -> dict[str, list[Assignment]]:
        """Rows by job that say what runs in `slot`: all jobs that do, and what each holds."""


class ServerCluster(BaselineCluster[JobRecord]):
    """Servers of two roles, ``workers`` and ``ps``, of which each unit takes its resources.

    What is `free` of a role has the shape (servers, resources); one array if both roles share it.
    """

    def __init__(
        self, environment: Environment, names: dict[str, list[str]], free: dict[str, NDArray[Any]]
    ) -> None:
        super().__init__(environment)
        self.names, self.free = names, free
        self.index = {
            role: {name: s for s, name in enumerate(servers)} for role, servers in names.items()
        }
        self.total = {role: units.sum(axis=0).astype(float) for role, units in free.items()}

    @abstractmethod
    def unit(self, job: JobRecord, role: str) -> NDArray[Any]:
        """What one of the job's workers or PSs takes of its server."""

    @abstractmethod
    def ps_needed(self, job: JobRecord, workers: int) -> int:
        """PSs that so many workers need where they do not stand on one server."""

    @abstractmethod
    def extend(self, job: JobRecord, placement: Placement | None) -> Placement | None:
        """Book one worker more, and the PSs it then needs, to what the job holds.

        What it holds then; None, and nothing is changed, if that does not fit.
        """

    def change(self, job: JobRecord, placement: Placement, sign: int) -> None:
        """Add `sign` times a placement's resources to what is free."""
        for role, counts in (("workers", placement.workers), ("ps", placement.ps)):
            for name, count in counts.items():
                self.free[role][self.index[role][name]] += sign * count * self.unit(job, role)

    def book(self, job: JobRecord, placement: Placement) -> None:
        """Book a placement that is known to fit."""
        self.change(job, placement, -1)

    def release(self, job: JobRecord, placement: Placement) -> None:
        """Give a placement back."""
        self.change(job, placement, 1)

    def fits(self, job: JobRecord, placement: Placement) -> bool:
        """Whether it fits what is free now."""
        self.change(job, placement, -1)
        fits = all(bool((free >= 0).all()) for free in self.free.values())
        self.change(job, placement, 1)
        return fits

    def shares(self, job: JobRecord, workers: int) -> Floats:
        """Share of each resource's total: over all servers, or first over those of workers."""
        used = [workers * self.unit(job, "workers"),
                self.ps_needed(job, workers) * self.unit(job, "ps")]  # fmt: skip
        totals = [self.total["workers"], self.total["ps"]]
        if self.free["workers"] is self.free["ps"]:
            used, totals = [used[0] + used[1]], totals[:1]
        parts = zip(used, totals, strict=True)
        return np.concatenate([
            np.divide(use, total, where=total > 0, out=np.zeros(total.size)) for use, total in parts
        ])  # fmt: skip

    def dominant_share(self, job: JobRecord, workers: int) -> float:
        """Largest share of any resource's total that `workers` workers and their PSs hold."""
        return float(self.shares(job, workers).max(initial=0.0))

    def drawn_workers(self, job: JobRecord) -> int:
        """Requested in the file, else drawn from 1..min(30, most workers)."""
        return drawn_gang(job, self.environment, self.max_workers(job))

    def row(self, job: JobRecord, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file for a placement held in slots first..last."""
        return {"from": first, "to": last, "workers": placement.workers, "ps": placement.ps}

    def rows(
        self, slot: int, running: Mapping[str, tuple[JobRecord, Placement]]
    ) -> dict[str, list[Assignment]]:
        """One row a job, as wide as it is now."""
        return {
            name: [self.row(job, placement, slot, slot)]
            for name, (job, placement) in running.items()
        }


def largest_share(pools: Iterable[tuple[Floats, Floats]]) -> float:
    """Largest share of a server's resource that one worker or PS takes where it fits.

    Of each pool the demands by job or type, (units, R), and the capacities, (servers, R).
    """
    worst = 0.0
    for demands, capacities in pools:
        for demand in demands:
            capacity = capacities[np.all(demand <= capacities * (1 + 1e-9), axis=1)]
            share = np.divide(demand, capacity, out=np.zeros_like(capacity), where=capacity > 0)
            worst = max(worst, float(share.max(initial=0.0)))
    return worst


@dataclass(frozen=True)
class Gang:
    """Types of a job's workers and PSs, by position, and most workers of them; 0 if none fits."""

    worker_type: int
    ps_type: int
    workers: int
    few_ps: bool = False  # a single PS on one server: it fits in no other way


Counts = dict[int, int]  # units by position of the server


def fill(room: NDArray[Any], order: Iterable[int], count: int) -> Counts:
    """Put so many units on servers in an order, as many as there is room for on each."""
    placed: Counts = {}
    for s in order:
        if taken := min(count, int(room[s])):
            placed[int(s)] = taken
            count -= taken
        if not count:
            break
    return placed


class GangCluster(ServerCluster):
    """Servers on which a job's gang, of one pair of types, is placed as a whole, also to grow."""

    always_typed = False  # whether rows name their types also where there is one of each

    def __init__(self, environment: Environment, free: NDArray[Any]) -> None:
        self.instance: Any = environment.cluster
        names = [server.name for server in self.instance.servers]
        roles = "workers", "ps"
        super().__init__(environment, dict.fromkeys(roles, names), dict.fromkeys(roles, free))
        self.empty = free.copy()
        self._gangs: dict[str, Gang] = {}
        self._rates: dict[tuple[str, int, bool], Fraction] = {}
        self._speeds: dict[tuple[str, int], float] = {}

    @abstractmethod
    def choose_gang(self, job: JobRecord) -> Gang:
        """Types and size of the job's gang on the empty cluster."""

    @abstractmethod
    def find(self, free: NDArray[Any], gang: Gang, workers: int) -> tuple[Counts, Counts] | None:
        """Where so many workers of a gang and their PSs would stand, or None."""

    def gang(self, job: JobRecord) -> Gang:
        """Types and size of the job's gang, chosen once."""
        if job.name not in self._gangs:
            self._gangs[job.name] = self.choose_gang(job)
        return self._gangs[job.name]

    def max_workers(self, job: JobRecord) -> int:
        """Most workers of the gang's types on the empty cluster."""
        return self.gang(job).workers

    def demand(self, gang: Gang, role: str) -> Floats:
        """What a worker or PS of the gang's types takes, (resources,)."""
        instance = self.instance
        worker: Floats = instance.worker_demand[gang.worker_type]
        if role == "workers":
            return worker
        return instance.ps_demand[gang.ps_type] if instance.has_ps else np.zeros_like(worker)

    def unit(self, job: JobRecord, role: str) -> Floats:
        """The `demand` of the job's gang."""
        return self.demand(self.gang(job), role)

    def num_ps(self, gang: Gang, elsewhere: int) -> int:
        """PSs of a host that workers elsewhere need."""
        ratio = self.instance.ps_ratio[gang.worker_type, gang.ps_type]
        return int(ps_for(elsewhere, ratio)) if self.instance.has_ps else 0

    def row(self, job: JobRecord, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file."""
        gang, row = self.gang(job), super().row(job, placement, first, last)
        if not self.instance.has_ps:
            del row["ps"]
        for key, types, kind in (
            ("worker_type", self.instance.worker_types, gang.worker_type),
            ("ps_type", self.instance.ps_types or (), gang.ps_type),
        ):
            if types and (self.always_typed or len(types) > 1):
                row[key] = getattr(types[kind], "name", types[kind])
        return row

    def place(self, job: JobRecord, workers: int) -> Placement | None:
        """Book `workers` workers and their PSs."""
        spot = self.find(self.free["workers"], self.gang(job), workers)
        return None if spot is None else self.booked(job, *spot)

    def booked(self, job: JobRecord, workers: Counts, ps: Counts, **facts: Any) -> Placement:
        """Book what was found."""
        names = self.names["workers"]
        by_name = [{names[s]: n for s, n in sorted(counts.items())} for counts in (workers, ps)]
        placement = Placement(by_name[0], by_name[1], facts)
        self.book(job, placement)
        return placement

    def extend(self, job: JobRecord, placement: Placement | None) -> Placement | None:
        """Book one worker more; the job may be placed anew."""
        if placement is None:
            return self.place(job, 1)
        self.release(job, placement)
        grown = self.place(job, placement.num_workers + 1)
        if grown is None:
            self.book(job, placement)
        return grown

    def work(self, job: JobRecord) -> Fraction:
        """Mini-batches to train."""
        return Fraction(job.total_minibatches)

    def progress(self, job: JobRecord, placement: Placement) -> Fraction:
        """Mini-batches that the placement's workers train in one slot, exactly."""
        alone = len(placement.workers.keys() | placement.ps.keys()) == 1
        return self._rate(job, placement.num_workers, alone)

    def _rate(self, job: JobRecord, workers: int, alone: bool) -> Fraction:
        key = job.name, workers, alone
        if key not in self._rates:
            gang = self.gang(job)
            types = gang.worker_type, gang.ps_type
            self._rates[key] = workers / self.instance.exact_time(job, *types, alone, workers)
        return self._rates[key]

    def speed(self, job: JobRecord, workers: int) -> float:
        """Mini-batches a slot where the empty cluster would place the workers; 0 if it cannot."""
        key = (job.name, workers)
        if key not in self._speeds:
            spot = self.find(self.empty, self.gang(job), workers)
            alone = spot is not None and len(spot[0].keys() | spot[1].keys()) == 1
            self._speeds[key] = float(self._rate(job, workers, alone)) if spot else 0.0
        return self._speeds[key]
