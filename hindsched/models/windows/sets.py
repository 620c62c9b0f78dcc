"""What the rules of a job in one window ask: plain dicts by the indices that the rules have.

A mode k fixes a job's types, its number of workers N, its duration L and whether all stands on one
server; a column (k, t, n, g) starts mode k in slot t with g workers beside the PSs on host n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import Instance
from hindsched.instances.decimals import NEAR, how_many_left, loosened
from hindsched.instances.modes import Modes, ps_for, units
from hindsched.solutions.base import Assignment
from hindsched.solutions.capacity_timeline import CapacityTimeline
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.window_solution import WindowRow

Column = tuple[int, int, int, int]
"""Mode, first slot, host of the PSs (-1: none), workers on the host."""
Span = tuple[int, int, int]
"""Worker type, duration, first slot."""
Beside = tuple[int, int, int, int]
"""Worker type, duration, first slot, server."""
Cell = tuple[int, int, int]
"""Server, resource, slot."""
AnyRow = TypeVar("AnyRow", bound=WindowRow)


class Mode(NamedTuple):
    """How a job runs, but for its start and its placement."""

    worker_type: int
    ps_type: int
    one_server: int
    workers: int
    duration: int


class WindowCluster(Protocol):
    """What the rules must know: capacities (servers, resources), what a unit of a type takes.

    ``ps_ratio`` is the bandwidth of a worker over that of a PS, (worker types, PS types).
    """

    @property
    def server_capacity(self) -> Floats: ...
    @property
    def worker_demand(self) -> Floats: ...
    @property
    def ps_demand(self) -> Floats: ...
    @property
    def ps_ratio(self) -> Floats: ...
    @property
    def has_ps(self) -> bool: ...


def num_ps(cluster: WindowCluster, m: int, p: int, elsewhere: int) -> int:
    """Least number of PSs on one host whose bandwidth covers the workers elsewhere, (2i)."""
    return max(1, math.ceil(elsewhere * cluster.ps_ratio[m, p] - NEAR))


def host_use(cluster: WindowCluster, mode: Mode, on_host: int) -> Floats:
    """What a mode's workers on the host and its PSs take, shape (resources,)."""
    used: Floats = on_host * cluster.worker_demand[mode.worker_type]
    if not cluster.has_ps:
        return used
    ps = num_ps(cluster, mode.worker_type, mode.ps_type, mode.workers - on_host)
    return used + ps * cluster.ps_demand[mode.ps_type]


def row_use(cluster: WindowCluster, row: WindowRow) -> Floats:
    """What a row uses in each of its slots, shape (servers, resources)."""
    used = np.outer(row.workers, cluster.worker_demand[row.worker_type])
    return used + np.outer(row.ps, cluster.ps_demand[row.ps_type]) if row.ps_type >= 0 else used


def hosts(
    cluster: WindowCluster, free: Floats, m: int, p: int, q: int, count: int
) -> list[tuple[int, int]]:
    """(host, workers on it) that fit `free`, shape (servers, resources), which is `loosened`."""
    if not cluster.has_ps and not q:
        return [(-1, 0)]
    worker = cluster.worker_demand[m]
    room = how_many_left(free, worker, count)
    on_host = np.array([count]) if q else np.arange(min(int(room.max(initial=0)), count - 1) + 1)
    need = on_host[:, None] * worker
    if cluster.has_ps:
        num = ps_for(count - on_host, cluster.ps_ratio[m, p])
        need = need + num[:, None] * cluster.ps_demand[p]
    fits = (need <= free[:, None]).all(axis=-1)
    if not q:
        fits &= on_host <= room[:, None]
    n, which = np.nonzero(fits)
    return list(zip(n.tolist(), on_host[which].tolist(), strict=True))


class Pieces(NamedTuple):
    """Work of a slot in each mode, and of the job, where slots need not touch."""

    rates: Sequence[Fraction]
    work: int


@dataclass
class JobSets:
    """One job's sets and facts; windows (m, L, t) are those of columns over several servers."""

    modes: list[Mode]  # k
    pieces: Pieces | None = None  # where slots need not touch
    columns: list[Column] = field(default_factory=list)  # what may be chosen
    columns_of: dict[Span, list[Column]] = field(default_factory=dict)  # by window
    servers_of: dict[Span, list[int]] = field(default_factory=dict)  # with room for its workers
    most_beside: dict[Beside, int] = field(default_factory=dict)  # beside no PS

    def last_slot(self, column: Column) -> int:
        """In which a column ends."""
        return column[1] + self.modes[column[0]].duration - 1

    def beside(self, column: Column) -> int:
        """Workers of a column that stand beside no PS."""
        return self.modes[column[0]].workers - column[3]


class EmptyCluster:
    """Where modes can stand while nothing runs: the same for all jobs of a cluster."""

    def __init__(self, cluster: WindowCluster) -> None:
        self.cluster = cluster
        self._free = loosened(cluster.server_capacity, cluster.server_capacity)
        self._hosts: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
        self.room = units(cluster.server_capacity, cluster.worker_demand).T.tolist()
        """Workers that fit, by type and server."""

    def _ways(
        self, table: Modes, first: int, last: int
    ) -> Iterator[tuple[int, Mode, range, list[tuple[int, int]]]]:
        """Modes that fit somewhere: position, mode, starts, hosts with their workers."""
        for k, mode in enumerate(map(Mode._make, table.tuples())):
            starts = range(first, last - mode.duration + 2)
            if starts and (mode.one_server or sum(self.room[mode.worker_type]) >= mode.workers):
                if mode[:4] not in self._hosts:
                    self._hosts[mode[:4]] = hosts(self.cluster, self._free, *mode[:4])
                yield k, mode, starts, self._hosts[mode[:4]]

    def num_columns(self, table: Modes, first: int, last: int) -> int:
        """How many columns a job has where all are kept."""
        return sum(len(starts) * len(at) for _, _, starts, at in self._ways(table, first, last))

    def job_sets(
        self, table: Modes, first: int, last: int, pieces: Pieces | None = None
    ) -> JobSets:
        """Sets of a job that may run from slot `first` to `last`."""
        job = JobSets([Mode._make(mode) for mode in table.tuples()], pieces)
        for k, mode, starts, places in self._ways(table, first, last):
            m, count, length = mode.worker_type, mode.workers, mode.duration
            room = {h: most for h, most in enumerate(self.room[m]) if most}
            for t in starts:
                columns = [(k, t, n, g) for n, g in places]
                job.columns += columns
                if mode.one_server or not columns:
                    continue
                job.columns_of.setdefault((m, length, t), []).extend(columns)
                job.servers_of[m, length, t] = list(room)
                for h, most in room.items():
                    cell = (m, length, t, h)
                    job.most_beside[cell] = max(job.most_beside.get(cell, 0), min(most, count))
        return job


def priced_sets(
    cluster: WindowCluster, table: Modes, free: Floats, prices: Floats,
    most: Callable[[int, int], float],
) -> JobSets:  # fmt: skip
    """Sets of a job at prices, of columns alone that fit what is left and may cost little enough.

    `free` is `loosened`; both have shape (servers, resources, slots). A mode k in the window that
    starts in slot t may cost ``most(k, t)`` at most, below 0 nothing. A column costs at least what
    its host does, and for each worker beside the PSs what the cheapest server with room does.
    """
    job = JobSets([Mode._make(mode) for mode in table.tuples()])
    for k, mode in enumerate(job.modes):
        m, p, q, count, length = mode
        for t in range(1, free.shape[2] - length + 2):
            limit, window = most(k, t), slice(t - 1, t - 1 + length)
            if limit < 0:
                continue
            room, price = free[..., window].min(axis=2), prices[..., window].sum(axis=2)
            each = price @ cluster.worker_demand[m]
            fits = how_many_left(room, cluster.worker_demand[m], count)
            beside = np.where(each <= limit, fits, 0)
            least = float(each[beside > 0].min(initial=np.inf))
            for n, g in hosts(cluster, room, m, p, q, count):
                others = count - g
                cost = others * least if others else 0.0
                if n >= 0:
                    cost += float(price[n] @ host_use(cluster, mode, g))
                if cost <= limit and (q or others <= beside.sum() - min(beside[n], g)):
                    job.columns.append((k, t, n, g))
                    if not q:
                        job.columns_of.setdefault((m, length, t), []).append((k, t, n, g))
            for h in np.flatnonzero(beside).tolist() if (m, length, t) in job.columns_of else ():
                cell = (m, length, t, h)
                job.most_beside[cell] = max(job.most_beside.get(cell, 0), int(beside[h]))
    for m, length, t, h in job.most_beside:
        job.servers_of.setdefault((m, length, t), []).append(h)
    return job


def fixed_rows(
    instance: Instance, commitments: Commitments, read_row: Callable[[Any, str, Assignment], AnyRow]
) -> dict[str, tuple[AnyRow, ...]]:
    """Rows of the jobs that can no longer change: locked, or begun before `now`."""
    found: dict[str, tuple[AnyRow, ...]] = {}
    for job in instance.jobs:
        rows = [
            read_row(instance, job.name, row) for row in commitments.assignments.get(job.name, ())
        ]
        begun = any(row.first < commitments.now for row in rows)
        if rows and (begun or job.name in commitments.locked):
            found[job.name] = tuple(sorted(rows, key=lambda row: row.first))
    return found


def left_by(
    cluster: WindowCluster, fixed: Mapping[str, Iterable[WindowRow]]
) -> CapacityTimeline[Floats]:
    """What fixed rows leave of the servers, by slot."""
    free = CapacityTimeline(cluster.server_capacity)
    for rows in fixed.values():
        for row in rows:
            free.book(row.first, row.last, row_use(cluster, row))
    return free
