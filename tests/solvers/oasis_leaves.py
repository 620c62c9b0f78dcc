"""Small instances of oasis, and sets of ends that leaves decide about."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.oasis.solution import OasisSolution


def drawn(seed: int, **settings: int) -> OasisInstance:
    """A small instance of the paper's kind."""
    chosen = {"jobs": 5, "horizon": 5, "servers": 3, "max_duration": 3} | settings
    instance = hs.generate("oasis", "paper", seed, **chosen)
    assert isinstance(instance, OasisInstance)
    return instance


def some_ends(instance: OasisInstance, random: np.random.Generator) -> dict[int, int]:
    """Ends of most jobs."""
    return {
        at: int(random.integers(job.arrival, instance.horizon + 1))
        for at, job in enumerate(instance.jobs)
        if random.random() < 0.8
    }


def keeps(solution: OasisSolution | None, ends: Mapping[int, int]) -> bool:
    """Whether a solution is feasible and ends all these jobs by then."""
    if solution is None or not solution.is_feasible():
        return False
    completions = {job: solution.completion(solution.instance.jobs[job].name) for job in ends}
    return all(at is not None and at <= ends[job] for job, at in completions.items())
