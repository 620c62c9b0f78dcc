"""Whole traces replayed by compiled policies: what a scheduler in use would have done, exactly.

A replay is event by event and learns of jobs in order of submission; it decides what the online
algorithm of the same name decides through the simulator, without the simulator's bookkeeping.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.decimals import LARGEST_INTEGER, exactly
from hindsched.instances.gang.instance import KINDS, GangInstance
from hindsched.json_types import Keywords
from hindsched.solutions.gang.rows import GangRows, pool_rows
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.kernels.gang.placing import Cluster, cluster_sizes
from hindsched.solvers.kernels.gang.preemption import LEAST_ATTAINED, SHORTEST_REMAINING, run_ranks
from hindsched.solvers.kernels.gang.queueing import BACKFILLING, BLOCKING, SKIPPING, run_queue
from hindsched.solvers.kernels.gang.reservations import run_conservative

THRESHOLD_GPU_SECONDS = 3600.0
"""Attained service at which `las` takes a job out of its first queue."""
CONSERVATIVE = -1
ESTIMATES = {"estimates": 1.0}
Key = Callable[[Ints, Ints, Floats], Any]
"""``key(duration, gpus, weight)``: order in the queue, smaller first, equal ones by submission."""


class Policy(NamedTuple):
    """A scheduler in use.

    Attributes
    ----------
    key : callable
        Order in the queue.
    way : int
        How the queue is gone through, or how jobs are ranked.
    clairvoyant : bool
        Whether it knows durations.
    preemptive : bool
        Whether it pauses jobs.
    settings : dict
        Names and defaults of its settings.
    """

    key: Key
    way: int
    clairvoyant: bool = True
    preemptive: bool = False
    settings: dict[str, float] = {}  # noqa: RUF012 - nobody changes it


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
    """Replay all jobs of an instance by a policy.

    Parameters
    ----------
    instance : GangInstance
        The jobs; equal submissions are in the file's order.
    policy : str
        One of `POLICIES`.
    formulation : str, optional
        By which the schedule is judged; by default the strictest kind that allows it.
    **settings
        ``estimates`` (factor of at least 1 on the durations that ``easy`` and ``conservative``
        expect), ``threshold_gpu_seconds`` (of ``las``).

    Raises
    ------
    InputError
        For an unknown policy or setting.
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
        history = run_ranks(sizes, submit, duration, gpus, chosen.way, threshold)
        job, start, end = history.rows.T
        rows = pool_rows(order[job], start, end, gpus[job])
        if instance.is_consolidated:
            row, server, held = history.places.T
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
    """Durations that a policy expects: times a factor, a decimal, rounded up to slots.

    >>> expected_slots(np.array([10, 11]), 1.1)
    array([11, 13])
    """
    if factor == 1.0:
        return duration
    times = exactly(factor)
    fits = int(duration.max(initial=0)) * times.numerator < LARGEST_INTEGER
    found = -(-duration.astype(np.int64 if fits else object) * times.numerator // times.denominator)
    return np.minimum(found, LARGEST_INTEGER).astype(np.int64)


def threshold_slots(gpu_seconds: float, slot_seconds: float) -> int:
    """A threshold of attained service in whole GPU-slots.

    >>> threshold_slots(0.9, 0.3)
    3
    """
    return math.ceil(exactly(gpu_seconds) / exactly(slot_seconds))
