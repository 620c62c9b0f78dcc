"""From an oasis program's variables to a solution, and the reverse."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.algebra import Model, Variable
from hindsched.models.oasis.sets import History, JobSets, Servers
from hindsched.solutions.oasis.solution import OasisSolution


def load_job(
    block: Model,
    instance: OasisInstance,
    job: OasisJob,
    solution: OasisSolution,
    sets: JobSets,
    servers: tuple[Servers, Servers],
    form: str,
) -> None:
    """Set a block's variables from a solution; a job that it does not complete gets nothing.

    Forms other than the printed one do exactly the work that is left: workers beyond it are dropped
    from the end, with the PSs that (6) does not need.
    """
    completion = solution.completion(job.name)
    counts = History.of(instance, None if completion is None else solution, job)
    if form == "printed":
        block.x.set_value(int(completion is not None))
        for end in block.u:
            block.u[end].set_value(int(end == completion))
    else:
        for own in counts:
            own[: sets.first - 1] = 0
        surplus = int(counts.workers.sum()) - (0 if completion is None else sets.work)
        for row in counts.workers[::-1]:
            surplus -= _drop(row, surplus)
        drop_idle_ps(instance, job, *counts)
        _load_ends(block, form, counts.workers.sum(axis=1))
    for variable, placed, of in zip((block.y, block.z), counts, servers, strict=True):
        for (server, slot), var in variable.items():
            var.set_value(int(placed[slot - 1, of.members[server]].sum()))


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


def _load_ends(block: Model, form: str, workers: Ints) -> None:
    """Set what a strong or cumulative block derives from its workers by slot."""
    running = np.flatnonzero(workers)
    last = int(running[-1]) + 1 if running.size else None
    end = None if last is None else min((e for e in block.u if e >= last), default=None)
    for e in block.u:
        block.u[e].set_value(int(e == end))
    if form == "strong":
        for (e, slot), var in block.n.items():
            var.set_value(int(workers[slot - 1]) if e == end else 0)
        return
    done = np.cumsum(workers)
    for slot in block.done:
        block.done[slot].set_value(int(done[slot - 1]))
        block.ended[slot].set_value(int(end is not None and end <= slot))


def read_counts(variable: Variable, servers: int, horizon: int) -> Ints:
    """Counts by slot and server, shape (T, servers)."""
    counts = np.zeros((horizon, servers), dtype=np.int64)
    for (server, slot), var in variable.items():
        counts[slot - 1, server] = round(var.value or 0.0)
    return counts
