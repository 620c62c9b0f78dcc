"""Optimum of (2)/(15) over raw decisions: start, duration, types and counts on every server.

Shares nothing with the package but the instance's records: demands, the time per mini-batch (1) and
(14), and every constraint are written again here from the paper.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from tests.brute_force.in_pieces import least_cost

EPS = 1e-9
Use = tuple[tuple[float, ...], ...]


def demand_of(item: Any, resources: Any) -> list[float]:
    return [float(item.demand.get(r, 0)) for r in resources]


def placements(instance: Any, job: Any) -> set[tuple[int, Use]]:
    """(least duration d, use by server and resource) of every choice of types and counts."""
    found = times(instance, job)
    return {(max(1, math.ceil(work - EPS)), use) for work, use in found}  # (2f)


def times(instance: Any, job: Any) -> set[tuple[float, Use]]:
    """(Slots for all work, use by server and resource) of every choice of types and counts."""
    resources = instance.resources
    capacity = [[float(s.capacity.get(r, 0)) for r in resources] for s in instance.servers]
    servers = range(len(capacity))
    wide = resources.index(instance.bandwidth_resource)
    ps_types = instance.ps_types or (None,)
    found: set[tuple[float, Use]] = set()
    for m, worker in enumerate(instance.worker_types):
        e = demand_of(worker, resources)
        for y in product(range(job.chunks + 1), repeat=len(capacity)):
            if not 1 <= sum(y) <= job.chunks:  # (2b), (2g)
                continue
            if any(y[h] * e[r] > capacity[h][r] + EPS for h in servers for r in range(len(e))):
                continue
            for p, ps in enumerate(ps_types):
                z = demand_of(ps, resources) if ps else [0.0] * len(e)
                most = [
                    min(int(capacity[h][r] / z[r] + EPS) for r in range(len(z)) if z[r] > 0)
                    if ps
                    else 0
                    for h in servers
                ]
                for s in product(*(range(count + 1) for count in most)):
                    if ps and sum(s) < 1:  # (2e)
                        continue
                    use = tuple(
                        tuple(y[h] * e[r] + s[h] * z[r] for r in range(len(e))) for h in servers
                    )
                    if any(
                        use[h][r] > capacity[h][r] + EPS for h in servers for r in range(len(e))
                    ):
                        continue
                    if ps and any(  # (2i)
                        s[h] > 0 and (sum(y) - y[h]) * e[wide] > s[h] * z[wide] + EPS
                        for h in servers
                    ):
                        continue
                    together = sum(1 for h in servers if y[h] > 0 or s[h] > 0) == 1  # (2d), (15a)
                    send = 0.0 if together else 2 * job.gradient_mb * 8 / e[wide]
                    send /= instance.slot_seconds
                    if ps:
                        time = job.minibatch_slots[m] + job.update_slots[p] + send  # (1)
                    else:
                        share = (sum(y) - 1) / sum(y)
                        time = job.minibatch_slots[m] + (job.reduce_slots + send) * share  # (14)
                    work = job.epochs * job.chunks * job.minibatches * time / sum(y)
                    found.add((work, use))
    return found


def optimum(instance: Any) -> float:
    """Least ``sum w (t + d)`` by exhaustive search; branches that cannot beat the best are cut."""
    resources = range(len(instance.resources))
    servers = range(len(instance.servers))
    capacity = [[float(s.capacity.get(r, 0)) for r in instance.resources] for s in instance.servers]
    choices = [sorted(placements(instance, job)) for job in instance.jobs]
    alone = [
        job.weight * (job.arrival + min(d for d, _ in choice))
        for job, choice in zip(instance.jobs, choices, strict=True)
    ]
    best = math.inf
    taken: dict[tuple[int, int, int], float] = {}

    def place(j: int, cost: float) -> None:
        nonlocal best
        if j == len(instance.jobs):
            best = min(best, cost)
            return
        job, rest = instance.jobs[j], sum(alone[j + 1 :])
        for d, use in choices[j]:
            start = job.arrival
            while cost + job.weight * (start + d) + rest < best - EPS:
                cells = [
                    (t, h, r)
                    for t in range(start, start + d)
                    for h in servers
                    for r in resources
                    if use[h][r]
                ]
                if all(
                    taken.get((t, h, r), 0.0) + use[h][r] <= capacity[h][r] + EPS
                    for t, h, r in cells
                ):
                    for t, h, r in cells:
                        taken[t, h, r] = taken.get((t, h, r), 0.0) + use[h][r]
                    place(j + 1, cost + job.weight * (start + d))
                    for t, h, r in cells:
                        taken[t, h, r] -= use[h][r]
                start += 1
                if best == math.inf and start > 200:
                    raise AssertionError("no schedule within 200 slots")

    place(0, 0.0)
    return best


def least_alone(instance: Any) -> float:
    """Sum of what every job would cost alone: below the optimum iff a capacity binds."""
    return sum(
        job.weight * (job.arrival + min(d for d, _ in placements(instance, job)))
        for job in instance.jobs
    )


def best_subset(instance: Any, last: int) -> float:
    """Largest weight of jobs that all fit into slots 1 .. last (problem (7)/(16))."""
    resources = range(len(instance.resources))
    servers = range(len(instance.servers))
    capacity = [[float(s.capacity.get(r, 0)) for r in instance.resources] for s in instance.servers]
    choices = [sorted(placements(instance, job)) for job in instance.jobs]
    taken: dict[tuple[int, int, int], float] = {}

    def gain(j: int) -> float:
        if j == len(instance.jobs):
            return 0.0
        best = gain(j + 1)
        for d, use in choices[j]:
            for start in range(1, last - d + 2):
                cells = [
                    (t, h, r)
                    for t in range(start, start + d)
                    for h in servers
                    for r in resources
                    if use[h][r]
                ]
                if all(
                    taken.get((t, h, r), 0.0) + use[h][r] <= capacity[h][r] + EPS
                    for t, h, r in cells
                ):
                    for t, h, r in cells:
                        taken[t, h, r] = taken.get((t, h, r), 0.0) + use[h][r]
                    best = max(best, instance.jobs[j].weight + gain(j + 1))
                    for t, h, r in cells:
                        taken[t, h, r] -= use[h][r]
        return best

    return gain(0)


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
    capacity = tuple(
        float(s.capacity.get(r, 0)) for s in instance.servers for r in instance.resources
    )
    ways = [
        [(1 / work, tuple(x for row in use for x in row)) for work, use in times(instance, job)]
        for job in instance.jobs
    ]
    last = max(job.arrival for job in instance.jobs) + sum(
        math.ceil(1 / max(rate for rate, _ in own)) for own in ways
    )

    def cost(j: int, end: int) -> float:
        return float(instance.jobs[j].weight * (end + 1))

    firsts = [job.arrival for job in instance.jobs]
    return least_cost(ways, capacity, firsts, cost, [math.inf] * len(ways), last)
