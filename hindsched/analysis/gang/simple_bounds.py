"""Bounds that need no prices: anybody recomputes them from the instance in seconds, exactly.

Completion times: no job ends before its submission and duration; and the cluster is no faster than
one machine that does all GPUs' work at once, on which shortest remaining work first is optimal
(Schrage, 1968; with equal weights). Makespan: the same two, the second from every submission on.
Deadlines: a job that cannot meet its own even alone misses it.
"""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.gang.instance import KINDS, GangInstance, exact, split_formulation

ELASTIC = KINDS[-1]


def simple_bound(instance: GangInstance, formulation: str) -> float:
    """Lower bound on the objective of a formulation, rounded down.

    Parameters
    ----------
    instance : GangInstance
        At least one job.
    formulation : str
        Kind and objective.
    """
    kind, goal = split_formulation(formulation)
    work = instance.durations * instance.job_gpus
    fastest = -(-work // instance.most_gpus) if kind == ELASTIC else instance.durations
    seconds = exact(instance.slot_seconds)
    weights, below = instance.exact_weights
    if goal == "makespan":
        return _down(_makespan(instance, work, fastest) * seconds)
    if goal == "deadlines":
        late = (instance.deadlines >= 0) & (instance.submits + fastest > instance.deadlines)
        return _down(Fraction(sum(weights[job] for job in np.flatnonzero(late)), below))
    alone = sum(weight * slots for weight, slots in zip(weights, fastest.tolist(), strict=True))
    best = Fraction(alone, below)
    if len(set(weights)) == 1:
        flow = shortest_remaining_flow(instance.submits, work, instance.total_gpus)
        best = max(best, flow * Fraction(weights[0], below))
    return _down(best * seconds)


def shortest_remaining_flow(submits: Ints, work: Ints, speed: int) -> Fraction:
    """Sum of flow times, in slots, of shortest remaining work first on one machine of a speed."""
    order = np.argsort(submits, kind="stable")
    releases = [int(submit) * speed for submit in submits[order]]  # in slots / speed
    sizes = work[order].tolist()
    queue: list[int] = []
    now = total = 0
    for index, release in enumerate(releases):
        while queue and now < release:
            left = heapq.heappop(queue)
            done = min(left, release - now)
            now += done
            if done < left:
                heapq.heappush(queue, left - done)
            else:
                total += now
        now = max(now, release)
        heapq.heappush(queue, sizes[index])
    while queue:
        now += heapq.heappop(queue)
        total += now
    return Fraction(total - sum(releases), speed)


def _makespan(instance: GangInstance, work: Ints, fastest: Ints) -> int:
    order = np.argsort(-instance.submits, kind="stable")
    later = np.cumsum(work[order])  # of jobs submitted at this time or later
    return max(
        int((instance.submits + fastest).max()),
        int((instance.submits[order] - -later // instance.total_gpus).max()),
    )


def _down(value: Fraction) -> float:
    """The largest float that is not above the value, or the one before."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
