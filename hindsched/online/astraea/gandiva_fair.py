"""``gandiva-fair``: gang-aware stride scheduling by tickets (Chaudhary et al., EuroSys 2020).

After the one-line description in astraea's paper and general knowledge; the full text was not at
hand. What is simulated stands in the docstring. With one GPU type its trading is void and left out.
"""

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
