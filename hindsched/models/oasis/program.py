"""What the oasis family's programs are made from: pools of servers, jobs, and what is decided.

A pool is one server, or a group of servers that are identical in capacity and in what commitments
leave free on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.base import Commitments
from hindsched.models.oasis.block import Form, JobFacts, most_workers
from hindsched.solutions.oasis.solution import OasisSolution


@dataclass(frozen=True)
class Pools:
    """Servers of one role, in groups that are identical in capacity and in what is committed.

    Parameters
    ----------
    members : list of list of int
        Servers of each pool.
    capacity : ndarray, shape (pools, R)
        Capacity of one server.
    free : ndarray, shape (pools, T + 1, R)
        What commitments leave free on one server, by slot.
    """

    members: list[list[int]]
    capacity: Floats
    free: Floats

    @classmethod
    def of(cls, capacity: Floats, committed: Floats, grouped: bool) -> Pools:
        """Group servers; `committed` has shape (T + 1, servers, R)."""
        by_server = committed.transpose(1, 0, 2)
        members = [[server] for server in range(len(capacity))]
        if grouped:
            keys: dict[bytes, list[int]] = {}
            for server, own in enumerate(np.ascontiguousarray(by_server)):
                keys.setdefault(capacity[server].tobytes() + own.tobytes(), []).append(server)
            members = list(keys.values())
        first = [group[0] for group in members]
        return cls(members, capacity[first], capacity[first][:, None, :] - by_server[first])

    @property
    def size(self) -> Ints:
        """Number of servers of each pool."""
        return np.array([len(group) for group in self.members], dtype=np.int64)

    def room(self, demand: Floats, most: int, first: int) -> Ints:
        """How many units fit by pool and slot, shape (pools, T + 1); 0 before slot `first`."""
        free = loosened(self.free, self.capacity[:, None, :])
        room = how_many_left(free, demand, most) * self.size[:, None]
        room[:, :first] = 0
        return room


@dataclass(frozen=True)
class ProgramJob:
    """A job of the program.

    Parameters
    ----------
    index : int
        Position in the instance.
    history : tuple of ndarray
        What ran before the first open slot: workers (T, H) and PSs (T, K).
    facts : JobFacts, optional
        None for a job that is decided: locked, finished or rejected.
    utility : float
        What a decided job earns.
    """

    index: int
    history: tuple[Ints, Ints]
    facts: JobFacts | None
    utility: float = 0.0


@dataclass(frozen=True)
class Parts:
    """What a program consists of besides its Pyomo model.

    Parameters
    ----------
    worker_pools, ps_pools : Pools
        The servers.
    jobs : list of ProgramJob
        Every job of the instance, decided or open.
    """

    worker_pools: Pools
    ps_pools: Pools
    jobs: list[ProgramJob]

    @property
    def open_jobs(self) -> dict[int, JobFacts]:
        """Facts of the jobs that are still open, by position."""
        return {job.index: job.facts for job in self.jobs if job.facts is not None}


class _Locked(NamedTuple):
    """A locked job: workers (T, H) and PSs (T, K), what they use by slot, and what it earns."""

    history: tuple[Ints, Ints]
    uses: tuple[Floats, Floats]
    utility: float

    @classmethod
    def of(cls, instance: OasisInstance, index: int, commitments: Commitments) -> _Locked:
        job = instance.jobs[index]
        alone = instance.with_jobs((job,))
        rows = {job.name: commitments.assignments.get(job.name, ())}
        found = OasisSolution.from_assignments(alone, rows)
        history = _counts(found, job)
        demands = alone.worker_demand[0], alone.ps_demand[0]
        workers, ps = (
            np.concatenate([np.zeros((1, *counts.shape[1:], 1)), counts[:, :, None]]) * demand
            for counts, demand in zip(history, demands, strict=True)
        )
        return cls(history, (workers, ps), found.value(job.name))


def _no_counts(instance: OasisInstance) -> tuple[Ints, Ints]:
    """Workers (T, H) and PSs (T, K) of a job that has none."""
    shapes = len(instance.worker_servers), len(instance.ps_servers)
    y, z = (np.zeros((instance.horizon, servers), dtype=np.int64) for servers in shapes)
    return y, z


def _counts(fixed: OasisSolution, job: OasisJob) -> tuple[Ints, Ints]:
    """Workers (T, H) and PSs (T, K) of a job."""
    if job.name not in fixed.workers:
        return _no_counts(fixed.instance)
    return fixed.workers[job.name].copy(), fixed.ps[job.name].copy()


def plan_program(
    instance: OasisInstance, commitments: Commitments, form: Form, aggregate: bool
) -> Parts:
    """Sort the jobs into decided and open ones, and the servers into pools."""
    locked = commitments.locked & {job.name for job in instance.jobs}
    given = commitments.assignments
    unlocked = {name: rows for name, rows in given.items() if name not in locked}
    fixed = OasisSolution.from_assignments(instance, unlocked) if unlocked else None
    past = commitments.now - 1
    tables = (instance.worker_capacity, instance.ps_capacity)
    committed = [np.zeros((instance.horizon + 1, *table.shape)) for table in tables]
    nothing = _no_counts(instance)
    decided: dict[int, float] = {}
    histories = []
    for index, job in enumerate(instance.jobs):
        if job.name in locked:
            read = partial(_Locked.of, instance, index, commitments)
            of = job, instance.horizon, instance.worker_servers, instance.ps_servers
            own = commitments.read_once(job.name, of, read)
            for use, one in zip(committed, own.uses, strict=True):
                use += one
            decided[index] = own.utility
            histories.append(own.history)
            continue
        y, z = nothing
        if fixed is not None:
            y, z = _counts(fixed, job)
            y[past:] = 0
            z[past:] = 0
        if job.name in commitments.rejected:
            decided[index] = 0.0
        elif fixed is not None and int(y.sum()) >= instance.work_of(job):
            last = int(np.flatnonzero(y.sum(axis=1))[-1]) + 1
            decided[index] = job.utility.value(last - job.arrival)
        histories.append((y, z))
    grouped = aggregate and form != "printed"
    if form != "printed":  # its program begins at the first open slot
        for use in committed:
            use[: past + 1] = 0
    worker_pools = Pools.of(instance.worker_capacity, committed[0], grouped)
    ps_pools = Pools.of(instance.ps_capacity, committed[1], grouped)
    jobs = []
    for index, job in enumerate(instance.jobs):
        history = histories[index]
        if index in decided:
            jobs.append(ProgramJob(index, history, None, decided[index]))
            continue
        first = max(job.arrival, commitments.now) if form != "printed" else job.arrival
        done = int(history[0].sum()) if form != "printed" else 0
        facts = job_facts(instance, job, worker_pools, ps_pools, first, done)
        jobs.append(ProgramJob(index, history, facts))
    if form == "printed":
        jobs = _pin(jobs, commitments)
    return Parts(worker_pools, ps_pools, jobs)


def _pin(jobs: list[ProgramJob], commitments: Commitments) -> list[ProgramJob]:
    """Mark in the printed form which slots of the open jobs are history."""
    past = commitments.now - 1
    return [
        job
        if job.facts is None
        else ProgramJob(job.index, (job.history[0][:past], job.history[1][:past]), job.facts)
        for job in jobs
    ]


def job_facts(
    instance: OasisInstance,
    job: OasisJob,
    worker_pools: Pools,
    ps_pools: Pools,
    first: int,
    done: int,
) -> JobFacts:
    """Read what a job's block is built from, with `done` worker-slots behind it."""
    worker, ps = instance.demand_of(job)
    worker_room = worker_pools.room(worker, job.chunks, first)
    ps_room = ps_pools.room(ps, max(1, instance.ps_needed(job, job.chunks)), first)
    return JobFacts(
        first=first,
        work=instance.work_of(job) - done,
        chunks=job.chunks,
        most=most_workers(instance, job, worker_room, ps_room),
        ps_per_worker=instance.ps_per_worker(job),
        utilities=instance.utilities(job),
        worker_room=worker_room,
        ps_room=ps_room,
    )
