"""The registered algorithms of gang, and what is proven of some."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord
from hindsched.instances.gang.instance import GangInstance
from hindsched.json_types import JsonObject
from hindsched.online.gang.planning import DualPrice, Reoptimise
from hindsched.online.gang.policies import (
    Conservative,
    Easy,
    Fifo,
    FifoSkip,
    Las,
    Sjf,
    SmallestFirst,
    Srtf,
    Wspt,
)
from hindsched.online.protocol import (
    NOTHING,
    Capabilities,
    Decision,
    Environment,
    OnlineAlgorithm,
    Theorem,
    theorem_of,
)
from hindsched.online.registry import Factory
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.gang.search import best_in_rounds


class Hindsight(OnlineAlgorithm):
    """Follow the best schedule that a search finds among all jobs; no online algorithm.

    Parameters
    ----------
    exchanges : int
        Exchanges of neighbouring jobs that the search tries, the same on every machine.
    """

    card = Capabilities(online=False, clairvoyant=True)

    def __init__(self, exchanges: int = 20_000) -> None:
        if exchanges < 0:
            raise InputError("set.exchanges", exchanges, "must be at least 0")
        self.exchanges = exchanges

    def start(self, environment: Environment) -> None:
        """Begin without a plan."""
        self._environment = environment
        self._rows: dict[int, dict[str, list[Assignment]]] = {}
        self._begins: list[int] = []

    def foresee(self, jobs: tuple[JobRecord, ...]) -> None:
        """Search the best schedule of all jobs."""
        instance = self._environment.cluster.with_jobs(jobs)
        assert isinstance(instance, GangInstance)
        if not jobs:
            return
        found = best_in_rounds(instance, self._environment.formulation, self.exchanges)
        for name, rows in found.assignments().items():
            for row in rows:
                self._rows.setdefault(row["from"], {}).setdefault(name, []).append(row)
        self._begins = sorted(self._rows, reverse=True)

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Give out what begins now."""
        if slot not in self._rows:
            return NOTHING
        self._begins.pop()
        return Decision(self._rows[slot])

    def wake_up(self) -> int | None:
        """The slot in which the next job begins."""
        return self._begins[-1] if self._begins else None


ALGORITHMS: dict[str, Factory] = {
    policy.name: policy
    for policy in (
        Fifo, FifoSkip, Sjf, SmallestFirst, Wspt, Easy, Conservative, Srtf, Las,
    )
}  # fmt: skip
ALGORITHMS |= {"dual-price": DualPrice, "reoptimise": Reoptimise, "hindsight": Hindsight}


def declared_estimates(instance: Instance) -> JsonObject:
    """Nothing is told in advance."""
    return {}


def srtf_theorem(instance: Instance) -> Theorem:
    """One GPU and equal weights: optimal, also among schedules that pause (Schrage 1968)."""
    assert isinstance(instance, GangInstance)
    weights = instance.weights
    spread = float(weights.max() / weights.min()) if weights.size else 1.0
    return _promise(1.0, {"one GPU": instance.total_gpus, "all weights are equal": spread})


def wspt_theorem(instance: Instance) -> Theorem:
    """Single GPUs and one submission: optimal on one GPU (Smith 1956), else (1 + sqrt 2) / 2.

    The factor is that of Kawaguchi & Kyan (1986); it holds for total weighted completion time since
    the submission.
    """
    assert isinstance(instance, GangInstance)
    value = 1.0 if instance.total_gpus == 1 else (1 + math.sqrt(2)) / 2
    widest = int(instance.job_gpus.max(initial=1))
    moments = max(1, np.unique(instance.submits).size)
    missed = {"every job asks for one GPU": widest, "all jobs are submitted at once": moments}
    return _promise(value, missed)


def _promise(value: float, missed: Mapping[str, float]) -> Theorem:
    """A ratio, and None where an assumption is missed by a factor above 1."""
    assumed = [(name, times <= 1, float(times)) for name, times in missed.items()]
    return theorem_of("ratio", value if max(missed.values()) <= 1 else None, assumed)


THEOREM_ALGORITHMS: dict[str, Callable[[Instance], Theorem]] = {
    "srtf": srtf_theorem,
    "wspt": wspt_theorem,
}
