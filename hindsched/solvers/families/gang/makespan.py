"""Lower bounds on the makespan that follow from the instance alone.

From any time r on, the jobs submitted at r or later need their work: ``r + work / GPUs``. Jobs
that all hold more than ``GPUs / (k + 1)`` run at most k at a time: ``r + sum of durations / k``. No
job ends before its submission and duration. Elastic jobs have the first of the three, and the
third with the duration on as many GPUs as they can use.
"""

from __future__ import annotations

import math

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.gang.instance import GangInstance, exact

MOST_PARALLEL = 64
"""Widths are told apart up to so many jobs side by side."""


def makespan_bound(instance: GangInstance, kind: str) -> float:
    """Lower bound on the last completion in seconds since the trace's start, rounded down."""
    seconds = makespan_bound_slots(instance, kind) * exact(instance.slot_seconds)
    nearest = float(seconds)
    return nearest if nearest <= seconds else math.nextafter(nearest, -math.inf)


def makespan_bound_slots(instance: GangInstance, kind: str) -> int:
    """The bound in slots."""
    if not instance.jobs:
        return 0
    order = np.argsort(-instance.submits, kind="stable")
    submit, duration = instance.submits[order], instance.durations[order]
    gpus, room = instance.job_gpus[order], instance.total_gpus
    work = duration * gpus
    fastest = -(-work // instance.most_gpus[order]) if kind == "elastic" else duration
    best = max(int((submit + fastest).max()), _from_each(submit, work, room))
    if kind != "elastic":
        for parallel in range(1, min(MOST_PARALLEL, room) + 1):
            wide = gpus * (parallel + 1) > room
            best = max(best, _from_each(submit[wide], duration[wide], parallel))
    return best


def _from_each(submit: Ints, work: Ints, rate: int) -> int:
    """Latest of ``r + work submitted at r or later / rate``; submissions fall."""
    if not submit.size:
        return 0
    return int((submit + -(-np.cumsum(work) // rate)).max())
