"""Whole traces replayed by compiled policies: what a scheduler in use would have done, exactly.

A replay learns of jobs in order of submission and decides what the online algorithm of the same
name decides through the simulator, without the simulator's bookkeeping.
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
from hindsched.solvers.kernels.gang import event_queue
from hindsched.solvers.kernels.stable_order import stable_order

THRESHOLD_GPU_SECONDS = 3600.0
"""Attained service at which `las` takes a job out of its first queue."""
MOST_EXPECTED = 2**50
"""Slots that a policy expects a job to run at most."""
ESTIMATES = {"estimates": 1.0}
GREEDY = ("wspt", "sjf", "smallest-first", "fifo-skip", "easy")
"""Policies that are replayed for schedules in one piece."""
PAUSING = ("srtf", "las")
MOST_ELASTIC = 3_500
"""Jobs up to which elastic ones are replayed."""
Key = Callable[[Ints, Ints, Floats], Any]
"""``key(duration, gpus, weight)``: order in the queue, smaller first, equal ones by submission."""


class QueuePolicy(NamedTuple):
    """A scheduler in use."""

    key: Key  # order in the queue
    discipline: int  # how the queue is gone through, or how jobs are ranked
    clairvoyant: bool = True  # whether it knows durations
    preemptive: bool = False  # whether it pauses jobs
    settings: dict[str, float] = {}  # noqa: RUF012 - names and defaults, which nobody changes


def _submission(duration: Ints, gpus: Ints, weight: Floats) -> Floats:
    return np.zeros(gpus.size)


POLICIES = {
    "fifo": QueuePolicy(_submission, event_queue.BLOCKING, clairvoyant=False),
    "fifo-skip": QueuePolicy(_submission, event_queue.SKIPPING, clairvoyant=False),
    "sjf": QueuePolicy(lambda duration, gpus, weight: duration, event_queue.SKIPPING),
    "smallest-first": QueuePolicy(
        lambda duration, gpus, weight: duration * gpus, event_queue.SKIPPING
    ),
    "wspt": QueuePolicy(
        lambda duration, gpus, weight: duration * gpus / weight, event_queue.SKIPPING
    ),
    "easy": QueuePolicy(_submission, event_queue.BACKFILLING, settings=ESTIMATES),
    "conservative": QueuePolicy(_submission, event_queue.RESERVING, settings=ESTIMATES),
    "srtf": QueuePolicy(_submission, event_queue.SHORTEST_REMAINING, preemptive=True),
    "las": QueuePolicy(
        _submission, event_queue.LEAST_ATTAINED, clairvoyant=False, preemptive=True,
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
    key = chosen.key(instance.durations, instance.job_gpus, instance.weights)
    expected = expected_slots(instance.durations, values.get("estimates", 1.0))
    gpu_seconds = values.get("threshold_gpu_seconds", 0.0)
    threshold = threshold_slots(gpu_seconds, instance.slot_seconds)
    if formulation is None:
        formulation = KINDS[1] if chosen.preemptive else KINDS[0]
    return _replay_queue(instance, formulation, key, expected, chosen.discipline, threshold)


def replay_by_key(instance: GangInstance, key: Floats, formulation: str) -> GangSolution:
    """Start whatever fits at every event, smallest key first."""
    return _replay_queue(instance, formulation, key, instance.durations, event_queue.SKIPPING, 0)


def _replay_queue(
    instance: GangInstance,
    formulation: str,
    key: Floats,
    expected: Ints,
    discipline: int,
    threshold: int,
) -> GangSolution:
    """The schedule of a policy that expects jobs to run so long."""
    order = np.argsort(instance.submits, kind="stable")
    state = event_queue.cluster_state(instance, order.size, discipline)
    state.gpus[:], state.expected[:] = instance.job_gpus[order], expected[order]
    state.key[:], state.allowed[:] = key[order], instance.allowed_kinds[order]
    columns = instance.submits[order], instance.durations[order]
    runs, places = event_queue.play(state, *columns, discipline, threshold)
    job, start, end = runs.T
    row, server, gpus = places.T
    held = np.zeros((job.size, state.sizes.size * instance.names_places), dtype=np.int64)
    if instance.names_places:
        held[row, server] = gpus
    rows = GangRows(order[job], start, end, state.gpus[job], held)
    return GangSolution(instance, rows, formulation)


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
    slots = -(-duration.astype(np.int64 if fits else object) * times.numerator // times.denominator)
    return np.minimum(slots, MOST_EXPECTED).astype(np.int64)


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
            yield replay_by_key(instance, key, formulation)
    elif goal == "deadlines":
        due: Floats = np.where(instance.deadlines >= 0, instance.deadlines, np.inf)
        latest = due - instance.durations
        for key in (due, latest, np.where(latest < instance.submits, np.inf, latest)):
            yield replay_by_key(instance, key, formulation)
    if kind != "non-preemptive":
        for name in PAUSING:
            yield replay(instance, name, formulation)
    few = len(instance.jobs) <= MOST_ELASTIC
    if kind == "elastic" and few and not instance.names_places:
        yield shortest_remaining_work(instance, formulation)


def shortest_remaining_work(instance: GangInstance, formulation: str) -> GangSolution:
    """Elastic jobs by remaining work, each on as many GPUs as it can use and are left."""
    order = np.argsort(instance.submits, kind="stable")
    work = (instance.durations * instance.job_gpus)[order]
    most = instance.most_gpus[order]
    job, start, end, gpus = _elastic(instance.submits[order], work, most, instance.total_gpus).T
    return GangSolution(instance, pool_rows(order[job], start, end, gpus), formulation)


@njit(cache=True)
def _elastic(submit: Any, left: Any, most: Any, room: int) -> Any:
    """Rows (job, start, end, GPUs); the last slot of a job may be one that it does not fill."""
    rows = [(np.int64(0), np.int64(0), np.int64(0), np.int64(0))]
    now = np.int64(0)
    while (left > 0).any():
        present = np.flatnonzero((left > 0) & (submit <= now))
        coming = submit[submit > now]
        until = coming.min() if coming.size else np.int64(2**62)
        ranked = present[stable_order(left[present])]
        free, used = room, 0
        while used < ranked.size and free > 0:
            job = ranked[used]
            gpus = min(free, most[job])
            free -= gpus
            used += 1
            until = min(until, now + max(np.int64(1), left[job] // gpus))
        free = room
        for job in ranked[:used]:
            gpus = min(free, most[job], max(np.int64(1), -(-left[job] // (until - now))))
            free -= gpus
            left[job] -= gpus * (until - now)
            rows.append((job, now, until, gpus))
        now = until
    return np.array(rows)[1:]
