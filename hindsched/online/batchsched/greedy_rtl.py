"""GreedyRTL for the maximum weighted schedule problem, after Jain, Menache, Naor and Yaniv.

From general knowledge of "Near-optimal scheduling mechanisms for deadline-sensitive jobs in large
computing clusters" (SPAA 2012), not from its full text: jobs by weight over least volume, each as
late as possible before the deadline with the least volume, skipped if it does not fit.
"""

from __future__ import annotations

import numpy as np

from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.solvers.families.batchsched.oracle_search import ModeIndex, Schedule, ScheduleSearch


def greedy_right_to_left(
    cluster: BatchschedInstance,
    jobs: list[tuple[BatchschedJob, ModeIndex, float]],
    last: int,
) -> dict[str, Schedule]:
    """Accept jobs by density, each right-aligned before slot ``last + 1``.

    Parameters
    ----------
    cluster : BatchschedInstance
        The cluster, empty in slots 1 .. `last`.
    jobs : list of (job, modes, density)
        The batch.
    last : int
        Last slot that may be used.

    Returns
    -------
    dict
        Schedules of the accepted jobs by name, in the order of acceptance.
    """
    if last < 1 or not jobs:
        return {}
    search = ScheduleSearch(cluster, last, max(job.chunks for job, _, _ in jobs))
    # Prices that fall towards the deadline make the cheapest schedule the least volume, and among
    # equal volumes the latest: the slope is too small to outweigh a difference in volume.
    slope = 1e-6 / last
    per_slot = 1.0 + slope * np.arange(last - 1, -1, -1)
    mean = cluster.server_capacity.mean(axis=0)
    unit = np.where(mean > 0, 1.0 / np.where(mean > 0, mean, 1.0), 0.0)
    prices = per_slot[:, None, None] * np.broadcast_to(unit, cluster.server_capacity.shape)
    search.reset(prices=prices)
    accepted: dict[str, Schedule] = {}
    for job, index, _ in sorted(jobs, key=lambda item: -item[2]):
        schedule = search.cheapest(index)
        if schedule is not None:
            search.book(schedule)
            accepted[job.name] = schedule
    return accepted
