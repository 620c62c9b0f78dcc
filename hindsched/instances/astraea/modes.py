"""The ways in which an astraea job can run: types, zeta, workers and duration.

The exact programs and the pricing oracles share them, the brute force of the tests does not.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.modes import MinibatchTime, Modes, least_durations, ps_for

NEVER = 10**12  # duration that stands for all longer ones


def durations(instance: AstraeaInstance, job: AstraeaJob) -> Ints:
    """Duration d of every combination, exactly, shape (W, P, zeta, n), from 1 to `NEVER` slots.

    The number of workers goes from 1 to `most_workers`.
    """

    def exact(w: int, p: int, zeta: int) -> MinibatchTime:
        return instance.exact_time(job, w, p, bool(zeta))

    once = instance.minibatch_times(job)[..., None]
    times = np.broadcast_to(once, (*once.shape[:3], most_workers(instance, job)))
    return least_durations(job.total_minibatches, times, exact, NEVER)


def most_workers(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Most workers the job can have: its chunks, as far as one type's workers go; at least 1."""
    return min(job.chunks, instance.most_workers)


def slot_modes(instance: AstraeaInstance, job: AstraeaJob) -> tuple[Modes, list[Fraction]]:
    """What a job may do in one slot, as modes of one slot, and the mini-batches of each."""
    table = modes(instance, job, every_count=True)
    rates = [
        count / instance.exact_time(job, w, p, bool(q)).of(count)
        for w, p, q, count, _ in table.tuples()
    ]
    return replace(table, duration=np.ones_like(table.duration)), rates


def modes(instance: AstraeaInstance, job: AstraeaJob, *, every_count: bool = False) -> Modes:
    """Modes worth considering, in the order that breaks ties: types, centralised first, workers.

    Left out, because a kept mode is never worse at any non-negative prices and any residual: D
    workers when fewer of the same types and placement take as long (unless `every_count`, as the
    printed loops have it); more workers than the empty cluster (centralised: any one server with a
    PS) holds; more than the PSs of any one host serve.
    """
    length = durations(instance, job)
    keep = np.ones(length.shape, dtype=bool)
    if not every_count:
        least = np.minimum.accumulate(length, axis=3)
        keep[..., 1:] = length[..., 1:] < least[..., :-1]
    counts = np.arange(1, length.shape[3] + 1)
    for w in range(length.shape[0]):
        workers = instance.worker_count[:, w]
        for p in range(length.shape[1]):
            ps = instance.ps_count[:, p]
            together = int(workers[ps > 0].max(initial=0))
            keep[w, p, 1] &= counts <= together
            hosted = np.minimum(counts[None, :] - 1, workers[:, None])
            needed = ps_for(counts[None, :] - hosted, instance.ps_ratio[w, p])
            served = (needed <= ps[:, None]).any(axis=0)
            keep[w, p, 0] &= served & (counts <= workers.sum())
    wt, pt, not_together, n = np.nonzero(keep[:, :, ::-1])
    zeta = 1 - not_together
    return Modes.of(wt, pt, zeta, n + 1, length[wt, pt, zeta, n])
