"""What people ask of a schedule: completion times, waits, slowdowns, utilisation, deadlines."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Bools, Ints
from hindsched.instances.gang.instance import GangInstance
from hindsched.json_types import JsonObject

SHORT_SECONDS = 10.0
"""A bounded slowdown counts shorter jobs as if they ran so long (Feitelson et al., 1997)."""


def gang_metrics(
    instance: GangInstance, starts: Ints, completions: Ints, used_gpu_slots: int
) -> JsonObject:
    """Metrics over the jobs that complete; times in seconds, None where there is nothing to count.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    starts, completions : ndarray of int, shape (jobs,)
        Time of the first start and last slot, -1 for none.
    used_gpu_slots : int
        GPU-slots held by all jobs.

    Returns
    -------
    dict
        ``jobs, completed, mean_jct, weighted_mean_jct, p50_jct, p95_jct, p99_jct, mean_wait``
        (submission to first start), ``makespan`` (last completion since the trace's start),
        ``bounded_slowdown`` (mean of ``max(1, JCT / max(duration, 10 s))``), ``utilisation``
        (GPU-seconds held over those from the first submission to the last completion),
        ``deadlines``, ``deadlines_met`` and ``users``, a row a user.
    """
    seconds = float(instance.slot_seconds)
    done = completions >= 0
    jct = (completions - instance.submits)[done] * seconds
    weights = instance.weights[done]
    due = instance.deadlines >= 0
    last = int(completions.max(initial=0))
    first = int(instance.submits.min()) if done.any() else 0
    room = instance.total_gpus * (last - first)
    slowdown = jct / np.maximum(instance.durations[done] * seconds, SHORT_SECONDS)
    waits = (starts - instance.submits)[done] * seconds
    some = bool(done.any())
    p50, p95, p99 = np.percentile(jct, [50, 95, 99]).tolist() if some else (None, None, None)
    return {
        "jobs": len(instance.jobs),
        "completed": int(done.sum()),
        "mean_jct": float(jct.mean()) if some else None,
        "weighted_mean_jct": float((jct * weights).sum() / weights.sum()) if some else None,
        "p50_jct": p50,
        "p95_jct": p95,
        "p99_jct": p99,
        "mean_wait": float(waits.mean()) if some else None,
        "makespan": last * seconds if some else None,
        "bounded_slowdown": float(np.maximum(slowdown, 1.0).mean()) if some else None,
        "utilisation": used_gpu_slots / room if room else None,
        "deadlines": int(due.sum()),
        "deadlines_met": int((due & done & (completions <= instance.deadlines)).sum()),
        "users": _by_user(instance, done, starts, completions),
    }


def _by_user(
    instance: GangInstance, done: Bools, starts: Ints, completions: Ints
) -> list[JsonObject]:
    """Jobs, mean completion time and wait, and GPU-seconds asked for, by user in name order."""
    users = np.array([job.user or "" for job in instance.jobs], dtype=object)[done]
    if not any(users):
        return []
    names, who = np.unique(users.astype(str), return_inverse=True)
    seconds = float(instance.slot_seconds)
    count = np.bincount(who)
    jct = np.bincount(who, weights=(completions - instance.submits)[done] * seconds)
    wait = np.bincount(who, weights=(starts - instance.submits)[done] * seconds)
    work = np.bincount(who, weights=(instance.durations * instance.job_gpus)[done] * seconds)
    columns = (names.tolist(), count.tolist(), (jct / count).tolist(), (wait / count).tolist())
    return [
        {"user": user, "jobs": jobs, "mean_jct": mean, "mean_wait": late, "gpu_seconds": held}
        for user, jobs, mean, late, held in zip(*columns, work.tolist(), strict=True)
    ]
