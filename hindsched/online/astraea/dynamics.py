"""What astraea's decisions do, and the cluster as gang schedulers see it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import most_workers
from hindsched.instances.astraea.shares import private_units
from hindsched.instances.modes import ps_for
from hindsched.online.cluster_state import OptionalJobsState, whole_window
from hindsched.online.dynamics import GangCluster, Placement, gang_width
from hindsched.online.protocol import Environment, draws
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import row_progress, write_row
from hindsched.solutions.base import Assignment

MOST_FIXED_WORKERS = 8
"""Gang sizes that no file states are drawn from 1..min(8, D)."""


@dataclass
class Room:
    """Free workers (S, W) and PSs (S, P); placements are taken from it and given back to it."""

    workers: Ints
    ps: Ints

    def change(self, row: AstraeaRow, sign: int) -> None:
        """Add `sign` times a row's units."""
        self.workers[:, row.worker_type] += sign * row.workers
        self.ps[:, row.ps_type] += sign * row.ps

    def holds(self, row: AstraeaRow) -> bool:
        """Whether a row fits."""
        return bool(
            (row.workers <= self.workers[:, row.worker_type]).all()
            and (row.ps <= self.ps[:, row.ps_type]).all()
        )


class AstraeaCluster(GangCluster[AstraeaJob]):
    """Gangs of a fixed number of workers around one PS host; work is counted as a share of 1.

    A job uses the pair of types with the least time per mini-batch over several servers among those
    of which its gang fits the empty cluster. `place` is first fit in the order of the servers and
    blind to locality: workers on the first servers with room, the PSs that (3i) then needs on the
    first server with room for them; where none has, on the first that has when it is filled first.
    `place_at_home` is HiveD's: the smallest server of the tenant's own that takes all, else the
    fullest of its own servers. Those are virtual: while guaranteed jobs use one it is bound to a
    server of its shape, that where others occupy least when it is bound.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        assert isinstance(environment.cluster, AstraeaInstance)
        self.instance = environment.cluster
        self.room = Room(self.instance.worker_count.copy(), self.instance.ps_count.copy())
        names = [tenant.name for tenant in self.instance.tenants]
        own = dict(zip(names, zip(*private_units(self.instance), strict=True), strict=True))
        self._empty_homes = {name: Room(*units) for name, units in own.items()}
        self.homes = {name: Room(*(part.copy() for part in units)) for name, units in own.items()}
        self._names = [server.name for server in self.instance.servers]
        self._bound: dict[int, int] = {}
        self._users: dict[int, int] = {}
        shapes = np.hstack([self.instance.worker_count, self.instance.ps_count])
        self._alike = [np.flatnonzero((shapes == shape).all(axis=1)).tolist() for shape in shapes]
        self._empty = Room(self.instance.worker_count, self.instance.ps_count)
        self._gangs: dict[str, tuple[int, int, int]] = {}
        self._speeds: dict[tuple[str, int], float] = {}

    # Gangs

    def gang(self, job: AstraeaJob) -> tuple[int, int, int]:
        """Worker type, PS type and number of workers; 0 workers if nothing fits at all."""
        if job.name not in self._gangs:
            self._gangs[job.name] = self._choose(job)
        return self._gangs[job.name]

    def _choose(self, job: AstraeaJob) -> tuple[int, int, int]:
        most = most_workers(self.instance, job)
        wanted = gang_width(self.gangs, lambda: self.drawn_workers(job), most)
        times = self.instance.minibatch_times(job)[:, :, 0]
        for count in range(wanted, 0, -1):
            for pair in np.argsort(times, axis=None, kind="stable"):
                w, p = (int(k) for k in np.unravel_index(pair, times.shape))
                if self._first_fit(self._empty, w, p, count) is not None:
                    return w, p, count
        return 0, 0, 0

    def place(self, job: AstraeaJob, workers: int) -> Placement | None:
        """Book `workers` workers and their PSs by first fit."""
        w, p, _ = self.gang(job)
        row = self._first_fit(self.room, w, p, workers)
        return None if row is None else self._book_row(job, row)

    def place_at_home(self, job: AstraeaJob, occupied: Ints) -> Placement | None:
        """Book the job's gang on what is free of its tenant's own servers, where they are bound.

        Parameters
        ----------
        job : AstraeaJob
            The job.
        occupied : array of shape (S,)
            Workers that give way for it, by server.
        """
        w, p, count = self.gang(job)
        home = self.homes[job.tenant]
        virtual = self._best_fit(home, w, p, count)
        if virtual is None:
            return None
        home.change(virtual, -1)
        workers, ps = np.zeros_like(virtual.workers), np.zeros_like(virtual.ps)
        for v in np.flatnonzero(virtual.workers + virtual.ps).tolist():
            if v not in self._bound:
                taken = set(self._bound.values())
                free = [(occupied[s], s != v, s) for s in self._alike[v] if s not in taken]
                self._bound[v] = min(free)[-1]
            self._users[v] = self._users.get(v, 0) + 1
            workers[self._bound[v]], ps[self._bound[v]] = virtual.workers[v], virtual.ps[v]
        return self._book_row(job, AstraeaRow(1, 1, w, p, workers, ps), (job.tenant, virtual))

    def ever_fits_home(self, job: AstraeaJob) -> bool:
        """Whether the job's gang fits its tenant's own servers while they are empty."""
        w, p, count = self.gang(job)
        return self._best_fit(self._empty_homes[job.tenant], w, p, count) is not None

    def _book_row(
        self, job: AstraeaJob, row: AstraeaRow, home: tuple[str, AstraeaRow] | None = None
    ) -> Placement:
        self.room.change(row, -1)
        workers, ps = (
            {self._names[s]: int(counts[s]) for s in np.flatnonzero(counts)}
            for counts in (row.workers, row.ps)
        )
        return Placement(workers, ps, {"row": row, "home": home})

    def change(self, placement: Placement, sign: int) -> None:
        """Add `sign` times a placement's resources to what is free."""
        row: AstraeaRow = placement.facts["row"]
        self.room.change(row, sign)
        if placement.facts["home"] is None:
            return
        tenant, virtual = placement.facts["home"]
        self.homes[tenant].change(virtual, sign)
        for v in np.flatnonzero(virtual.workers + virtual.ps).tolist():
            self._users[v] -= sign
            if not self._users[v]:
                del self._bound[v]

    def fits(self, job: AstraeaJob, placement: Placement) -> bool:
        """Whether a placement fits what is free now."""
        return self.room.holds(placement.facts["row"])

    # Placement

    def _needed(self, w: int, p: int, elsewhere: int) -> int:
        return int(ps_for(elsewhere, self.instance.ps_ratio[w, p]))

    def _first_fit(self, room: Room, w: int, p: int, count: int) -> AstraeaRow | None:
        workers, ps = room.workers[:, w], room.ps[:, p]
        if count < 1 or workers.sum() < count or not ps.any():
            return None
        spread = _fill(workers, range(len(workers)), count)
        for host in range(len(workers)):
            if ps[host] >= self._needed(w, p, count - int(spread[host])):
                return self._row(w, p, spread, host)
        return self._around_hosts(room, w, p, count, range(len(workers)))

    def _best_fit(self, room: Room, w: int, p: int, count: int) -> AstraeaRow | None:
        workers, ps = room.workers[:, w], room.ps[:, p]
        if count < 1 or workers.sum() < count or not ps.any():
            return None
        whole = np.flatnonzero((workers >= count) & (ps >= 1))
        if whole.size:
            host = int(whole[np.argmin(workers[whole])])
            return self._row(w, p, _fill(workers, (host,), count), host)
        order = np.argsort(-workers, kind="stable")
        return self._around_hosts(room, w, p, count, [int(s) for s in order])

    def _around_hosts(
        self, room: Room, w: int, p: int, count: int, order: Any
    ) -> AstraeaRow | None:
        """First host in order that has the PSs needed once it is filled with workers first."""
        workers, ps = room.workers[:, w], room.ps[:, p]
        for host in order:
            spread = _fill(workers, (host, *(s for s in order if s != host)), count)
            if ps[host] >= self._needed(w, p, count - int(spread[host])):
                return self._row(w, p, spread, host)
        return None

    def _row(self, w: int, p: int, workers: Ints, host: int) -> AstraeaRow:
        ps = np.zeros_like(workers)
        ps[host] = self._needed(w, p, int(workers.sum() - workers[host]))
        return AstraeaRow(1, 1, w, p, workers, ps)

    # Facts

    def work(self, job: AstraeaJob) -> Fraction:
        """All of the job: 1."""
        return Fraction(1)

    def progress(self, job: AstraeaJob, placement: Placement) -> Fraction:
        """Share of the job's mini-batches trained in one slot."""
        row: AstraeaRow = placement.facts["row"]
        return row_progress(self.instance, job, row) / job.total_minibatches

    def max_workers(self, job: AstraeaJob) -> int:
        """Size of the gang on the empty cluster; 0 if the job fits nowhere."""
        return self.gang(job)[2]

    def drawn_workers(self, job: AstraeaJob) -> int:
        """Requested in the file, else drawn from 1..min(30, chunks) by (seed, job name)."""
        if job.requested_workers is not None:
            return job.requested_workers
        most = min(MOST_FIXED_WORKERS, job.chunks)
        return 1 + int(draws(self.environment.seed, job.name, "workers").random() * most)

    def fixed_workers(self, job: AstraeaJob) -> int:
        """Size of the gang, as far as the empty cluster holds it."""
        return self.gang(job)[2]

    def speed(self, job: AstraeaJob, workers: int) -> float:
        """Share of the job trained in a slot where first fit would place the workers; 0 if not."""
        key = (job.name, workers)
        if key not in self._speeds:
            w, p, _ = self.gang(job)
            row = self._first_fit(self._empty, w, p, workers)
            rate = 0 if row is None else row_progress(self.instance, job, row)
            self._speeds[key] = float(rate / job.total_minibatches)
        return self._speeds[key]

    def shares(self, job: AstraeaJob, workers: int) -> Floats:
        """Share of the cluster's workers of each type, then of its PSs of each type."""
        w, p, _ = self.gang(job)
        held_workers = np.zeros(self.instance.worker_count.shape[1])
        held_ps = np.zeros(self.instance.ps_count.shape[1])
        held_workers[w], held_ps[p] = workers, self._needed(w, p, workers - 1)
        totals = (self.instance.worker_count.sum(axis=0), self.instance.ps_count.sum(axis=0))
        parts = zip((held_workers, held_ps), totals, strict=True)
        return np.concatenate([held / np.maximum(1, total) for held, total in parts])

    def row(self, job: AstraeaJob, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file."""
        row: AstraeaRow = placement.facts["row"]
        moved = AstraeaRow(first, last, row.worker_type, row.ps_type, row.workers, row.ps)
        return write_row(self.instance, moved)


def _fill(room: Ints, order: Any, count: int) -> Ints:
    """Put `count` workers on servers in an order."""
    placed = np.zeros(len(room), dtype=np.int64)
    for s in order:
        placed[s] = min(count, int(room[s]))
        count -= int(placed[s])
        if not count:
            break
    return placed


def build_cluster(environment: Environment) -> AstraeaCluster:
    """Return the cluster as baselines see it."""
    return AstraeaCluster(environment)


class State(OptionalJobsState[AstraeaJob]):
    """Rows of windows; jobs that did not do their work in time were given up."""

    def reveal_slot(self, job: AstraeaJob) -> int:
        """A job that arrives at time r is told in slot r + 1, the first it may use."""
        return job.arrival + 1

    def relaxed(self, formulation: str) -> str:
        """Jobs may pause, resize and move."""
        return f"{formulation.partition(',')[0]},preemptive"


committed_rows = whole_window


__all__ = ["AstraeaCluster", "State", "build_cluster", "committed_rows"]
