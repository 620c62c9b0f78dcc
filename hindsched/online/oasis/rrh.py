"""``rrh``: risk-reward scheduling (Irwin, Grit and Chase, HPDC 2004), as OASiS's paper words it."""

from __future__ import annotations

import math
from fractions import Fraction

from hindsched.errors import InputError
from hindsched.instances.oasis.instance import OasisJob
from hindsched.json_types import JsonObject
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.dynamics import Gangs, Placement
from hindsched.online.protocol import Environment, Report


class Rrh(FixedWidth):
    """Risk-reward heuristic.

    A job has a fixed number of workers n and, with its remaining work, q remaining slots. Its
    reward is the utility at the completion it would have if run now; its delay cost is what the
    other admitted unfinished jobs would lose if delayed by q. It is admitted if reward minus cost
    exceeds the threshold. At each arrival and completion the admitted jobs are ranked by
    (utility - cost) / (n q) and run greedily as they fit; the rest pause, keeping progress and
    size. Utility past the horizon is 0.

    Parameters
    ----------
    threshold : float
        Admission threshold, in units of utility.
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    def __init__(self, threshold: float = 0.0, gangs: Gangs = "ideal") -> None:
        super().__init__(gangs)
        if math.isnan(threshold):
            raise InputError("set.threshold", threshold, "must be a number")
        self.threshold = threshold

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._admissions: list[JsonObject] = []

    def admit(self, job: OasisJob) -> bool:
        """Admit if reward minus delay cost exceeds the threshold."""
        if not super().admit(job):
            return False
        net = self._net_reward(job, self.cluster.work(job))
        admitted = net > self.threshold
        self._admissions.append({"job": job.name, "net": net, "admitted": admitted})
        return admitted

    def reallocate(self) -> None:
        """Rank admitted jobs by net reward per worker-slot and run them greedily as they fit."""
        self.release_all()
        rank = {
            name: self._net_reward(job, self.remaining[name])
            / (self.cluster.fixed_workers(job) * self._slots_left(job, self.remaining[name]))
            for name, job in self.jobs.items()
        }
        held: dict[str, Placement] = {}
        for name in sorted(self.jobs, key=lambda name: -rank[name]):
            job = self.jobs[name]
            placement = self.cluster.place(job, self.cluster.fixed_workers(job))
            if placement is not None:
                held[name] = placement
        self.held = held

    def _slots_left(self, job: OasisJob, work: Fraction) -> int:
        return max(1, math.ceil(work / self.cluster.fixed_workers(job)))

    def _net_reward(self, job: OasisJob, work: Fraction) -> float:
        """Utility if run now, minus what the other admitted jobs lose by the delay."""
        delay = self._slots_left(job, work)
        reward = self._value(job, self.slot + delay - 1)
        cost = 0.0
        for name, other in self.jobs.items():
            if name != job.name:
                end = self.slot + self._slots_left(other, self.remaining[name]) - 1
                cost += self._value(other, end) - self._value(other, end + delay)
        return reward - cost

    def _value(self, job: OasisJob, completion: int) -> float:
        if completion > self.environment.cluster.horizon:
            return 0.0
        return float(job.utility.value(completion - job.arrival))

    def report(self) -> Report:
        """Net reward of each job at its admission."""
        return {"admissions": list(self._admissions)}
