"""Booking of jobs of a batchsched plan, one after the other."""

from __future__ import annotations

from hindsched.solvers.kernels.batchsched.window_plan import (
    nothing_changed,
    renew_room,
    use,
)


def book(sign, job, plan, cluster, jobs):
    """Take (1) or give back (-1) what a job uses, and count anew what fits."""
    changed = nothing_changed(plan.workers.shape[1])
    use(sign, job, plan, cluster, jobs, changed)
    renew_room(cluster, jobs.share, changed)
