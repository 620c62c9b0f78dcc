"""What is proven of policies of gang, and whether an instance is such a case."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hindsched.instances.base import Instance
from hindsched.instances.gang.instance import GangInstance
from hindsched.online.protocol import Assumption, Theorem


def srtf_theorem(instance: Instance) -> Theorem:
    """One GPU and equal weights: optimal, also among schedules that pause (Schrage 1968)."""
    assert isinstance(instance, GangInstance)
    weights = instance.weights
    spread = float(weights.max() / weights.min()) if weights.size else 1.0
    return _promise(1.0, [_assumption("one GPU", instance.total_gpus), _equal(spread)])


def wspt_theorem(instance: Instance) -> Theorem:
    """Single GPUs and one submission: optimal on one GPU (Smith 1956), else (1 + sqrt 2) / 2.

    The factor is that of Kawaguchi & Kyan (1986); it holds for total weighted completion time since
    the submission.
    """
    assert isinstance(instance, GangInstance)
    value = 1.0 if instance.total_gpus == 1 else (1 + math.sqrt(2)) / 2
    widest = int(instance.job_gpus.max(initial=1))
    moments = max(1, np.unique(instance.submits).size)
    single = _assumption("every job asks for one GPU", widest)
    return _promise(value, [single, _assumption("all jobs are submitted at once", moments)])


def _assumption(name: str, times: float) -> Assumption:
    """An assumption that is missed by a factor: above 1 it does not hold."""
    return {"name": name, "holds": times <= 1, "worst": float(times)}


def _equal(spread: float) -> Assumption:
    return _assumption("all weights are equal", spread)


def _promise(value: float, assumptions: list[Assumption]) -> Theorem:
    """A ratio, and None where nothing is proven."""
    holds = all(assumption["holds"] for assumption in assumptions)
    return {"kind": "ratio", "value": value if holds else None, "assumptions": assumptions}


THEOREMS: dict[str, Callable[[Instance], Theorem]] = {
    "srtf": srtf_theorem,
    "wspt": wspt_theorem,
}
