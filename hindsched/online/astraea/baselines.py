"""``gandiva-fair`` and ``hived``, after the one-line descriptions in astraea's paper."""

from __future__ import annotations

from typing import Any

from hindsched.instances.astraea.instance import AstraeaJob
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.baselines.ranked import comparable
from hindsched.online.dynamics import Placement
from hindsched.online.protocol import Decision


class GandivaFair(FixedWidth):
    """Stride scheduling of gangs in every slot.

    A tenant has tickets in proportion to its quota of workers, split equally over its present jobs;
    a job's stride is 1 / tickets. In each slot jobs are asked in the order of their passes (then of
    arrival); one whose gang (its fixed number of workers and the PSs they need) fits runs, in its
    previous place if that is free, else by first fit, blind to locality, and its pass grows by
    gang x stride. A new job begins at the smallest pass of the present jobs. Jobs are paused and
    moved at no cost and keep their progress. A tenant without a quota is asked last.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    relaxes_constraints = True

    def start(self, environment: Any) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._passes: dict[str, float] = {}
        self._places: dict[str, Placement] = {}
        self._tickets: dict[str, float] = self.cluster.tickets()  # type: ignore[attr-defined]

    def step(self, slot: int, arrivals: tuple[AstraeaJob, ...]) -> Decision:
        """Decide anew in every slot."""
        self._event = True
        return super().step(slot, arrivals)

    def reallocate(self) -> None:
        """Walk the jobs by pass and run the gangs that fit."""
        self.release_all()
        lowest = min((self._passes[name] for name in self.jobs if name in self._passes), default=0)
        for name in self.jobs:
            self._passes.setdefault(name, lowest)
        owners = {name: self.cluster.owner(job) for name, job in self.jobs.items()}  # type: ignore[attr-defined]
        present = {owner: list(owners.values()).count(owner) for owner in owners.values()}
        arrival = {name: index for index, name in enumerate(self.jobs)}
        without = {name: self._tickets[owners[name]] <= 0 for name in self.jobs}
        passes = {name: comparable(self._passes[name]) for name in self.jobs}
        for name in sorted(self.jobs, key=lambda n: (without[n], passes[n], arrival[n])):
            job = self.jobs[name]
            gang = self.cluster.fixed_workers(job)
            place = self._places.get(name)
            if place is not None and self.cluster.fits(job, place):
                self.cluster.book(job, place)
            else:
                place = self.cluster.place(job, gang)
            if place is None:
                continue
            self.held[name] = self._places[name] = place
            tickets = self._tickets[owners[name]] / present[owners[name]]
            stride = 1.0 / tickets if tickets > 0 else 0.0
            self._passes[name] += gang * stride


class Hived(FixedWidth):
    """A tenant's jobs are guaranteed its own servers; idle servers run others' jobs meanwhile.

    At every arrival and completion each tenant's waiting jobs are asked in the order of arrival,
    nobody overtaking: a job whose gang fits what is free of the tenant's own servers (the smallest
    server that takes it whole, else the fullest servers) becomes guaranteed and keeps its place to
    the end. Foreign jobs count as free: they are preempted. A gang too large for its
    tenant's servers waits in no queue. All other jobs, in the order of arrival,
    run opportunistically on whatever is idle, in their previous place if that is free. A preempted
    job keeps its progress; an opportunistic job moves home when its turn comes.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    relaxes_constraints = True

    def start(self, environment: Any) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._guaranteed: set[str] = set()

    def reallocate(self) -> None:
        """Guaranteed jobs first, then opportunistic ones on what is idle."""
        cluster: Any = self.cluster
        held: dict[str, Placement] = {}
        before: dict[str, Placement] = {}
        for name, placement in self.held.items():
            if name in self._guaranteed:
                held[name] = placement
            else:
                cluster.release(self.jobs[name], placement)
                before[name] = placement
        blocked: set[str] = set()
        for name, job in self.jobs.items():
            if name in self._guaranteed or cluster.owner(job) in blocked:
                continue
            if not cluster.ever_fits_home(job):
                continue
            placement = cluster.place_at_home(job)
            if placement is None:
                blocked.add(cluster.owner(job))
                continue
            self._guaranteed.add(name)
            held[name] = placement
        for name, job in self.jobs.items():
            if name in held:
                continue
            if name in before and cluster.fits(job, before[name]):
                cluster.book(job, before[name])
                held[name] = before[name]
                continue
            placement = cluster.place(job, cluster.fixed_workers(job))
            if placement is not None:
                held[name] = placement
        self.held = held
