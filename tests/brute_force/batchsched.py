"""Optima of batchsched's own subproblems, and of jobs in pieces, by trying all placements."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from tests.brute_force.in_pieces import least_cost
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


def optimum_in_pieces(instance: Any) -> float:
    """Least ``sum w (t + d)`` where a job's slots need not touch and its placement may change."""
    ways = [
        [(float(1 / slots), use) for slots, use in placements(instance, job)]
        for job in instance.jobs
    ]
    last = max(job.arrival for job in instance.jobs) + sum(
        math.ceil(1 / max(rate for rate, _ in options)) for options in ways
    )

    def cost(j: int, end: int) -> float:
        return float(instance.jobs[j].weight * (end + 1))

    firsts = [job.arrival for job in instance.jobs]
    room = tuple(capacities(instance))
    return least_cost(ways, room, firsts, cost, [math.inf] * len(ways), last)
