"""Maximal packing patterns of one server: what a further unit of no job fits beside."""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import FLOAT_ERROR, loosened
from hindsched.solvers.kernels.placement import room_for
from hindsched.solvers.kernels.stable_order import copy_to

STEPS_OF_PATTERN = 10_000
"""Steps for each pattern that there is room for: a server of which dead ends take more has none."""


def server_patterns(capacity: Floats, demand: Floats, most: Ints, limit: int) -> Ints | None:
    """Maximal patterns of one `loosened` server; None if more than a limit or hard to find."""
    patterns = np.empty((limit, len(demand)), dtype=np.int64)
    demands = demand.copy()  # kernels are compiled for arrays that can be written
    number = maximal_patterns(loosened(capacity, capacity), demands, most, patterns)
    return None if number > limit else patterns[:number].copy()


@njit(cache=True)
def maximal_patterns(capacity: Floats, demand: Floats, most: Ints, patterns: Ints) -> int:
    """Write to `found`, (limit, jobs), the patterns of one server of which no unit more fits.

    Returns how many there are; limit + 1 if `found` does not hold them or they take too many steps.
    A pattern is maximal also where it reaches the `most` units of a job; `capacity` is `loosened`.
    Nothing is tried where a unit of a chosen job fits whatever the later ones use.
    """
    jobs, resources = demand.shape
    count = np.zeros(jobs, dtype=np.int64)
    # What is left beside the jobs before each one: units given back one by one would let rounding
    # grow with the steps, and a pattern that fills the server would be lost.
    left = np.empty((jobs + 1, resources))
    copy_to(left[0], capacity)
    later = np.zeros((jobs + 1, resources))  # what the jobs from each one on can use at most
    for job in range(jobs - 1, -1, -1):
        count[job] = min(most[job], room_for(capacity, demand[job]))
        for r in range(resources):
            later[job, r] = later[job + 1, r] + count[job] * demand[job, r]
    number = 0
    job = 0
    steps = STEPS_OF_PATTERN * (patterns.shape[0] + 1)
    while job >= 0:
        steps -= 1
        if steps < 0:
            return patterns.shape[0] + 1
        last = job + 1 == jobs
        for r in range(resources):
            left[job + 1, r] = left[job, r] - count[job] * demand[job, r]
        maximal = True
        for other in range(job + 1):  # whose unit fits whatever the later ones use
            fits = count[other] < most[other]
            for r in range(resources):
                if demand[other, r] > 0:
                    needed = demand[other, r] + later[job + 1, r]
                    if not last:  # by more than rounding
                        needed += 4 * FLOAT_ERROR * capacity[r]
                    fits = fits and needed <= left[job + 1, r]
            if fits:
                maximal = False
                break
        if maximal and not last:
            job += 1
            count[job] = min(most[job], room_for(left[job], demand[job]))
            continue
        if maximal:
            if number == patterns.shape[0]:
                return number + 1
            copy_to(patterns[number], count)
            number += 1
        job -= 1
        while job >= 0 and count[job] == 0:
            job -= 1
        if job >= 0:
            count[job] -= 1
    return number
