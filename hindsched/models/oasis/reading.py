"""From an oasis program's variables to a solution, and the reverse."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.algebra import Model, Variable
from hindsched.models.oasis.sets import JobSets, Plan
from hindsched.solutions.oasis.solution import OasisSolution

Counts = tuple[Ints, Ints]
"""Workers and PSs of a job by slot and server, shapes (T, H) and (T, K)."""


def counts_of(solution: OasisSolution, job: OasisJob) -> Counts:
    """What runs of a job in a solution, to be changed."""
    instance = solution.instance
    if job.name in solution.workers:
        return solution.workers[job.name].copy(), solution.ps[job.name].copy()
    servers = len(instance.worker_servers), len(instance.ps_servers)
    workers, ps = (np.zeros((instance.horizon, count), dtype=np.int64) for count in servers)
    return workers, ps


def load_job(
    block: Model, job: OasisJob, sets: JobSets, solution: OasisSolution, plan: Plan, form: str,
    may_give_up: bool = False,
) -> None:  # fmt: skip
    """Set a block's variables from a solution; a job that it does not complete gets nothing.

    Unless it may be given up: then it has what ran of it.

    Exactly the work that is left is done: workers beyond it are dropped from the end, with the PSs
    that (6) does not need.
    """
    workers, ps = counts_of(solution, job)
    workers[: sets.first - 1], ps[: sets.first - 1] = 0, 0
    completed = solution.completion(job.name) is not None
    surplus = 0 if may_give_up and not completed else int(workers.sum())
    surplus -= sets.work if completed else 0
    for row in workers[::-1]:
        surplus -= _drop(row, surplus)
    drop_idle_ps(solution.instance, job, workers, ps)
    for variable, counts, servers in ((block.y, workers, plan.workers), (block.z, ps, plan.ps)):
        for (server, t), var in variable.items():
            var.set_value(int(counts[t - 1, servers.members[server]].sum()))
    in_slot = workers.sum(axis=1)
    last = int(np.flatnonzero(in_slot)[-1]) + 1 if completed and in_slot.any() else None
    end = None if last is None else min((e for e in block.u if e >= last), default=None)
    for e, var in block.u.items():
        var.set_value(int(e == end))
    if form == "printed":
        block.x.set_value(int(end is not None))
    elif form == "strong":
        for (e, t), var in getattr(block, "n", {}).items():  # none where it may be given up
            var.set_value(int(in_slot[t - 1]) if e == end else 0)
    else:
        done = np.cumsum(in_slot)
        for t in block.done:
            block.done[t].set_value(int(done[t - 1]))
            block.ended[t].set_value(int(end is not None and end <= t))


def drop_idle_ps(instance: OasisInstance, job: OasisJob, workers: Ints, ps: Ints) -> None:
    """Drop PSs beyond what (6) needs, slot by slot."""
    for row, running in zip(ps, workers.sum(axis=1).tolist(), strict=True):
        _drop(row, int(row.sum()) - instance.ps_needed(job, running))


def _drop(row: Ints, surplus: int) -> int:
    """Take at most so many units away, from the last server on; how many were there."""
    dropped = 0
    for server in range(row.size - 1, -1, -1):
        drop = max(0, min(surplus - dropped, int(row[server])))
        row[server] -= drop
        dropped += drop
    return dropped


def read_job(block: Model, instance: OasisInstance, job: OasisJob) -> Counts:
    """A job's workers and PSs at the variables' values, no PS of them idle."""
    workers = _read(block.y, len(instance.worker_servers), instance.horizon)
    ps = _read(block.z, len(instance.ps_servers), instance.horizon)
    drop_idle_ps(instance, job, workers, ps)
    return workers, ps


def _read(variable: Variable, servers: int, horizon: int) -> Ints:
    counts = np.zeros((horizon, servers), dtype=np.int64)
    for (server, t), var in variable.items():
        counts[t - 1, server] = round(var.value or 0.0)
    return counts
