"""The block of one non-preemptive job in the mode-based form, written once for its families.

A job takes one window with one unchanging placement of workers and, where there are any, parameter
servers (PSs). The offline programs, the round problems and the subproblems of batchsched and
astraea consist of these blocks.

================================  ==============================================================
``u[k, t, n, g]``                 mode k starts in slot t; PS host n holds g of its workers. For
                                  q = 1, g = N; without PSs over several servers n = -1
``y[m, L, t, h]``                 workers of type m on server h that stand beside no PS, in the
                                  window of L slots from t
================================  ==============================================================

One PS host and the least sufficient number of PSs are no loss of generality, so that the
constraints on types, PSs and bandwidth ((2b)-(2e), (2g), (2i) of batchsched; (3e)-(3j) of astraea)
hold by the choice of columns, and "all on one server" needs no binary: a column with q = 0 is
never better on one server. The block is exact; its relaxation is much tighter than the printed
one's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import loosened
from hindsched.instances.modes import Modes, units
from hindsched.models import algebra as pyo
from hindsched.models.declared import Symbol
from hindsched.solutions.window_placing import WindowCluster, hosts, num_ps
from hindsched.solutions.window_row import WindowRow

Key = tuple[int, int, int]
"""Server, resource, slot."""
Span = tuple[int, int, int]
"""Worker type, duration, slot."""
Mode = tuple[int, int, int, int, int]
"""Worker type, PS type, whether on one server, workers, duration."""
Keep = Callable[[Mode, int, int, int], bool]


class Window(NamedTuple):
    """A schedule: slots (both inclusive), types (PS type -1 without PSs), counts by server."""

    first: int
    last: int
    worker_type: int
    ps_type: int
    workers: Ints
    ps: Ints


@dataclass(frozen=True)
class BlockNumbers:
    """How a family's paper numbers the two constraints of the block.

    Parameters
    ----------
    within, within_doc : str
        No worker outside the chosen window.
    split, split_doc : str
        The workers beside no PS.
    """

    within: str
    within_doc: str
    split: str
    split_doc: str


WINDOW_SYMBOLS = {
    "u": Symbol("mode, slot, host, on host", "jobs"),
    "y": Symbol("worker type, duration, slot, server", "workers"),
}
"""Indices and units of the block's variables."""


@dataclass
class JobColumns:
    """Columns of a job's block and what they use.

    Parameters
    ----------
    table : Modes
        The modes k.
    u : list of (k, t, n, g)
        Columns that choose mode, start and host.
    y : dict
        Most workers of ``y[m, L, t, h]``.
    """

    table: Modes
    u: list[tuple[int, int, int, int]] = field(default_factory=list)
    y: dict[tuple[int, int, int, int], int] = field(default_factory=dict)


def job_columns(
    cluster: WindowCluster,
    table: Modes,
    earliest: int,
    last: int,
    latest_completion: float,
    keep: Keep | None = None,
) -> JobColumns:
    """Columns of a job that starts from `earliest` on and ends by slot `last`.

    Parameters
    ----------
    cluster : WindowCluster
        The cluster.
    table : Modes
        The job's modes.
    earliest, last : int
        First slot and last slot that may be used.
    latest_completion : float
        Bound on t + L, from an incumbent.
    keep : callable, optional
        ``keep(mode, t, n, g)``: whether a column may be in a better schedule than the incumbent.
    """
    columns = JobColumns(table)
    room = _room(cluster, table)
    for k, mode, stop, places in _starts(cluster, table, earliest, last, latest_completion):
        m, _, q, count, length = mode
        for t in range(earliest, stop + 1):
            kept = [(k, t, n, g) for n, g in places if keep is None or keep(mode, t, n, g)]
            columns.u += kept
            if not q and kept:
                for h in np.flatnonzero(room[:, m]):
                    index = (m, length, t, int(h))
                    most = min(int(room[h, m]), count)
                    columns.y[index] = max(columns.y.get(index, 0), most)
    return columns


def count_columns(
    cluster: WindowCluster, table: Modes, earliest: int, last: int, latest_completion: float
) -> int:
    """How many columns ``u`` `job_columns` makes where all are kept."""
    starts = _starts(cluster, table, earliest, last, latest_completion)
    return sum((stop - earliest + 1) * len(places) for _, _, stop, places in starts)


def _room(cluster: WindowCluster, table: Modes) -> Ints:
    """Workers of each type that an empty server takes, by (server, type)."""
    most_workers = int(table.workers.max(initial=0))
    return np.minimum(units(cluster.server_capacity, cluster.worker_demand), most_workers)


def _starts(
    cluster: WindowCluster, table: Modes, earliest: int, last: int, latest_completion: float
) -> Iterator[tuple[int, Mode, int, list[tuple[int, int]]]]:
    """Modes that fit somewhere, each with its latest start and its hosts."""
    room = _room(cluster, table)
    free = loosened(cluster.server_capacity, cluster.server_capacity)
    seen: dict[Mode, list[tuple[int, int]]] = {}
    for k, mode in enumerate(table.tuples()):
        m, p, q, count, length = mode
        stop = min(last + 1, int(np.floor(latest_completion + 1e-9))) - length
        if stop < earliest:
            continue
        if cluster.has_ps or q:
            key = (m, p, q, count, 0)
            if key not in seen:
                seen[key] = hosts(cluster, free, m, p, q, count)
            places = seen[key]
        else:
            places = [(-1, 0)]
        if not q and room[:, m].sum() < count:
            continue
        yield k, mode, stop, places


@dataclass(frozen=True)
class WindowBlock:
    """A job's Pyomo block and what the rest of a program needs to know of it.

    Parameters
    ----------
    block : pyomo Block
        With variables ``u`` and ``y``.
    columns : JobColumns
        What they stand for.
    use : dict
        By (server, resource, slot): amount times variable of whatever uses it.
    completion, chosen : expression
        t + L of the chosen column, and the sum of u.
    """

    block: Any
    columns: JobColumns
    use: dict[Key, list[Any]]
    completion: Any
    chosen: Any

    def read(self, cluster: WindowCluster) -> Window | None:
        """Row of the schedule at the variables' values, or None if the job is not scheduled."""
        table = self.columns.table.tuples()
        for index in self.columns.u:
            value = self.block.u[index].value
            if value is None or value < 0.5:
                continue
            k, t, n, g = index
            m, p, q, count, length = table[k]
            workers = np.zeros(len(cluster.server_capacity), dtype=np.int64)
            ps = np.zeros_like(workers)
            if n >= 0:
                workers[n] += g
                if cluster.has_ps:
                    ps[n] = num_ps(cluster, m, p, count - g)
            if not q:
                for h in range(len(workers)):
                    if (m, length, t, h) in self.columns.y:
                        workers[h] += round(self.block.y[m, length, t, h].value or 0.0)
            ps_type = p if cluster.has_ps else -1
            return Window(t, t + length - 1, m, ps_type, workers, ps)
        return None

    def write(self, cluster: WindowCluster, row: WindowRow | None) -> None:
        """Set the variables to a row's schedule, as far as the columns can express it.

        A row over several servers whose host has spare PSs, or one whose number of workers is not
        the least for its duration, is expressed by a column that uses no more; without such a
        column the variables are left without values.
        """
        for index in self.columns.u:
            self.block.u[index].value = 0
        for cell in self.columns.y:
            self.block.y[cell].value = 0
        if row is None:
            return
        found = _matching_column(self.columns, cluster, row)
        if found is None:
            for index in self.columns.u:
                self.block.u[index].value = None
            return
        index, beside = found
        self.block.u[index].value = 1
        k, t = index[0], index[1]
        m, _, q, _, length = self.columns.table.tuples()[k]
        if not q:
            for h in np.flatnonzero(beside):
                self.block.y[m, length, t, int(h)].value = int(beside[h])


def add_job(
    block: Any, cluster: WindowCluster, columns: JobColumns, relax: bool, numbers: BlockNumbers
) -> WindowBlock:
    """Fill a Pyomo block with a job's columns and the split of its workers.

    Parameters
    ----------
    block : pyomo Block
        Receives ``u``, ``y`` and two constraints.
    cluster : WindowCluster
        The cluster.
    columns : JobColumns
        The columns.
    relax : bool
        Drop integrality.
    numbers : BlockNumbers
        The family's names of the two constraints.
    """
    table = columns.table.tuples()
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    block.u = pyo.Var(
        columns.u,
        domain=pyo.UnitInterval if relax else pyo.Binary,
        doc="(ours) a mode starts in a slot on a PS host that holds so many of its workers",
    )
    block.y = pyo.Var(
        list(columns.y),
        domain=whole,
        bounds=lambda _, *index: (0, columns.y[index]),
        doc="(ours) workers on a server beside no PS, in a window",
    )
    use: dict[Key, list[Any]] = defaultdict(list)
    spread: dict[Span, list[Any]] = defaultdict(list)
    fits: dict[Span, dict[int, list[Any]]] = defaultdict(dict)
    needs: dict[tuple[int, int, int, int], list[tuple[int, float]]] = {}
    for (k, t, n, g), variable in block.u.items():
        m, p, q, count, length = table[k]
        if n >= 0:
            kind = (m, p, count, g)
            if kind not in needs:
                need = g * cluster.worker_demand[m]
                if cluster.has_ps:
                    need = need + num_ps(cluster, m, p, count - g) * cluster.ps_demand[p]
                needs[kind] = _amounts(need)
            _add_use(use, needs[kind], n, t, length, variable)
        if not q:
            spread[m, length, t].append((count - g) * variable)
            fits[m, length, t].setdefault(count, []).append(variable)
    chosen = {
        span: [(count, pyo.quicksum(variables)) for count, variables in own.items()]
        for span, own in fits.items()
    }
    beside: dict[Span, list[Any]] = defaultdict(list)
    worker_needs = [_amounts(need) for need in cluster.worker_demand]
    for (m, length, t, h), variable in block.y.items():
        _add_use(use, worker_needs[m], h, t, length, variable)
        beside[m, length, t].append(variable)

    def within(b: Any, m: int, length: int, t: int, h: int) -> Any:
        most = columns.y[m, length, t, h]
        room = pyo.quicksum(min(most, count) * picked for count, picked in chosen[m, length, t])
        return b.y[m, length, t, h] <= room

    def split(_: Any, m: int, length: int, t: int) -> Any:
        return pyo.quicksum(beside[m, length, t]) == pyo.quicksum(spread[m, length, t])

    block.add_component(
        numbers.within, pyo.Constraint(list(columns.y), rule=within, doc=numbers.within_doc)
    )
    block.add_component(
        numbers.split, pyo.Constraint(list(spread), rule=split, doc=numbers.split_doc)
    )
    return WindowBlock(
        block,
        columns,
        dict(use),
        pyo.quicksum(float(i[1] + table[i[0]][4]) * block.u[i] for i in columns.u),
        pyo.quicksum(block.u[index] for index in columns.u),
    )


def _add_use(
    use: dict[Key, list[Any]],
    need: list[tuple[int, float]],
    server: int,
    start: int,
    length: int,
    variable: Any,
) -> None:
    for r, amount in need:
        part = amount * variable
        for slot in range(start, start + length):
            use[server, r, slot].append(part)


def _amounts(need: Floats) -> list[tuple[int, float]]:
    return [(r, amount) for r, amount in enumerate(need.tolist()) if amount]


def _matching_column(
    columns: JobColumns, cluster: WindowCluster, row: WindowRow
) -> tuple[tuple[int, int, int, int], Ints] | None:
    table = columns.table.tuples()
    for index in columns.u:
        k, t, n, g = index
        m, p, q, count, length = table[k]
        if t != row.first or length > row.slots or m != row.worker_type:
            continue
        if cluster.has_ps and p != row.ps_type:
            continue
        left = row.workers.copy()
        if n >= 0:
            left[n] -= g
            spare_ps = not cluster.has_ps or row.ps[n] >= num_ps(cluster, m, p, count - g)
            if left[n] < 0 or not spare_ps:
                continue
        needed = 0 if q else count - g
        room = np.array([columns.y.get((m, length, t, h), 0) for h in range(len(left))])
        beside = np.minimum(np.minimum(left, room), min(count, needed))
        if beside.sum() < needed:
            continue
        surplus = int(beside.sum()) - needed
        for h in range(len(beside)):
            take = min(surplus, int(beside[h]))
            beside[h] -= take
            surplus -= take
        return index, beside
    return None
