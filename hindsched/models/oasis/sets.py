"""What oasis programs are written over: servers, jobs, and where and when their units fit.

A server stands for itself. Only the aggregated relaxation (`relaxation.py`) adds up servers that
are identical in capacity and in what is committed on them: `Servers` then are such groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.base import Commitments
from hindsched.solutions.oasis.solution import OasisSolution

MERGE_TOLERANCE = 1e-12
"""Ends whose utilities differ by less, relative to the job's best, are merged: the last slot, the
largest utility, so that a bound stays a bound."""

Cell = tuple[int, int]
"""Server (or group of servers) and slot."""
RowKey = tuple[int, int, int]
"""Server (or group), resource, slot."""


@dataclass(frozen=True)
class Servers:
    """Servers of one role, each by itself or in groups of identical ones.

    Parameters
    ----------
    members : list of list of int
        Positions of the servers of each group; of one where they are not grouped.
    capacity : ndarray, shape (groups, R)
        Capacity of one server.
    free : ndarray, shape (groups, T + 1, R)
        What commitments leave free on one server, by slot.
    """

    members: list[list[int]]
    capacity: Floats
    free: Floats

    @classmethod
    def of(cls, capacity: Floats, committed: Floats, grouped: bool) -> Servers:
        """Read them; `committed` has shape (T + 1, servers, R)."""
        by_server = committed.transpose(1, 0, 2)
        members = [[server] for server in range(len(capacity))]
        if grouped:
            alike: dict[bytes, list[int]] = {}
            for server, own in enumerate(np.ascontiguousarray(by_server)):
                alike.setdefault(capacity[server].tobytes() + own.tobytes(), []).append(server)
            members = list(alike.values())
        first = [group[0] for group in members]
        return cls(members, capacity[first], capacity[first][:, None, :] - by_server[first])

    @property
    def size(self) -> Ints:
        """Number of servers of each group."""
        return np.array([len(group) for group in self.members], dtype=np.int64)

    def room(self, demand: Floats, most: int, first: int) -> Ints:
        """How many units fit, shape (groups, T + 1); 0 before slot `first`."""
        free = loosened(self.free, self.capacity[:, None, :])
        room = how_many_left(free, demand, most) * self.size[:, None]
        room[:, :first] = 0
        return room

    def sides(self) -> Floats:
        """What is free in units of one server's capacity, shape (groups, T + 1, R)."""
        scale = np.where(self.capacity > 0, self.capacity, 1.0)
        free: Floats = np.maximum(0.0, self.free / scale[:, None, :])
        return free * self.size[:, None, None]

    def shares(self, demand: Floats) -> Floats:
        """What a unit takes of one server's capacity, shape (groups, R)."""
        return np.asarray(demand / np.where(self.capacity > 0, self.capacity, 1.0))


@dataclass(frozen=True)
class JobSets:
    """What a job's own rules are written over.

    Parameters
    ----------
    first, horizon : int
        First slot in which it may still run, and T.
    work : int
        Worker-slots still to do.
    chunks : int
        N: most workers at once.
    ps_per_worker : float
        b / B.
    utilities : dict
        Utility by completion slot, from `first` on.
    worker_room, ps_room : dict
        How many workers and PSs fit, by server and slot, where any do.
    most : dict
        Most workers at once under (3), (6), (7) and what fits, by slot.
    ends : dict
        Utility by end slot: the ends that can be reached, those of equal utility merged into their
        last.
    """

    first: int
    horizon: int
    work: int
    chunks: int
    ps_per_worker: float
    utilities: dict[int, float]
    worker_room: dict[Cell, int]
    ps_room: dict[Cell, int]
    most: dict[int, int]
    ends: dict[int, float]

    @property
    def worker_slots(self) -> list[int]:
        """Slots in which a worker fits somewhere."""
        return sorted({t for _, t in self.worker_room})

    @property
    def ps_slots(self) -> list[int]:
        """Slots in which a PS fits somewhere."""
        return sorted({t for _, t in self.ps_room})

    @property
    def size(self) -> int:
        """Number of (end, slot) pairs of the strong form."""
        return sum(end - self.first + 1 for end in self.ends)

    @classmethod
    def of(
        cls,
        instance: OasisInstance,
        job: OasisJob,
        servers: tuple[Servers, Servers],
        first: int,
        done: int = 0,
    ) -> JobSets:
        """Read a job that may run from slot `first` on, with `done` worker-slots behind it."""
        worker, ps = instance.demand_of(job)
        worker_room = servers[0].room(worker, job.chunks, first)
        ps_room = servers[1].room(ps, max(1, instance.ps_needed(job, job.chunks)), first)
        most = _most_workers(instance, job, worker_room.sum(axis=0), ps_room.sum(axis=0))
        work, utilities = instance.work_of(job) - done, instance.utilities(job)
        return cls(
            first=first,
            horizon=instance.horizon,
            work=work,
            chunks=job.chunks,
            ps_per_worker=instance.ps_per_worker(job),
            utilities=dict(enumerate(utilities.tolist()[first:], first)),
            worker_room=_where_any(worker_room),
            ps_room=_where_any(ps_room),
            most=dict(enumerate(most.tolist()[first:], first)),
            ends=_merged_ends(max(first, int(np.cumsum(most).searchsorted(work))), utilities),
        )


def _most_workers(instance: OasisInstance, job: OasisJob, workers: Ints, ps: Ints) -> Ints:
    """Most workers of a job at once, by slot: N, what fits, and what the PSs that fit can serve."""
    needed = instance.ps_needed_up_to(job, job.chunks)
    served = np.where(needed <= np.arange(needed.size), needed, np.iinfo(np.int64).max)
    by_ps = np.searchsorted(served, ps, side="right") - 1
    most: Ints = np.minimum(np.minimum(workers, job.chunks), by_ps)
    most[: job.arrival] = 0
    return most


def _where_any(room: Ints) -> dict[Cell, int]:
    """How many fit by (server, slot), slot by slot."""
    slot, server = np.nonzero(room.T > 0)
    cells = zip(server.tolist(), slot.tolist(), strict=True)
    return dict(zip(cells, room[server, slot].tolist(), strict=True))


def _merged_ends(begin: int, utilities: Floats) -> dict[int, float]:
    """Utility by end slot from `begin` on, runs of equal utility merged into their last."""
    kept: list[tuple[int, float]] = []
    for end, utility in enumerate(utilities[begin:].tolist(), begin):
        if kept and kept[-1][1] - utility <= MERGE_TOLERANCE * abs(kept[0][1]):
            kept[-1] = (end, kept[-1][1])
        else:
            kept.append((end, utility))
    return dict(kept)


def capacity_rows(
    servers: Servers, used: Iterable[tuple[int, Iterable[Cell], Floats]]
) -> dict[RowKey, list[tuple[int, float]]]:
    """Who uses a server's resource in a slot: jobs and the share that one unit of theirs takes.

    Parameters
    ----------
    servers : Servers
        Of one role.
    used : iterable of (int, cells, ndarray)
        A job, where its units may be, and the demand of one.
    """
    rows: dict[RowKey, list[tuple[int, float]]] = {}
    for job, cells, demand in used:
        shares, needed = servers.shares(demand).tolist(), np.flatnonzero(demand > 0).tolist()
        for server, slot in cells:
            for r in needed:
                rows.setdefault((server, r, slot), []).append((job, shares[server][r]))
    return dict(sorted(rows.items()))


class History(NamedTuple):
    """What ran of a job: workers (T, H) and PSs (T, K)."""

    workers: Ints
    ps: Ints

    @classmethod
    def of(cls, instance: OasisInstance, fixed: OasisSolution | None, job: OasisJob) -> History:
        """Of a job in a solution; nothing if it has no rows there."""
        if fixed is not None and job.name in fixed.workers:
            return cls(fixed.workers[job.name].copy(), fixed.ps[job.name].copy())
        sizes = len(instance.worker_servers), len(instance.ps_servers)
        return cls(*(np.zeros((instance.horizon, size), dtype=np.int64) for size in sizes))


@dataclass(frozen=True)
class PlannedJob:
    """A job of the program.

    Parameters
    ----------
    index : int
        Position in the instance.
    history : History
        What ran before the first open slot, or all rows of a locked job.
    sets : JobSets, optional
        None for a job that is decided: locked, finished or rejected.
    utility : float
        What a decided job earns.
    """

    index: int
    history: History
    sets: JobSets | None
    utility: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What a program is written over: every job of the instance, decided or open, and the servers.

    Parameters
    ----------
    worker_servers, ps_servers : Servers
        The servers, and what commitments leave free on them.
    jobs : list of PlannedJob
        In the instance's order.
    """

    worker_servers: Servers
    ps_servers: Servers
    jobs: list[PlannedJob]

    @property
    def open_jobs(self) -> dict[int, JobSets]:
        """Sets of the jobs that are still open, by position."""
        return {job.index: job.sets for job in self.jobs if job.sets is not None}

    @property
    def decided_utility(self) -> float:
        """What the decided jobs earn."""
        return float(sum(job.utility for job in self.jobs))

    @classmethod
    def of(
        cls,
        instance: OasisInstance,
        commitments: Commitments | None = None,
        *,
        from_slot_1: bool = False,
        grouped: bool = False,
    ) -> Plan:
        """Sort the jobs into decided and open ones, and see what the decided ones leave free.

        Parameters
        ----------
        instance : OasisInstance
            The instance.
        commitments : Commitments, optional
            What can no longer be changed.
        from_slot_1 : bool
            Whether slots that are over stand in the program, as the printed one has them;
            otherwise it begins at the first open slot.
        grouped : bool
            Whether identical servers are added up.
        """
        commitments = commitments or Commitments()
        past = commitments.now - 1
        unlocked = {
            name: rows
            for name, rows in commitments.assignments.items()
            if name not in commitments.locked
        }
        fixed = OasisSolution.from_assignments(instance, unlocked) if unlocked else None
        tables = instance.worker_capacity, instance.ps_capacity
        committed = [np.zeros((instance.horizon + 1, *table.shape)) for table in tables]
        found: list[tuple[History, float | None]] = []
        for index, job in enumerate(instance.jobs):
            if job.name in commitments.locked:
                read = partial(_Locked.of, instance, index, commitments)
                of = job, instance.horizon, instance.worker_servers, instance.ps_servers
                locked = commitments.read_once(job.name, of, read)
                for use, own in zip(committed, locked.uses, strict=True):
                    use += own
                found.append((locked.history, locked.utility))
                continue
            history = History.of(instance, fixed, job)
            for counts in history:
                counts[past:] = 0
            utility = 0.0 if job.name in commitments.rejected else None
            if utility is None and int(history.workers.sum()) >= instance.work_of(job):
                last = int(np.flatnonzero(history.workers.sum(axis=1))[-1]) + 1
                utility = job.utility.value(last - job.arrival)
            found.append((history, utility))
        if not from_slot_1:
            for use in committed:
                use[: past + 1] = 0
        servers = (
            Servers.of(tables[0], committed[0], grouped),
            Servers.of(tables[1], committed[1], grouped),
        )
        jobs = []
        for index, (history, utility) in enumerate(found):
            job = instance.jobs[index]
            if utility is not None:
                jobs.append(PlannedJob(index, history, None, utility))
            elif from_slot_1:
                ran = History(history.workers[:past], history.ps[:past])
                jobs.append(PlannedJob(index, ran, JobSets.of(instance, job, servers, job.arrival)))
            else:
                first, done = max(job.arrival, commitments.now), int(history.workers.sum())
                sets = JobSets.of(instance, job, servers, first, done)
                jobs.append(PlannedJob(index, history, sets))
        return cls(*servers, jobs)


class _Locked(NamedTuple):
    """A locked job: its rows, what they use by slot of both roles, and what it earns."""

    history: History
    uses: list[Floats]
    utility: float

    @classmethod
    def of(cls, instance: OasisInstance, index: int, commitments: Commitments) -> _Locked:
        job = instance.jobs[index]
        alone = instance.with_jobs((job,))
        rows = {job.name: commitments.assignments.get(job.name, ())}
        found = OasisSolution.from_assignments(alone, rows)
        history = History.of(alone, found, job)
        demands = alone.worker_demand[0], alone.ps_demand[0]
        uses = [
            np.concatenate([np.zeros((1, *counts.shape[1:], 1)), counts[:, :, None]]) * demand
            for counts, demand in zip(history, demands, strict=True)
        ]
        return cls(history, uses, found.value(job.name))
