"""What the oasis family's programs are made from: pools of servers, jobs, and what is decided.

A pool is one server, or a group of servers that are identical in capacity and in what commitments
leave free on them.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        keys: dict[bytes, list[int]] = {}
        for server in range(capacity.shape[0]):
            own = committed[:, server].tobytes() if grouped else str(server).encode()
            keys.setdefault(capacity[server].tobytes() + own, []).append(server)
        members = list(keys.values())
        first = [group[0] for group in members]
        free = capacity[first][:, None, :] - committed[:, first].transpose(1, 0, 2)
        return cls(members, capacity[first], free)

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


def plan_program(
    instance: OasisInstance, commitments: Commitments, form: Form, aggregate: bool
) -> Parts:
    """Sort the jobs into decided and open ones, and the servers into pools."""
    fixed = OasisSolution.from_assignments(instance, commitments.assignments)
    horizon = instance.horizon
    past = commitments.now - 1
    shapes = (len(instance.worker_servers), len(instance.ps_servers))
    committed = [np.zeros((horizon + 1, s, len(instance.resources))) for s in shapes]
    demands = (instance.worker_demand, instance.ps_demand)
    decided: dict[int, float] = {}
    histories = []
    for index, job in enumerate(instance.jobs):
        deployed = [fixed.workers.get(job.name), fixed.ps.get(job.name)]
        y, z = (
            np.zeros((horizon, s), dtype=np.int64) if counts is None else counts.copy()
            for counts, s in zip(deployed, shapes, strict=True)
        )
        if job.name in commitments.locked:
            decided[index] = fixed.value(job.name)
            for use, counts, demand in zip(committed, (y, z), demands, strict=True):
                use[1:] += counts[:, :, None] * demand[index]
        else:
            y[past:] = 0
            z[past:] = 0
            if job.name in commitments.rejected:
                decided[index] = 0.0
            elif int(y.sum()) >= instance.work[index]:
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
