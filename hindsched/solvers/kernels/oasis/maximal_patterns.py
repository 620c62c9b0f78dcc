"""Maximal packing patterns of one server: what a further unit of no job fits beside."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.compiled import compiled
from hindsched.solvers.kernels.cheapest_workers import room_for
from hindsched.solvers.kernels.stable_order import copy_to


@compiled()
def maximal_patterns(capacity: Floats, demand: Floats, most: Ints, found: Ints) -> int:
    """Enumerate the patterns of one server of which no unit more fits.

    Parameters
    ----------
    capacity : ndarray, shape (resources,)
        What the server has, `loosened`.
    demand : ndarray, shape (jobs, resources)
        Demand of one unit of each job.
    most : ndarray of int, shape (jobs,)
        Most units of each job; a pattern is maximal also where it reaches them.
    found : ndarray of int, shape (limit, jobs)
        Receives the patterns.

    Returns
    -------
    int
        How many there are; limit + 1 if they are more than `found` holds.
    """
    jobs = demand.shape[0]
    count = np.zeros(jobs, dtype=np.int64)
    left = capacity.copy()
    number = 0
    job = 0
    while job >= 0:
        while job < jobs:  # as many as fit of every further job
            units = min(most[job], room_for(left, demand[job]))
            count[job] = units
            left -= units * demand[job]
            job += 1
        maximal = True
        for other in range(jobs):
            if count[other] < most[other] and room_for(left, demand[other]) > 0:
                maximal = False
                break
        if maximal:
            if number == found.shape[0]:
                return number + 1
            copy_to(found[number], count)
            number += 1
        job -= 1
        while job >= 0 and count[job] == 0:
            job -= 1
        if job >= 0:
            count[job] -= 1
            left += demand[job]
            job += 1
    return number
