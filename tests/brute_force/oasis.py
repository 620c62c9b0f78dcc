"""Brute force over raw decisions for tiny oasis instances.

Every slot's decisions (workers and PSs of every job on every server) are enumerated against
(3)-(7), (12) and (13) as they stand; a search over the jobs' progress then tries every sequence of
slots. No code is shared with the package but the instance's plain fields.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Deployment = tuple[tuple[int, ...], tuple[int, ...]]
"""Workers by worker server, PSs by PS server."""


@dataclass(frozen=True)
class Optimum:
    """The optimum and one schedule that attains it, as rows of the solution file by job."""

    value: float
    assignments: dict[str, list[dict[str, Any]]]


def utility_of(job: Any, completion: int) -> float:
    """f(completion - arrival), from the formulas of the file format."""
    x, u = completion - job.arrival, job.utility
    if u.kind == "linear":
        return u.slope * x + u.intercept
    return u.priority / (1 + math.exp(u.decay * (x - u.target)))


def work_of(instance: Any, job: Any) -> int:
    """E N M (tau + 2 e / b), rounded up."""
    seconds = 0.0
    if job.gradient_mb:
        seconds = 2 * job.gradient_mb * 8 / job.worker[instance.bandwidth_resource]
    per_batch = job.minibatch_slots + seconds / instance.slot_seconds
    return math.ceil(job.epochs * job.chunks * job.minibatches * per_batch - 1e-9)


def fits(demand: dict[str, float], count: int, capacity: dict[str, float]) -> bool:
    return all(demand.get(r, 0) * count <= capacity.get(r, 0) + 1e-9 for r in demand)


def deployments(instance: Any, job: Any) -> list[Deployment]:
    """Everything one job may do in one slot under (3), (6), (7), (12), (13), alone."""
    counts = range(job.chunks + 1)
    b = job.worker.get(instance.bandwidth_resource, 0)
    big_b = job.ps.get(instance.bandwidth_resource, 0)
    found = []
    for y in itertools.product(counts, repeat=len(instance.worker_servers)):
        if sum(y) > job.chunks:
            continue
        if not all(
            fits(job.worker, n, s.capacity) for n, s in zip(y, instance.worker_servers, strict=True)
        ):
            continue
        for z in itertools.product(range(sum(y) + 1), repeat=len(instance.ps_servers)):
            if sum(z) > sum(y) or sum(y) * b > sum(z) * big_b + 1e-9:
                continue
            if all(
                fits(job.ps, n, s.capacity) for n, s in zip(z, instance.ps_servers, strict=True)
            ):
                found.append((y, z))
    return found


def joint_deployments(
    instance: Any, present: list[int], options: list[list[Deployment]]
) -> Iterator[dict[int, Deployment]]:
    """Every combination of the present jobs' deployments that satisfies (4) and (5)."""

    def within(chosen: dict[int, Deployment]) -> bool:
        for role, servers in ((0, instance.worker_servers), (1, instance.ps_servers)):
            for s, server in enumerate(servers):
                for resource in instance.resources:
                    used = sum(
                        (instance.jobs[i].worker, instance.jobs[i].ps)[role].get(resource, 0)
                        * deployed[role][s]
                        for i, deployed in chosen.items()
                    )
                    if used > server.capacity.get(resource, 0) + 1e-9:
                        return False
        return True

    def extend(chosen: dict[int, Deployment], rest: list[int]) -> Iterator[dict[int, Deployment]]:
        if not rest:
            yield dict(chosen)
            return
        for deployed in options[rest[0]]:
            chosen[rest[0]] = deployed
            if within(chosen):
                yield from extend(chosen, rest[1:])
            del chosen[rest[0]]

    yield from extend({}, present)


def optimum(instance: Any) -> Optimum:
    """Best total utility over all schedules of all jobs."""
    jobs = instance.jobs
    work = [max(1, work_of(instance, job)) for job in jobs]
    options = [deployments(instance, job) for job in jobs]
    joint: dict[tuple[int, ...], dict[tuple[int, ...], dict[int, Deployment]]] = {}
    states: dict[tuple[int, ...], tuple[float, Any]] = {(0,) * len(jobs): (0.0, None)}
    for slot in range(1, instance.horizon + 1):
        present = tuple(i for i, job in enumerate(jobs) if job.arrival <= slot)
        if present not in joint:
            joint[present] = {}
            for chosen in joint_deployments(instance, list(present), options):
                made = tuple(sum(chosen[i][0]) if i in chosen else 0 for i in range(len(jobs)))
                joint[present].setdefault(made, chosen)
        states = _next_states(instance, states, joint[present], work, slot)
    best = max(states.values(), key=lambda state: state[0])
    return Optimum(best[0], _rows(instance, best[1], work))


def _next_states(
    instance: Any,
    states: dict[tuple[int, ...], tuple[float, Any]],
    moves: dict[tuple[int, ...], dict[int, Deployment]],
    work: list[int],
    slot: int,
) -> dict[tuple[int, ...], tuple[float, Any]]:
    earned = [utility_of(job, slot) for job in instance.jobs]
    following: dict[tuple[int, ...], tuple[float, Any]] = {}
    for progress, (value, path) in states.items():
        for made, chosen in moves.items():
            after = tuple(min(w, p + m) for w, p, m in zip(work, progress, made, strict=True))
            gain = sum(
                f
                for f, w, p, q in zip(earned, work, progress, after, strict=True)
                if q == w and p < w
            )
            if after not in following or value + gain > following[after][0]:
                following[after] = (value + gain, (path, slot, chosen))
    return following


def _rows(instance: Any, path: Any, work: list[int]) -> dict[str, list[dict[str, Any]]]:
    steps = []
    while path is not None:
        path, slot, chosen = path
        steps.append((slot, chosen))
    rows: dict[str, list[dict[str, Any]]] = {}
    for i, job in enumerate(instance.jobs):
        done = 0
        own = []
        for slot, chosen in reversed(steps):
            y, z = chosen.get(i, ((0,), (0,)))
            if sum(y) and done < work[i]:
                done += sum(y)
                own.append(
                    {
                        "from": slot,
                        "to": slot,
                        "workers": {
                            s.name: n for s, n in zip(instance.worker_servers, y, strict=True) if n
                        },
                        "ps": {s.name: n for s, n in zip(instance.ps_servers, z, strict=True) if n},
                    }
                )
        if done >= work[i]:
            rows[job.name] = own
    return rows


def capacity_binds(instance: Any, value: float) -> bool:
    """Whether the jobs together earn less than each alone on the cluster (or nothing) would."""
    alone = sum(max(0.0, optimum(instance.with_jobs((job,))).value) for job in instance.jobs)
    return value < alone - 1e-9
