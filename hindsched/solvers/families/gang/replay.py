"""Whole traces replayed by compiled policies: what a scheduler in use would have done, exactly.

A replay is event by event and learns of jobs in order of submission; it decides what the online
algorithm of the same name decides through the simulator, without the simulator's bookkeeping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.decimals import LARGEST_INTEGER, exactly
from hindsched.instances.gang.instance import KINDS, GangInstance, split_formulation
from hindsched.json_types import Keywords
from hindsched.solutions.gang.solution import GangRows, GangSolution, pool_rows
from hindsched.solvers.kernels.gang.preemption import LEAST_ATTAINED, SHORTEST_REMAINING, run_ranks
from hindsched.solvers.kernels.gang.queueing import (
    BACKFILLING,
    BLOCKING,
    SKIPPING,
    Cluster,
    cluster_sizes,
    run_queue,
)
from hindsched.solvers.kernels.gang.reservations import run_conservative

THRESHOLD_GPU_SECONDS = 3600.0
"""Attained service at which `las` takes a job out of its first queue."""
CONSERVATIVE = -1
MOST_EXPECTED = 2**50
"""Slots that a policy expects a job to run at most."""
ESTIMATES = {"estimates": 1.0}
GREEDY = ("wspt", "sjf", "smallest-first", "fifo-skip", "easy")
"""Policies that are replayed for schedules in one piece."""
PAUSING = ("srtf", "las")
MOST_GPU_CHANGES = 50_000_000
"""Events x jobs up to which elastic jobs are replayed."""
Key = Callable[[Ints, Ints, Floats], Any]
"""``key(duration, gpus, weight)``: order in the queue, smaller first, equal ones by submission."""


class Policy(NamedTuple):
    """A scheduler in use."""

    key: Key  # order in the queue
    way: int  # how the queue is gone through, or how jobs are ranked
    clairvoyant: bool = True  # whether it knows durations
    preemptive: bool = False  # whether it pauses jobs
    settings: dict[str, float] = {}  # noqa: RUF012 - names and defaults, which nobody changes


def _submission(duration: Ints, gpus: Ints, weight: Floats) -> Floats:
    return np.zeros(gpus.size)


POLICIES = {
    "fifo": Policy(_submission, BLOCKING, clairvoyant=False),
    "fifo-skip": Policy(_submission, SKIPPING, clairvoyant=False),
    "sjf": Policy(lambda duration, gpus, weight: duration.astype(float), SKIPPING),
    "smallest-first": Policy(lambda duration, gpus, weight: 1.0 * duration * gpus, SKIPPING),
    "wspt": Policy(lambda duration, gpus, weight: duration * gpus / weight, SKIPPING),
    "easy": Policy(_submission, BACKFILLING, settings=ESTIMATES),
    "conservative": Policy(_submission, CONSERVATIVE, settings=ESTIMATES),
    "srtf": Policy(_submission, SHORTEST_REMAINING, preemptive=True),
    "las": Policy(
        _submission, LEAST_ATTAINED, clairvoyant=False, preemptive=True,
        settings={"threshold_gpu_seconds": THRESHOLD_GPU_SECONDS},
    ),
}  # fmt: skip


def replay(
    instance: GangInstance, policy: str, formulation: str | None = None, **settings: object
) -> GangSolution:
    """Replay all jobs of an instance by one of `POLICIES`, equal submissions in the file's order.

    By default the strictest kind that allows the schedule judges it. Settings are ``estimates`` (a
    factor of at least 1 on the durations that ``easy`` and ``conservative`` expect) and
    ``threshold_gpu_seconds`` (of ``las``).
    """
    if policy not in POLICIES:
        raise InputError("policy", policy, f"must be one of {', '.join(POLICIES)}")
    chosen = POLICIES[policy]
    values = policy_settings(policy, settings)
    order = np.argsort(instance.submits, kind="stable")
    submit, duration, gpus = (
        column[order] for column in (instance.submits, instance.durations, instance.job_gpus)
    )
    sizes = cluster_sizes(instance)
    if formulation is None:
        formulation = KINDS[1] if chosen.preemptive else KINDS[0]
    if chosen.preemptive:
        gpu_seconds = values.get("threshold_gpu_seconds", 0.0)
        threshold = threshold_slots(gpu_seconds, instance.slot_seconds)
        begun, places = run_ranks(sizes, submit, duration, gpus, chosen.way, threshold)
        job, start, end = begun.T
        rows = pool_rows(order[job], start, end, gpus[job])
        if instance.is_consolidated:
            row, server, held = places.T
            rows = GangRows(rows.job, rows.start, rows.end, rows.gpus, row, server, held)
        return GangSolution(instance, rows, formulation)
    expected = expected_slots(duration, values.get("estimates", 1.0))
    if chosen.way == CONSERVATIVE:
        start, cluster = run_conservative(sizes, submit, duration, gpus, expected)
    else:
        key = chosen.key(duration, gpus, instance.weights[order])
        start, cluster = run_queue(sizes, submit, duration, gpus, key, expected, chosen.way)
    rows = started_rows(instance, order, start, cluster)
    return GangSolution(instance, rows, formulation)


def started_rows(instance: GangInstance, order: Ints, start: Ints, cluster: Cluster) -> GangRows:
    """Rows of jobs that run in one piece from `start` on; `order` is where each job stands."""
    end = start + instance.durations[order]
    rows = pool_rows(order, start, end, instance.job_gpus[order])
    if not instance.is_consolidated:
        return rows
    row = np.repeat(np.arange(order.size), cluster.number)
    first = np.cumsum(cluster.number) - cluster.number
    at = cluster.offset[row] + np.arange(row.size) - first[row]
    places = (row, cluster.server[at], cluster.held[at])
    return GangRows(rows.job, rows.start, rows.end, rows.gpus, *places)


def policy_settings(name: str, settings: Keywords) -> dict[str, float]:
    """A policy's settings with its defaults; `InputError` for an unknown or impossible one."""
    known = dict(POLICIES[name].settings)
    for key, value in settings.items():
        if key not in known:
            allowed = ", ".join(known) or "none"
            raise InputError(f"set.{key}", value, f"{name} has the settings: {allowed}")
        least = 1.0 if key == "estimates" else 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise InputError(f"set.{key}", value, f"must be a number of at least {least:g}")
        if not value <= 1e12:
            raise InputError(f"set.{key}", value, "must be at most 1e12")
        known[key] = float(value)
    return known


def expected_slots(duration: Ints, factor: float) -> Ints:
    """Durations that a policy expects: times a factor, a decimal, rounded up to slots."""
    if factor == 1.0:
        return duration
    times = exactly(factor)
    fits = int(duration.max(initial=0)) * times.numerator < LARGEST_INTEGER
    found = -(-duration.astype(np.int64 if fits else object) * times.numerator // times.denominator)
    return np.minimum(found, MOST_EXPECTED).astype(np.int64)


def threshold_slots(gpu_seconds: float, slot_seconds: float) -> int:
    """A threshold of attained service in whole GPU-slots, rounded up."""
    return math.ceil(exactly(gpu_seconds) / exactly(slot_seconds))


def incumbents(instance: GangInstance, formulation: str) -> Iterator[GangSolution]:
    """Feasible schedules of a formulation, cheap to make."""
    kind, goal = split_formulation(formulation)
    for name in GREEDY:
        yield replay(instance, name, formulation)
    if goal == "makespan":
        area = (instance.durations * instance.job_gpus).astype(float)
        for key in (-instance.durations.astype(float), -area, -instance.job_gpus - area / 1e18):
            yield in_order(instance, key, formulation)
    elif goal == "deadlines":
        due: Floats = np.where(instance.deadlines >= 0, instance.deadlines, np.inf)
        latest = due - instance.durations
        for key in (due, latest, np.where(latest < instance.submits, np.inf, latest)):
            yield in_order(instance, key, formulation)
    if kind != "non-preemptive":
        for name in PAUSING:
            yield replay(instance, name, formulation)
    few = len(instance.jobs) ** 2 * 4 <= MOST_GPU_CHANGES
    if kind == "elastic" and few and not instance.is_consolidated:
        yield shortest_remaining_work(instance, formulation)


def in_order(instance: GangInstance, key: Floats, formulation: str) -> GangSolution:
    """Start whatever fits at every event, smallest key first."""
    order = np.argsort(instance.submits, kind="stable")
    columns = (instance.submits, instance.durations, instance.job_gpus)
    submit, duration, gpus = (column[order] for column in columns)
    sizes = cluster_sizes(instance)
    start, cluster = run_queue(sizes, submit, duration, gpus, key[order], duration, SKIPPING)
    return GangSolution(instance, started_rows(instance, order, start, cluster), formulation)


def shortest_remaining_work(instance: GangInstance, formulation: str) -> GangSolution:
    """Elastic jobs by remaining work, each on as many GPUs as it can use and are left."""
    order = np.argsort(instance.submits, kind="stable")
    work = (instance.durations * instance.job_gpus)[order]
    most = instance.most_gpus[order]
    job, start, end, gpus = _elastic(instance.submits[order], work, most, instance.total_gpus)
    return GangSolution(instance, pool_rows(order[job], start, end, gpus), formulation)


@njit(cache=True)
def _elastic(submit: Any, work: Any, most: Any, room: int) -> Any:
    jobs = submit.size
    left = work.copy()
    active = np.empty(jobs, dtype=np.int64)
    count = arrived = 0
    now = np.int64(0)
    rows = [(np.int64(0), np.int64(0), np.int64(0), np.int64(0))]
    rows.pop()
    while arrived < jobs or count > 0:
        if count == 0:
            now = max(now, submit[arrived])
        while arrived < jobs and submit[arrived] <= now:
            active[count] = arrived
            count += 1
            arrived += 1
        ranked = active[:count][np.argsort(left[active[:count]], kind="mergesort")]
        until = submit[arrived] if arrived < jobs else np.int64(2**62)
        free, used = room, 0
        for job in ranked:
            gpus = min(free, most[job])
            if gpus == 0:
                break
            free -= gpus
            used += 1
            until = min(until, now + max(np.int64(1), left[job] // gpus))
        free = room
        for index in range(used):
            job = ranked[index]
            gpus = min(free, most[job], max(np.int64(1), -(-left[job] // (until - now))))
            free -= gpus
            left[job] -= gpus * (until - now)
            rows.append((job, now, until, gpus))
        kept = 0
        for index in range(count):
            if left[active[index]] > 0:
                active[kept] = active[index]
                kept += 1
        count = kept
        now = until
    table = np.array(rows)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
