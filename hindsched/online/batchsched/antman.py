"""``antman``: guaranteed gangs first, everyone else on what is free (Xiao et al., OSDI 2020).

After the one-line description in batchsched's paper and general knowledge; the full text was not at
hand. What is simulated stands in the docstring.
"""

from __future__ import annotations

from statistics import median
from typing import Literal

from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedJob
from hindsched.online.baselines.baseline import Baseline
from hindsched.online.dynamics import Gangs, Placement
from hindsched.online.protocol import Decision, Environment, draws


class AntMan(Baseline):
    """Resource-guarantee jobs run as gangs in order of arrival; opportunistic jobs fill up.

    A job is guaranteed if the file says so (``resource_guarantee``), else by the chosen rule.
    Guaranteed jobs start in the order of arrival with their fixed number of workers, never
    pause and never wait for an opportunistic job: opportunistic jobs are shrunk or suspended
    (keeping their progress) before a guaranteed job is placed. An opportunistic job takes as many
    workers as fit now, up to its own maximum, in the order of arrival, at every event. A guaranteed
    job that has waited longer than `patience` slots becomes opportunistic for good.

    Parameters
    ----------
    rule : {"draw", "weight"}
        A draw from (seed, job name), or the job's weight: guaranteed from the median of the jobs
        seen so far on.
    guaranteed : float
        Share of guaranteed jobs among those that are drawn.
    patience : int
        Slots that a guaranteed job waits in the queue.
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    relaxes_constraints = True
    randomised = True

    def __init__(
        self,
        guaranteed: float = 0.5,
        patience: int = 10,
        rule: Literal["draw", "weight"] = "draw",
        gangs: Gangs = "ideal",
    ) -> None:
        self.gangs = gangs
        if not 0 <= guaranteed <= 1:
            raise InputError("set.guaranteed", guaranteed, "must be in 0..1")
        if patience < 0:
            raise InputError("set.patience", patience, "must be at least 0")
        self.guaranteed, self.patience, self.rule = guaranteed, patience, rule

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._class: dict[str, bool] = {}
        self._weights: list[float] = []

    def is_guaranteed(self, name: str) -> bool:
        """Whether a job is in the guaranteed class now."""
        if name not in self._class:
            said = self.jobs[name].resource_guarantee
            self._class[name] = self._by_rule(name) if said is None else said
        return self._class[name]

    def _by_rule(self, name: str) -> bool:
        if self.rule == "weight":
            return bool(self.jobs[name].weight >= median(self._weights))
        draw = draws(self.environment.seed, name, "guarantee").random()
        return bool(draw < self.guaranteed)

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> Decision:
        """Rank anew also when a guaranteed job's patience ends."""
        self._weights += [float(job.weight) for job in arrivals]
        for name, job in self.jobs.items():
            waited = slot - job.arrival
            if name not in self.held and self.is_guaranteed(name) and waited > self.patience:
                self._class[name] = False
                self._event = True
        return super().step(slot, arrivals)

    def reallocate(self) -> None:
        """Guaranteed jobs in the order of arrival, then the others on what is left."""
        held: dict[str, Placement] = {}
        for name, placement in self.held.items():
            if self.is_guaranteed(name):
                held[name] = placement
            else:
                self.cluster.release(self.jobs[name], placement)
        for name, job in self.jobs.items():
            if self.is_guaranteed(name) and name not in held:
                gang = self.cluster.place(job, self.cluster.fixed_workers(job))
                if gang is None:
                    break
                held[name] = gang
        for name in self.jobs:
            if not self.is_guaranteed(name):
                job = self.jobs[name]
                found = self.cluster.place_most(job, self.cluster.max_workers(job))
                if found is not None:
                    held[name] = found
        self.held = held
