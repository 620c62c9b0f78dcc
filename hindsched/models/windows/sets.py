"""What the rules of a job in one window ask: plain dicts by the indices that the rules have.

A mode k fixes a job's types, its number of workers N, its duration L and whether all stands on one
server; a column (k, t, n, g) starts mode k in slot t with g workers beside the PSs on host n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import Instance
from hindsched.instances.decimals import NEAR, how_many_left, loosened
from hindsched.instances.modes import Modes, WindowInstance, modes, ps_for
from hindsched.models.algebra import grouped
from hindsched.solutions.base import Assignment, Commitments
from hindsched.solutions.capacity_timeline import CapacityTimeline
from hindsched.solutions.window_solution import WindowRow, row_use

Column = tuple[int, int, int, int]  # mode, first slot, host of the PSs (-1: none), workers there
Span = tuple[int, int, int]  # worker type, duration, first slot
Beside = tuple[int, int, int, int]  # worker type, duration, first slot, server
AnyRow = TypeVar("AnyRow", bound=WindowRow)


class Mode(NamedTuple):
    """How a job runs, but for its start and its placement."""

    worker_type: int
    ps_type: int
    one_server: int
    workers: int
    duration: int


def num_ps(cluster: WindowInstance, m: int, p: int, elsewhere: int) -> int:
    """Least number of PSs on one host whose bandwidth covers the workers elsewhere, (2i)."""
    return max(1, math.ceil(elsewhere * cluster.ps_ratio[m, p] - NEAR))


def host_use(cluster: WindowInstance, mode: Mode, on_host: int) -> Floats:
    """What a mode's workers on the host and its PSs take, shape (resources,)."""
    used: Floats = on_host * cluster.worker_demand[mode.worker_type]
    if not cluster.has_ps:
        return used
    ps = num_ps(cluster, mode.worker_type, mode.ps_type, mode.workers - on_host)
    return used + ps * cluster.ps_demand[mode.ps_type]


def window_row(
    cluster: WindowInstance, mode: Mode, first: int, host: int, on_host: int, beside: Ints
) -> WindowRow:
    """The row of a mode from a slot on, with workers on the host of the PSs and `beside` no PS."""
    workers, ps = beside.copy(), np.zeros_like(beside)
    if host >= 0:
        workers[host] += on_host
    if host >= 0 and cluster.has_ps:
        ps[host] = num_ps(cluster, mode.worker_type, mode.ps_type, mode.workers - on_host)
    last, ps_type = first + mode.duration - 1, mode.ps_type if cluster.has_ps else -1
    return WindowRow(first, last, mode.worker_type, ps_type, workers, ps)


def hosts(
    cluster: WindowInstance, free: Floats, m: int, p: int, q: int, count: int
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


@dataclass
class WindowJobSets:
    """One job's sets and facts; windows (m, L, t) are those of columns over several servers."""

    modes: list[Mode]  # k
    columns: list[Column] = field(default_factory=list)  # what may be chosen
    columns_of: dict[Span, list[Column]] = field(default_factory=dict)  # by window
    most_beside: dict[Beside, int] = field(default_factory=dict)  # beside no PS

    @classmethod
    def of(cls, table: Modes) -> WindowJobSets:
        """Sets without columns."""
        return cls([Mode._make(mode) for mode in table.tuples()])

    def add(
        self, k: int, t: int, places: Iterable[tuple[int, int]], room: Mapping[int, int]
    ) -> None:
        """Add columns of a mode from slot t on: hosts with their workers, room by server."""
        mode, columns = self.modes[k], [(k, t, n, g) for n, g in places]
        self.columns += columns
        if mode.one_server or not columns:
            return
        span = mode.worker_type, mode.duration, t
        self.columns_of.setdefault(span, []).extend(columns)
        for h, most in room.items():
            most = max(self.most_beside.get((*span, h), 0), min(most, mode.workers))
            self.most_beside[*span, h] = most

    @cached_property
    def servers_of(self) -> Mapping[Span, list[int]]:
        """Servers with room for a window's workers; read when all columns are there."""
        return grouped(((m, length, t), h) for m, length, t, h in self.most_beside)

    def last_slot(self, column: Column) -> int:
        """In which a column ends."""
        return column[1] + self.modes[column[0]].duration - 1

    def beside(self, column: Column) -> int:
        """Workers of a column that stand beside no PS."""
        return self.modes[column[0]].workers - column[3]


Spans = Mapping[int, tuple[int, int]]  # first and last slot of the jobs at these positions
Way = tuple[int, range, list[tuple[int, int]]]  # a mode, its starts, hosts with their workers


def _ways(instance: WindowInstance, spans: Spans) -> Iterator[tuple[int, WindowJobSets, list[Way]]]:
    """Each job's sets, still without columns, and how it can stand while nothing runs."""
    free = loosened(instance.server_capacity, instance.server_capacity)
    room = instance.worker_room.sum(axis=0).tolist()
    known: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for j, (first, last) in spans.items():
        job: Any = instance.jobs[j]
        sets = WindowJobSets.of(modes(instance, job))
        ways = list[Way]()
        for k, (m, p, q, workers, duration) in enumerate(sets.modes):
            starts = range(first, last - duration + 2)
            if starts and (q or room[m] >= workers):
                if (m, p, q, workers) not in known:
                    known[m, p, q, workers] = hosts(instance, free, m, p, q, workers)
                ways.append((k, starts, known[m, p, q, workers]))
        yield j, sets, ways


def sets_by_job(instance: WindowInstance, spans: Spans) -> dict[int, WindowJobSets]:
    """Sets of the jobs at these positions."""
    by_job, room = dict[int, WindowJobSets](), instance.worker_room.T.tolist()
    for j, sets, ways in _ways(instance, spans):
        for k, starts, places in ways:
            fits = {h: most for h, most in enumerate(room[sets.modes[k].worker_type]) if most}
            for t in starts:
                sets.add(k, t, places, fits)
        by_job[j] = sets
    return by_job


def num_columns(instance: WindowInstance, spans: Spans) -> int:
    """How many columns the jobs at these positions have where all are kept."""
    ways = (way for _, _, job_ways in _ways(instance, spans) for way in job_ways)
    return sum(len(starts) * len(places) for _, starts, places in ways)


def fixed_rows(
    instance: Instance, commitments: Commitments, read_row: Callable[[Any, str, Assignment], AnyRow]
) -> dict[str, tuple[AnyRow, ...]]:
    """Rows of the jobs that can no longer change: locked, or begun before `now`."""
    fixed: dict[str, tuple[AnyRow, ...]] = {}
    for job in instance.jobs:
        rows = [
            read_row(instance, job.name, row) for row in commitments.assignments.get(job.name, ())
        ]
        begun = any(row.first < commitments.now for row in rows)
        if rows and (begun or job.name in commitments.locked):
            fixed[job.name] = tuple(sorted(rows, key=lambda row: row.first))
    return fixed


def left_by(
    cluster: WindowInstance, fixed: Mapping[str, Iterable[WindowRow]],
    capacity: Floats | None = None,
) -> CapacityTimeline[Floats]:  # fmt: skip
    """What fixed rows leave of the servers, or of what is said to be theirs, by slot."""
    free = CapacityTimeline(cluster.server_capacity if capacity is None else capacity)
    for rows in fixed.values():
        for row in rows:
            free.book(row.first, row.last, row_use(cluster, row))
    return free
