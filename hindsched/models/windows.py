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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.modes import Modes, ps_for
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model, Variable
from hindsched.models.declared import Symbol
from hindsched.models.sums import PARTS, Terms, Uses, ragged, sum_rows, weighted
from hindsched.solutions.window_placing import EmptyCluster, WindowCluster, num_ps
from hindsched.solutions.window_row import WindowRow

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


class Starts(NamedTuple):
    """When and where a job may start in each of its modes.

    Parameters
    ----------
    table : Modes
        The job's modes.
    earliest : int
        First slot that may be used.
    ways : list of (int, Mode, int, list of (int, int))
        Modes that fit somewhere: position, mode, latest start, hosts with their workers.
    room : list of list of int
        Workers that an empty server holds, by type and server.
    """

    table: Modes
    earliest: int
    ways: list[tuple[int, Mode, int, list[tuple[int, int]]]]
    room: list[list[int]]

    @classmethod
    def of(
        cls,
        cluster: WindowCluster,
        table: Modes,
        earliest: int,
        last: int,
        latest_completion: int | None = None,
    ) -> Starts:
        """Starts from `earliest` on of what ends by slot `last`.

        Parameters
        ----------
        cluster : WindowCluster
            The cluster.
        table : Modes
            The job's modes.
        earliest, last : int
            First slot and last slot that may be used.
        latest_completion : int, optional
            Bound on t + L, from an incumbent.
        """
        empty = EmptyCluster.of(cluster)
        end = last + 1
        if latest_completion is not None:
            end = min(end, latest_completion)
        ways = []
        for k, mode in enumerate(table.tuples()):
            m, p, q, count, length = mode
            stop = end - length
            if stop >= earliest and (q or empty.most_workers[m] >= count):
                places = empty.hosts(m, p, q, count) if cluster.has_ps or q else [(-1, 0)]
                ways.append((k, mode, stop, places))
        return cls(table, earliest, ways, empty.room)

    @property
    def num_columns(self) -> int:
        """How many columns ``u`` `job_columns` makes where all are kept."""
        return sum((stop - self.earliest + 1) * len(places) for _, _, stop, places in self.ways)


def job_columns(starts: Starts, keep: Keep | None = None) -> JobColumns:
    """Columns of a job.

    Parameters
    ----------
    starts : Starts
        When and where it may start.
    keep : callable, optional
        ``keep(mode, t, n, g)``: whether a column may be in a better schedule than the incumbent.
    """
    columns = JobColumns(starts.table)
    for k, mode, stop, places in starts.ways:
        m, _, q, count, length = mode
        beside = []
        if not q:
            beside = [(h, min(most, count)) for h, most in enumerate(starts.room[m]) if most]
        for t in range(starts.earliest, stop + 1):
            kept = [(k, t, n, g) for n, g in places if keep is None or keep(mode, t, n, g)]
            columns.u += kept
            if kept:
                for h, most in beside:
                    index = (m, length, t, h)
                    columns.y[index] = max(columns.y.get(index, 0), most)
    return columns


@dataclass(frozen=True)
class WindowBlock:
    """A job's Pyomo block and what the rest of a program needs to know of it.

    Parameters
    ----------
    block : pyomo Block
        With variables ``u`` and ``y``.
    columns : JobColumns
        What they stand for.
    index : ndarray of int, shape (columns, 4)
        Those of u as an array.
    uses : list of Uses
        What they use of every (server, resource, slot).
    """

    block: Model
    columns: JobColumns
    index: Ints
    uses: list[Uses]

    @property
    def completion(self) -> Expr:
        """T + L of the chosen column."""
        table = self.columns.table
        return self.earned(lambda k, t: t + table.duration[k])

    @property
    def chosen(self) -> Expr:
        """Sum of u."""
        return weighted(self.block.u)

    def earned(self, value: Callable[[Ints, Ints], Sequence[float] | Ints | Floats]) -> Expr:
        """Sum of u, each times its value: of its mode k and its start t, both by column."""
        k, t = self.index[:, :2].T
        return weighted(self.block.u, np.asarray(value(k, t), dtype=float))

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
    block: Model, cluster: WindowCluster, columns: JobColumns, relax: bool, numbers: BlockNumbers
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
    index = np.array(columns.u, dtype=np.int64).reshape(-1, 4)
    spread = _Spread.of(columns, index)
    most, count = spread.most[spread.pair_y], spread.workers[spread.pair_u]
    within = [  # y[m, L, t, h] <= sum of min(most, N) u over the columns of that window
        Terms(block.y, spread.y, spread.y, np.ones(len(spread.y))),
        Terms(block.u, spread.pair_y, spread.u[spread.pair_u], -np.minimum(most, count)),
    ]
    split = [  # sum over h of y[m, L, t, h] == sum of (N - g) u over the columns of that window
        Terms(block.y, spread.span_of_y, spread.y, np.ones(len(spread.y))),
        Terms(block.u, spread.span_of_u, spread.u, -(spread.workers - spread.on_host)),
    ]
    block.add_component(
        numbers.within, sum_rows(list(columns.y), within, "<=", 0.0, numbers.within_doc)
    )
    block.add_component(numbers.split, sum_rows(spread.spans, split, "==", 0.0, numbers.split_doc))
    return WindowBlock(block, columns, index, _uses(block, cluster, columns, index))


class _Spread(NamedTuple):
    """The windows (m, L, t) with workers beside no PS, and who has a part in them.

    Parameters
    ----------
    spans : list of (m, L, t)
        The windows.
    y, span_of_y, most : ndarray
        Positions of all y, their windows, and the most workers of each.
    u, span_of_u, workers, on_host : ndarray
        Positions of the u over several servers, their windows, N and g.
    pair_y, pair_u : ndarray
        Every y with every u of its window: positions in `y` and in `u`.
    """

    spans: list[Span]
    y: Ints
    span_of_y: Ints
    most: Floats
    u: Ints
    span_of_u: Ints
    workers: Floats
    on_host: Floats
    pair_y: Ints
    pair_u: Ints

    @classmethod
    def of(cls, columns: JobColumns, index: Ints) -> _Spread:
        k, t, _, g = index.T
        table = columns.table
        u = np.flatnonzero(table.one_server[k] == 0)
        k, t = k[u], t[u]
        keys = np.stack([table.worker_type[k], table.duration[k], t], axis=1)
        spans = dict.fromkeys(map(tuple, keys.tolist()))
        number = {span: position for position, span in enumerate(spans)}
        span_of_u = np.array([number[key] for key in map(tuple, keys.tolist())], dtype=np.int64)
        span_of_y = np.array([number[key[:3]] for key in columns.y], dtype=np.int64)
        order = np.argsort(span_of_u, kind="stable")
        sizes = np.bincount(span_of_u, minlength=len(spans))
        pair_y, place = ragged(sizes[span_of_y])
        first = np.cumsum(sizes) - sizes
        return cls(
            list(spans), np.arange(len(columns.y)), span_of_y,
            np.array(list(columns.y.values()), dtype=float), u, span_of_u,
            table.workers[k].astype(float), g[u].astype(float), pair_y,
            order[first[span_of_y][pair_y] + place],
        )  # fmt: skip


def _uses(block: Model, cluster: WindowCluster, columns: JobColumns, index: Ints) -> list[Uses]:
    """What u and y use of every server's resources in the slots of their windows."""
    k, t, host, g = index.T
    table = columns.table
    hosted = np.flatnonzero(host >= 0)
    k, t, host, g = k[hosted], t[hosted], host[hosted], g[hosted]
    m, p, count = table.worker_type[k], table.ps_type[k], table.workers[k]
    amounts = g[:, None] * cluster.worker_demand[m]
    if cluster.has_ps:
        ps = ps_for(count - g, cluster.ps_ratio[m, p])
        amounts = amounts + ps[:, None] * cluster.ps_demand[p]
    cells = np.array(list(columns.y), dtype=np.int64).reshape(-1, 4)
    beside = np.arange(len(cells))
    needs = cluster.worker_demand[cells[:, 0]]
    return [
        _during(block.u, hosted, host, t, table.duration[k], amounts),
        _during(block.y, beside, cells[:, 3], cells[:, 2], cells[:, 1], needs),
    ]


def _during(
    variable: Variable, elements: Ints, servers: Ints, starts: Ints, lengths: Ints, amounts: Floats
) -> Uses:
    """Amounts, shape (elements, resources), in every slot of the elements' windows."""
    which, resource = np.nonzero(amounts)
    row, place = ragged(lengths[which])
    own = which[row]
    key = np.empty((len(own), PARTS), dtype=np.int64)
    key[:, 0], key[:, 1], key[:, 2] = servers[own], resource[row], starts[own] + place
    return Uses(variable, key, elements[own], amounts[own, resource[row]])


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
