"""The ways in which an astraea job can run: types, zeta, workers and duration.

The exact programs and the pricing oracles share them, the brute force of the tests does not.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.base import ROUNDING_TOLERANCE
from hindsched.instances.modes import Modes

NEVER = 10**12
"""Duration that stands for all longer ones."""


def durations(instance: AstraeaInstance, job: AstraeaJob) -> Ints:
    """Duration d of every combination, shape (W, P, zeta, n), from 1 to `NEVER` slots.

    The number of workers goes from 1 to `most_workers`.
    """
    counts = np.arange(1, most_workers(instance, job) + 1)
    with np.errstate(over="ignore"):
        slots = job.total_minibatches * instance.minibatch_times(job)[..., None] / counts
    whole = np.ceil(slots - ROUNDING_TOLERANCE)
    return np.clip(whole, 1, NEVER).astype(np.int64)


def most_workers(instance: AstraeaInstance, job: AstraeaJob) -> int:
    """Most workers the job can have: its chunks, as far as one type's workers go; at least 1."""
    return max(1, min(job.chunks, int(instance.worker_count.sum(axis=0).max())))


def modes(instance: AstraeaInstance, job: AstraeaJob, *, every_count: bool = False) -> Modes:
    """Modes worth considering, in the order that breaks ties: types, centralised first, workers.

    Parameters
    ----------
    instance : AstraeaInstance
        The cluster.
    job : AstraeaJob
        The job.
    every_count : bool
        Keep every number of workers, as the printed loops do.

    Notes
    -----
    Left out, because a kept mode is never worse at any non-negative prices and any residual: D
    workers when fewer of the same types and placement take as long; more workers than the empty
    cluster (centralised: any one server with a PS) holds; more than the PSs of any one host serve.
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
            ratio = instance.worker_bandwidth[w] / instance.ps_bandwidth[p]
            hosted = np.minimum(counts[None, :] - 1, workers[:, None])
            needed = ps_needed(counts[None, :] - hosted, ratio)
            served = (needed <= ps[:, None]).any(axis=0)
            keep[w, p, 0] &= served & (counts <= workers.sum())
    wt, pt, not_together, n = np.nonzero(keep[:, :, ::-1])
    zeta = 1 - not_together
    return Modes.of(wt, pt, zeta, n + 1, length[wt, pt, zeta, n])


def ps_needed(elsewhere: Ints, ratio: float) -> Ints:
    """(3i): PSs of a host whose bandwidth covers `elsewhere` workers; at least one."""
    return np.maximum(1, np.ceil(elsewhere * ratio - ROUNDING_TOLERANCE)).astype(np.int64)
