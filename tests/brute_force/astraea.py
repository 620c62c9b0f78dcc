"""Brute force over raw decisions for tiny astraea instances.

For every job all types, first slots, workers by server and PSs by server that satisfy (3e)-(3n) by
themselves are enumerated as they stand; a depth-first search tries every combination of the jobs'
schedules against (3a)-(3d). No code is shared with the package but the instance's plain fields.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Placing = tuple[float, dict[tuple[str, str, str], int], dict[str, Any]]
"""Slots for all work, what the placement takes, and its row without slots."""


@dataclass(frozen=True)
class Optimum:
    """The optimum and one schedule that attains it, as rows of the solution file by job."""

    value: float
    assignments: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Choice:
    """One job's schedule: value, slots, and what it takes of each (role, type, server)."""

    value: float
    first: int
    last: int
    takes: dict[tuple[str, str, str], int]
    row: dict[str, Any]


def typed(value: Any, single: str) -> dict[str, Any]:
    """A typed number as a mapping; a bare one belongs to the single type."""
    return dict(value) if isinstance(value, dict) else {single: value}


def value_of(instance: Any, job: Any, completion: int) -> float:
    """f at a completion, from the formulas of the file format."""
    x = completion - (job.arrival if instance.utility_origin == "arrival" else 0)
    u = job.utility
    if u.kind == "linear":
        return u.slope * x + u.intercept
    return (u.scale / x) ** u.exponent


def placings(instance: Any, job: Any) -> Iterator[Placing]:
    """Every placement of one job alone on the cluster, with the slots that all its work takes."""
    names = [server.name for server in instance.servers]
    b_w = typed(instance.worker_bandwidth_mbps, "worker")
    b_p = typed(instance.ps_bandwidth_mbps, "ps")
    train = typed(job.minibatch_slots, "worker")
    update = typed(job.update_slots, "ps")
    for w, p in itertools.product(b_w, b_p):
        most_w = [typed(server.workers, "worker")[w] for server in instance.servers]
        most_p = [typed(server.ps, "ps")[p] for server in instance.servers]
        for y in itertools.product(*(range(n + 1) for n in most_w)):
            if not 1 <= sum(y) <= job.chunks:  # (3e)
                continue
            for z in itertools.product(*(range(n + 1) for n in most_p)):
                if sum(z) < 1:  # (3g)
                    continue
                if any(
                    z[s] > 0 and (sum(y) - y[s]) * b_w[w] > z[s] * b_p[p] + 1e-9
                    for s in range(len(names))
                ):  # (3i)
                    continue
                together = sum(1 for s in range(len(names)) if y[s] or z[s]) == 1  # (3j)
                per_batch = train[w] + update[p]
                if not together:
                    per_batch += 2 * job.gradient_mb * 8 / b_w[w] / instance.slot_seconds
                work = job.epochs * job.chunks * job.minibatches
                takes = {("w", w, names[s]): y[s] for s in range(len(names)) if y[s]}
                takes |= {("p", p, names[s]): z[s] for s in range(len(names)) if z[s]}
                row: dict[str, Any] = {
                    "workers": {names[s]: y[s] for s in range(len(names)) if y[s]},
                    "ps": {names[s]: z[s] for s in range(len(names)) if z[s]},
                }
                if len(b_w) > 1:
                    row["worker_type"] = w
                if len(b_p) > 1:
                    row["ps_type"] = p
                yield work * per_batch / sum(y), takes, row


def choices(instance: Any, job: Any) -> list[Choice]:
    """Every schedule of one job alone on the cluster, the best first."""
    found = []
    for slots, takes, row in placings(instance, job):
        d = max(1, math.ceil(slots - 1e-9))  # (3k)
        for first in range(job.arrival + 1, instance.horizon - d + 2):
            window = {"from": first, "to": first + d - 1, **row}
            value = value_of(instance, job, first + d - 1)
            found.append(Choice(value, first, first + d - 1, takes, window))
    return sorted(found, key=lambda choice: -choice.value)


def capacities(instance: Any) -> dict[tuple[str, str, str], int]:
    """Workers and PSs of each type on each server."""
    capacity: dict[tuple[str, str, str], int] = {}
    for server in instance.servers:
        for w, n in typed(server.workers, "worker").items():
            capacity["w", w, server.name] = n
        for p, n in typed(server.ps, "ps").items():
            capacity["p", p, server.name] = n
    return capacity


def optimum(instance: Any, must_complete: bool = False) -> Optimum | None:
    """Best total revenue; None if every job must complete and they cannot."""
    capacity = capacities(instance)
    options = [choices(instance, job) for job in instance.jobs]
    if not must_complete:
        options = [[choice for choice in found if choice.value > 0] for found in options]
    hopes = [0.0]
    for found in reversed(options):
        top = found[0].value if found else -math.inf
        hopes.append(hopes[-1] + (top if must_complete else max(0.0, top)))
    hopes.reverse()
    best: list[Any] = [-math.inf, None]
    used: dict[tuple[Any, int], int] = {}

    def fits(choice: Choice) -> bool:
        return all(
            used.get((key, t), 0) + n <= capacity[key]
            for key, n in choice.takes.items()
            for t in range(choice.first, choice.last + 1)
        )

    def book(choice: Choice, sign: int) -> None:
        for key, n in choice.takes.items():
            for t in range(choice.first, choice.last + 1):
                used[key, t] = used.get((key, t), 0) + sign * n

    def extend(i: int, value: float, chosen: list[Choice | None]) -> None:
        if i == len(options):
            if value > best[0]:
                best[0], best[1] = value, list(chosen)
            return
        for choice in options[i]:
            if value + choice.value + hopes[i + 1] <= best[0]:
                break
            if fits(choice):
                book(choice, 1)
                extend(i + 1, value + choice.value, [*chosen, choice])
                book(choice, -1)
        if not must_complete and value + hopes[i + 1] > best[0]:
            extend(i + 1, value, [*chosen, None])

    extend(0, 0.0, [])
    if best[1] is None:
        return None
    rows = {
        job.name: [choice.row]
        for job, choice in zip(instance.jobs, best[1], strict=True)
        if choice is not None
    }
    return Optimum(best[0], rows)


def capacity_binds(instance: Any, value: float) -> bool:
    """Whether the jobs together earn less than each alone on the cluster (or nothing) would."""
    alone = 0.0
    for job in instance.jobs:
        found = choices(instance, job)
        alone += max(0.0, found[0].value) if found else 0.0
    return value < alone - 1e-9
