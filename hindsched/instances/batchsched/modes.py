"""The ways in which a batchsched job can run: worker type, PS type, q, workers and duration.

The exact programs and the pricing oracles share them, the brute force of the tests does not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.modes import NEVER, MinibatchTime, Modes, least_durations


def minibatch_times(instance: BatchschedInstance, job: BatchschedJob) -> Floats:
    """Slots per mini-batch, shape (worker types, PS types or 1, q in 0..1, most workers).

    The most workers are the job's chunks, or what the empty cluster holds of any type.
    """
    v = np.array(job.minibatch_slots, dtype=float)[:, None, None, None]
    seconds = 2.0 * (job.gradient_mb * 8.0 / instance.worker_bandwidth)
    transfer = (seconds / instance.slot_seconds)[:, None, None, None]
    far = np.array([1.0, 0.0])[None, None, :, None]
    counts = np.arange(1, min(job.chunks, instance.most_workers) + 1)
    if instance.has_ps:
        update = np.array(job.update_slots, dtype=float)[None, :, None, None]
        times = v + update + transfer * far
        return np.broadcast_to(times, (*times.shape[:3], len(counts)))
    share = ((counts - 1) / counts)[None, None, None, :]
    assert job.reduce_slots is not None
    reduced: Floats = v + (float(job.reduce_slots) + transfer * far) * share
    return reduced


def durations(instance: BatchschedInstance, job: BatchschedJob) -> Ints:
    """L of every combination, exactly, shape as `minibatch_times`; from 1 to `NEVER`."""

    def exact(m: int, p: int, q: int) -> MinibatchTime:
        return instance.exact_time(job, m, p, bool(q))

    times = minibatch_times(instance, job)
    return least_durations(job.total_minibatches, times, exact, NEVER)


def modes(instance: BatchschedInstance, job: BatchschedJob) -> Modes:
    """Modes worth considering for a job.

    Left out, because a kept mode is never worse at any non-negative prices and any residual:

    - N workers when fewer workers of the same (worker type, PS type, q) take the same duration;
    - Ring-AllReduce over several servers with one worker;
    - a PS type when another takes no longer, needs no more and has no less bandwidth;
    - workers beyond what the empty cluster (for q = 1: any one server) holds;
    - those whose PSs no server holds, together with the workers that must stand beside them.
    """
    length = durations(instance, job)
    num_n = length.shape[3]
    if not instance.has_ps:
        length[:, :, 0, 0] = NEVER
    keep = np.ones(length.shape, dtype=bool)
    least = np.minimum.accumulate(length, axis=3)
    keep[..., 1:] = length[..., 1:] < least[..., :-1]
    room = instance.worker_room
    counts = np.arange(1, num_n + 1)
    keep[:, :, 0, :] &= (counts <= room.sum(axis=0)[:, None])[:, None, :]
    keep[:, :, 1, :] &= (counts <= room.max(axis=0)[:, None])[:, None, :]
    keep &= length < NEVER
    if instance.has_ps:
        keep &= instance.hosting.fewest_ps(num_n) < NEVER
    for better, p in instance.ps_replacements:
        keep[:, p] &= length[:, better] > length[:, p]
    m, not_q, ps, n = np.nonzero(keep[:, :, ::-1].transpose(0, 2, 1, 3))
    return Modes.of(m, ps, 1 - not_q, n + 1, length[m, ps, 1 - not_q, n])


def fewest_ps(instance: BatchschedInstance, table: Modes) -> Ints:
    """PSs that the best host of each mode needs while nothing else runs."""
    every = instance.hosting.fewest_ps(int(table.workers.max(initial=0)))
    found: Ints = every[table.worker_type, table.ps_type, table.one_server, table.workers - 1]
    return found


def slot_modes(instance: BatchschedInstance, job: BatchschedJob) -> tuple[Modes, list[Fraction]]:
    """What a job may do in one slot, as modes of one slot, and the mini-batches of each."""
    times = minibatch_times(instance, job).shape
    room = instance.worker_room
    most = {0: room.sum(axis=0), 1: room.max(axis=0)}
    found: list[tuple[int, int, int, int, int]] = []
    rates: list[Fraction] = []
    for m, q, p in product(range(times[0]), (1, 0), range(times[1])):
        time = instance.exact_time(job, m, p, bool(q))
        for count in range(1 if instance.has_ps or q else 2, min(times[3], int(most[q][m])) + 1):
            found.append((m, p, q, count, 1))
            rates.append(count / time.of(count))
    return Modes.of(*np.array(found, dtype=np.int64).reshape(-1, 5).T), rates
