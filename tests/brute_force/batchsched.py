"""Optima of batchsched's own subproblems by trying all placements."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from tests.second_opinion.settle import placements

EPS = 1e-9


def capacities(instance: Any) -> list[float]:
    """What there is of every server and resource."""
    return [float(s.capacity.get(r, 0)) for s in instance.servers for r in instance.resources]


def best_subset(instance: Any, last: int) -> float:
    """Largest weight of jobs that all fit into slots 1 .. last (problem (7)/(16))."""
    choices = [placements(instance, job) for job in instance.jobs]

    def gain(j: int, free: Any) -> float:
        if j == len(choices):
            return 0.0
        best = gain(j + 1, free)
        for d, use in ((math.ceil(slots), use) for slots, use in choices[j]):
            for first in range(last - d + 1):
                after = free.copy()
                after[first : first + d] -= use
                if (after >= -EPS).all():
                    best = max(best, instance.jobs[j].weight + gain(j + 1, after))
        return best

    return gain(0, np.tile(capacities(instance), (last, 1)))


def cheapest_placement(problem: dict[str, Any]) -> float:
    """Problem (13) by enumeration; inf if infeasible.

    `problem` holds omega and delta (servers, resources), e, z, b, B and N, as in the known answers.
    """
    omega, delta, e, z = problem["omega"], problem["delta"], problem["e"], problem["z"]
    servers, resources = range(len(omega)), range(len(e))
    best = math.inf
    for y in product(range(problem["N"] + 1), repeat=len(omega)):
        if sum(y) != problem["N"]:
            continue
        for s in product(range(1 + max(max(row) for row in omega)), repeat=len(omega)):
            if sum(s) < 1:
                continue
            use = [[y[h] * e[r] + s[h] * z[r] for r in resources] for h in servers]
            if any(use[h][r] > omega[h][r] for h in servers for r in resources):
                continue
            if any(
                s[h] > 0 and (sum(y) - y[h]) * problem["b"] > s[h] * problem["B"] for h in servers
            ):
                continue
            if sum(1 for h in servers if y[h] or s[h]) < 2:
                continue
            best = min(best, sum(delta[h][r] * use[h][r] for h in servers for r in resources))
    return best
