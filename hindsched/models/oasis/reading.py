"""From an oasis program's variables to a solution, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.algebra import Model, Variable
from hindsched.models.oasis.block import JobFacts
from hindsched.models.oasis.program import Parts, Pools
from hindsched.solutions.oasis.placing import place_slot
from hindsched.solutions.oasis.solution import OasisSolution


def wanted_counts(
    instance: OasisInstance, job: OasisJob, solution: OasisSolution, facts: JobFacts | None
) -> tuple[Ints, Ints]:
    """Workers (T, H) and PSs (T, K) of a job in a solution, nothing if it is not completed.

    With `facts` those from its first open slot on that do exactly the work that is left.
    """
    shapes = (len(instance.worker_servers), len(instance.ps_servers))
    admitted = solution.completion(job.name) is not None
    y, z = (
        deployed[job.name].copy() if admitted else np.zeros((instance.horizon, width), np.int64)
        for deployed, width in zip((solution.workers, solution.ps), shapes, strict=True)
    )
    if facts is not None:
        y[: facts.first - 1] = 0
        z[: facts.first - 1] = 0
        _trim(instance, job, y, z, facts.work if admitted else 0)
    return y, z


def _trim(instance: OasisInstance, job: OasisJob, y: Ints, z: Ints, work: int) -> None:
    """Drop workers beyond `work` from the end, and PSs beyond what (6) needs."""
    surplus = int(y.sum()) - work
    for slot in range(y.shape[0] - 1, -1, -1):
        for server in range(y.shape[1] - 1, -1, -1):
            drop = min(surplus, int(y[slot, server]))
            if drop > 0:
                y[slot, server] -= drop
                surplus -= drop
        _trim_ps(instance, job, int(y[slot].sum()), z[slot])


def _trim_ps(instance: OasisInstance, job: OasisJob, workers: int, row: Ints) -> None:
    """Drop PSs of one slot beyond what (6) needs."""
    surplus = int(row.sum()) - instance.ps_needed(job, workers)
    for server in range(row.size - 1, -1, -1):
        drop = min(surplus, int(row[server]))
        if drop > 0:
            row[server] -= drop
            surplus -= drop


def load_block(block: Model, form: str, per_slot: Ints) -> None:
    """Set what a strong or cumulative block derives from its workers by slot."""
    running = np.flatnonzero(per_slot)
    end = None
    if running.size:
        last = int(running[-1]) + 1
        end = min((e for e in block.u if e >= last), default=None)
    for e in block.u:
        block.u[e].set_value(int(e == end))
    if form == "strong":
        for (e, slot), var in block.n.items():
            var.set_value(int(per_slot[slot - 1]) if e == end else 0)
        return
    done = np.cumsum(per_slot)
    for slot in block.done:
        block.done[slot].set_value(int(done[slot - 1]))
        block.ended[slot].set_value(int(end is not None and end <= slot))


def read_counts(variable: Variable, pools: Pools, horizon: int) -> Ints:
    """Counts by pool and slot, shape (pools, T)."""
    counts = np.zeros((len(pools.members), horizon), dtype=np.int64)
    for (pool, slot), var in variable.items():
        counts[pool, slot - 1] = round(var.value or 0.0)
    return counts


def placed_counts(
    instance: OasisInstance, parts: Parts, blocks: Mapping[int, Model]
) -> tuple[list[Ints], list[Ints]] | None:
    """Workers (T, H) and PSs (T, K) of each job on real servers; None if a slot was not placed.

    Parameters
    ----------
    instance, parts : OasisInstance, Parts
        What the program was built from.
    blocks : mapping
        Pyomo block by the position of each job that is admitted.
    """
    jobs, horizon = list(blocks), instance.horizon
    worker_pools, ps_pools = parts.worker_pools, parts.ps_pools
    workers = np.zeros((len(jobs), len(worker_pools.members), horizon), dtype=np.int64)
    ps = np.zeros((len(jobs), len(ps_pools.members), horizon), dtype=np.int64)
    for position, (job, block) in enumerate(blocks.items()):
        workers[position] = read_counts(block.y, worker_pools, horizon)
        ps[position] = read_counts(block.z, ps_pools, horizon)
        for slot, count in enumerate(workers[position].sum(axis=0).tolist()):
            _trim_ps(instance, instance.jobs[job], count, ps[position, :, slot])
    placed_workers = _place(workers, worker_pools, instance.worker_demand[jobs])
    placed_ps = _place(ps, ps_pools, instance.ps_demand[jobs])
    if placed_workers is None or placed_ps is None:
        return None
    return placed_workers, placed_ps


def _place(counts: Ints, pools: Pools, demand: Floats) -> list[Ints] | None:
    """Counts (jobs, pools, T) on servers: (T, servers) of each job; None if one was not placed."""
    jobs, _, horizon = counts.shape
    placed = np.zeros((jobs, horizon, int(pools.size.sum())), dtype=np.int64)
    for slot in np.flatnonzero(counts.any(axis=(0, 1))).tolist():
        free = [
            np.repeat(pools.free[pool][slot + 1][None], len(group), axis=0)
            for pool, group in enumerate(pools.members)
        ]
        found = place_slot(list(counts[:, :, slot].T), demand, free)
        if found is None:
            return None
        for group, one in zip(pools.members, found, strict=True):
            placed[:, slot, group] = one
    return list(placed)
