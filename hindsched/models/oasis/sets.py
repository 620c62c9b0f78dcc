"""What oasis programs are written over: servers, jobs, and where and when their units fit.

A server stands for itself. Only relaxations add up servers that are identical in capacity and in
what is committed on them: `Servers` then are such groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.base import Commitments
from hindsched.solutions.oasis.solution import OasisSolution

MERGE_TOLERANCE = 1e-12
"""Ends whose utilities differ by less, relative to the job's best, are merged: the last slot, the
largest utility, so that a bound stays a bound."""

Cell = tuple[int, int]  # server (or group of servers) and slot


@dataclass(frozen=True)
class Servers:
    """Servers of workers or of PSs, each by itself or in groups of identical ones."""

    name: str  # of their capacities: the oracle's rows
    demand: Floats  # of one worker or PS of each job, (I, R)
    members: list[list[int]]  # positions of the servers of each group; one if not grouped
    size: Ints  # servers of each group, (groups,)
    capacity: Floats  # of one server, (groups, R)
    free: Floats  # what commitments leave of one server by slot, (groups, T + 1, R)

    @classmethod
    def of(
        cls, name: str, demand: Floats, capacity: Floats, committed: Floats, grouped: bool
    ) -> Servers:
        """Read them; `committed` has shape (servers, T + 1, R)."""
        alike: dict[object, list[int]] = {}
        for server, used in enumerate(committed):
            same = capacity[server].tobytes() + used.tobytes()
            alike.setdefault(same if grouped else server, []).append(server)
        members = list(alike.values())
        first = [group[0] for group in members]
        size = np.array([len(group) for group in members], dtype=np.int64)
        free = capacity[first, None, :] - committed[first]
        return cls(name, demand, members, size, capacity[first], free)

    def room(self, demand: Floats, most: int, first: int) -> Ints:
        """How many units fit, shape (groups, T + 1); 0 before slot `first`."""
        room = how_many_left(loosened(self.free, self.capacity[:, None, :]), demand, most)
        room *= self.size[:, None]
        room[:, :first] = 0
        return room

    @property
    def scale(self) -> Floats:
        """What amounts are divided by in rows: one server's capacity, 1 where it has none."""
        return np.where(self.capacity > 0, self.capacity, 1.0)

    @property
    def sides(self) -> Floats:
        """Right sides of (4) or (5) by group, slot and resource, in units of one server."""
        free: Floats = np.maximum(0.0, self.free / self.scale[:, None, :])
        return free * self.size[:, None, None]


@dataclass(frozen=True)
class OasisJobSets:
    """What a job's own rules are written over."""

    first: int  # first slot in which it may still run
    horizon: int  # T
    work: int  # worker-slots still to do
    chunks: int  # N, most workers at once
    ps_per_worker: float  # b / B
    utilities: dict[int, float]  # by completion slot, from `first` on
    worker_room: dict[Cell, int]  # how many workers fit, where any do
    ps_room: dict[Cell, int]  # how many PSs
    worker_slots: list[int]  # in which any fits
    ps_slots: list[int]
    most: dict[int, int]  # most workers at once under (3), (6), (7) and what fits, by slot
    ends: dict[int, float]  # utility by end that can be reached; of equal utility only the last

    @classmethod
    def of(
        cls, instance: OasisInstance, job: OasisJob, workers: Servers, ps: Servers, first: int,
        done: int = 0,
    ) -> OasisJobSets:  # fmt: skip
        """Read a job that may run from slot `first` on, with `done` worker-slots behind it."""
        worker_demand, ps_demand = instance.demand_of(job)
        needed = instance.ps_needed_up_to(job, job.chunks)
        worker_room = workers.room(worker_demand, job.chunks, first)
        ps_room = ps.room(ps_demand, max(1, int(needed[-1])), first)
        # N, what fits, and what the PSs that fit can serve; more PSs than workers are none
        served = np.where(needed <= np.arange(needed.size), needed, np.iinfo(np.int64).max)
        by_ps = np.searchsorted(served, ps_room.sum(axis=0), side="right") - 1
        most = np.minimum(np.minimum(worker_room.sum(axis=0), job.chunks), by_ps)
        most[:first] = 0
        work = instance.work_of(job) - done
        utilities = dict(enumerate(instance.utilities(job).tolist()[first:], first))
        soonest = max(first, int(np.cumsum(most).searchsorted(work)))
        return cls(
            first=first, horizon=instance.horizon, work=work, chunks=job.chunks,
            ps_per_worker=instance.ps_per_worker(job), utilities=utilities,
            worker_room=_where_any(worker_room), ps_room=_where_any(ps_room),
            worker_slots=np.flatnonzero(worker_room.any(axis=0)).tolist(),
            ps_slots=np.flatnonzero(ps_room.any(axis=0)).tolist(),
            most=dict(enumerate(most.tolist()[first:], first)),
            ends=_merged({end: utility for end, utility in utilities.items() if end >= soonest}),
        )  # fmt: skip


def _where_any(room: Ints) -> dict[Cell, int]:
    """How many fit by (server, slot), slot by slot."""
    cells = np.argwhere(room.T > 0).tolist()
    return {(server, slot): int(room[server, slot]) for slot, server in cells}


def _merged(utilities: dict[int, float]) -> dict[int, float]:
    """Utility by end, runs of equal utility merged into their last."""
    best, merged = max(utilities.values(), default=0.0), dict[int, float]()
    for end, utility in utilities.items():
        last = max(merged, default=0)
        if merged and merged[last] - utility <= MERGE_TOLERANCE * abs(best):
            merged[end] = merged.pop(last)
        else:
            merged[end] = utility
    return merged


@dataclass(frozen=True)
class OasisSets:
    """What a program is written over: the open jobs, what is decided, and the servers."""

    workers: Servers  # with what commitments leave free on them
    ps: Servers
    jobs: dict[int, OasisJobSets]  # the open ones by position
    fixed: OasisSolution  # what ran before the first open slot, all rows of locked jobs
    decided: dict[int, float]  # what locked, finished and rejected jobs earn, by position

    @classmethod
    def of(
        cls, instance: OasisInstance, commitments: Commitments | None = None, grouped: bool = False
    ) -> OasisSets:
        """Sort the jobs into decided and open ones, and see what the decided ones leave free."""
        commitments = commitments or Commitments()
        rows = {
            name: rows if name in commitments.locked else commitments.history(name)
            for name, rows in commitments.assignments.items()
        }
        fixed = OasisSolution.from_assignments(instance, rows)
        now, used = commitments.now, []
        for name, counts, demand, capacity in (
            ("worker_capacity", fixed.workers, instance.worker_demand, instance.worker_capacity),
            ("ps_capacity", fixed.ps, instance.ps_demand, instance.ps_capacity),
        ):
            committed = np.zeros((len(capacity), instance.horizon + 1, capacity.shape[1]))
            for index, job in enumerate(instance.jobs):
                if job.name in commitments.locked and job.name in counts:
                    committed[:, now:] += counts[job.name].T[:, now - 1 :, None] * demand[index]
            used.append(Servers.of(name, demand, capacity, committed, grouped))
        workers, ps = used
        jobs, decided = dict[int, OasisJobSets](), dict[int, float]()
        for index, job in enumerate(instance.jobs):
            done = int(fixed.workers[job.name].sum()) if job.name in fixed.workers else 0
            if job.name in commitments.rejected:
                decided[index] = 0.0
            elif job.name in commitments.locked or done >= instance.work_of(job):
                decided[index] = fixed.value(job.name)
            else:
                first = max(job.arrival, now)
                jobs[index] = OasisJobSets.of(instance, job, workers, ps, first, done)
        return cls(workers, ps, jobs, fixed, decided)
