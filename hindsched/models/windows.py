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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.base import Instance
from hindsched.instances.modes import Modes, units
from hindsched.models.base import Commitments
from hindsched.solutions.base import Assignment
from hindsched.solutions.window_row import WindowRow

Key = tuple[int, int, int]
"""Server, resource, slot."""
Keep = Callable[[tuple[int, int, int, int, int], int, int, int], bool]
Reals = NDArray[np.float64]
AnyRow = TypeVar("AnyRow", bound=WindowRow)


class WindowCluster(Protocol):
    """What the block must know of a cluster.

    Attributes
    ----------
    server_capacity : ndarray, shape (servers, resources)
        Capacities.
    worker_demand, ps_demand : ndarray, shapes (worker types, resources) and (PS types, resources)
        What one worker and one PS of a type take.
    worker_bandwidth, ps_bandwidth : ndarray, shapes (worker types,) and (PS types,)
        Bandwidths.
    has_ps : bool
        Whether jobs need PSs at all.
    """

    @property
    def server_capacity(self) -> Reals: ...  # noqa: D102
    @property
    def worker_demand(self) -> Reals: ...  # noqa: D102
    @property
    def ps_demand(self) -> Reals: ...  # noqa: D102
    @property
    def worker_bandwidth(self) -> Reals: ...  # noqa: D102
    @property
    def ps_bandwidth(self) -> Reals: ...  # noqa: D102
    @property
    def has_ps(self) -> bool: ...  # noqa: D102


class Window(NamedTuple):
    """A schedule: slots (both inclusive), types (PS type -1 without PSs), counts by server."""

    first: int
    last: int
    worker_type: int
    ps_type: int
    workers: NDArray[np.int64]
    ps: NDArray[np.int64]


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


def fixed_rows(
    instance: Instance,
    commitments: Commitments,
    read_row: Callable[[Any, str, Assignment], AnyRow],
) -> dict[str, tuple[AnyRow, ...]]:
    """Rows of the jobs that can no longer change: locked, or begun before `now`.

    Parameters
    ----------
    instance : Instance
        The instance.
    commitments : Commitments
        What was decided.
    read_row : callable
        How the family reads a row of the solution file.
    """
    found: dict[str, tuple[AnyRow, ...]] = {}
    for job in instance.jobs:
        rows = [
            read_row(instance, job.name, row) for row in commitments.assignments.get(job.name, ())
        ]
        begun = any(row.first < commitments.now for row in rows)
        if rows and (begun or job.name in commitments.locked):
            found[job.name] = tuple(sorted(rows, key=lambda row: row.first))
    return found


def num_ps(cluster: WindowCluster, m: int, p: int, elsewhere: int) -> int:
    """Least number of PSs on one host whose bandwidth covers the workers elsewhere, (2i)."""
    ratio = cluster.worker_bandwidth[m] / cluster.ps_bandwidth[p]
    return max(1, int(np.ceil(elsewhere * ratio - 1e-9)))


def hosts(
    cluster: WindowCluster, free: NDArray[np.float64], m: int, p: int, q: int, count: int
) -> list[tuple[int, int]]:
    """(host, workers on it) that fit `free`, shape (servers, resources)."""
    worker = cluster.worker_demand[m]
    room = np.minimum(units(free, worker[None])[:, 0], count)
    slack = 1e-9 * (1 + np.abs(free))
    found: list[tuple[int, int]] = []
    for n in range(len(free)):
        for g in (count,) if q else range(int(min(room[n], count - 1)) + 1):
            need = g * worker
            if cluster.has_ps:
                need = need + num_ps(cluster, m, p, count - g) * cluster.ps_demand[p]
            if np.all(need <= free[n] + slack[n]):
                found.append((n, g))
    return found


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
    most_workers = int(table.workers.max(initial=0))
    room = np.minimum(units(cluster.server_capacity, cluster.worker_demand), most_workers)
    seen: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    for k, (m, p, q, count, length) in enumerate(table.tuples()):
        stop = min(last + 1, int(np.floor(latest_completion + 1e-9))) - length
        if stop < earliest:
            continue
        if cluster.has_ps or q:
            key = (m, p, q, count)
            if key not in seen:
                seen[key] = hosts(cluster, cluster.server_capacity, m, p, q, count)
            places = seen[key]
        else:
            places = [(-1, 0)]
        if not q and room[:, m].sum() < count:
            continue
        for t in range(earliest, stop + 1):
            mode = (m, p, q, count, length)
            kept = [(k, t, n, g) for n, g in places if keep is None or keep(mode, t, n, g)]
            columns.u += kept
            if not q and kept:
                for h in np.flatnonzero(room[:, m]):
                    index = (m, length, t, int(h))
                    most = min(int(room[h, m]), count)
                    columns.y[index] = max(columns.y.get(index, 0), most)
    return columns


def add_job(
    block: Any,
    cluster: WindowCluster,
    columns: JobColumns,
    relax: bool,
    names: tuple[str, str] = ("eq_2k", "eq_13c"),
) -> None:
    """Fill a block: columns, the split of workers, and ``block.use`` by (server, resource, slot).

    ``block.use`` maps `Key` to a list of (amount, variable); ``block.completion`` is the linear
    expression of t + L and ``block.chosen`` that of sum u. `names` are those of the two constraint
    lists by the family's equation numbers: no worker outside the chosen window, and the number of
    workers beside no PS.
    """
    table = columns.table.tuples()
    domain = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    block.u = pyo.Var(columns.u, domain=domain)
    block.y = pyo.Var(list(columns.y), domain=whole, bounds=lambda _, *index: (0, columns.y[index]))
    use: dict[Key, list[tuple[float, Any]]] = defaultdict(list)
    spread: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
    fits: dict[tuple[int, int, int, int], list[Any]] = defaultdict(list)
    for k, t, n, g in columns.u:
        m, p, q, count, length = table[k]
        variable = block.u[k, t, n, g]
        if n >= 0:
            need = g * cluster.worker_demand[m]
            if cluster.has_ps:
                need = need + num_ps(cluster, m, p, count - g) * cluster.ps_demand[p]
            _add_use(use, need, n, t, length, variable)
        if not q:
            spread[m, length, t].append((count - g) * variable)
            fits[m, length, t, count].append(variable)
    sums: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
    links: dict[tuple[int, int, int], list[tuple[int, Any]]] = defaultdict(list)
    for (m, length, t, count), variables in fits.items():
        links[m, length, t].append((count, pyo.quicksum(variables)))
    outside = pyo.ConstraintList(doc="no worker of a window that is not chosen")
    beside = pyo.ConstraintList(doc="workers beside no PS")
    setattr(block, names[0], outside)
    setattr(block, names[1], beside)
    for (m, length, t, h), most in columns.y.items():
        variable = block.y[m, length, t, h]
        _add_use(use, cluster.worker_demand[m], h, t, length, variable)
        sums[m, length, t].append(variable)
        outside.add(
            variable <= pyo.quicksum(min(most, count) * w for count, w in links[m, length, t])
        )
    for index, terms in spread.items():
        beside.add(pyo.quicksum(sums[index]) == pyo.quicksum(terms))
    block.use = dict(use)
    block.chosen = pyo.quicksum(block.u[index] for index in columns.u)
    block.completion = pyo.quicksum(
        float(index[1] + table[index[0]][4]) * block.u[index] for index in columns.u
    )
    block.columns = columns


def _add_use(
    use: dict[Key, list[tuple[float, Any]]],
    need: NDArray[np.float64],
    server: int,
    start: int,
    length: int,
    variable: Any,
) -> None:
    for r in np.flatnonzero(need):
        for slot in range(start, start + length):
            use[server, int(r), slot].append((float(need[r]), variable))


def read_block(block: Any, cluster: WindowCluster) -> Window | None:
    """Row of the schedule at the variables' values, or None if the job is not scheduled."""
    table = block.columns.table.tuples()
    for index in block.columns.u:
        value = block.u[index].value
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
                if (m, length, t, h) in block.columns.y:
                    workers[h] += round(block.y[m, length, t, h].value or 0.0)
        ps_type = p if cluster.has_ps else -1
        return Window(t, t + length - 1, m, ps_type, workers, ps)
    return None


def write_block(block: Any, cluster: WindowCluster, row: WindowRow | None) -> None:
    """Set the variables to a row's schedule, as far as the block's columns can express it.

    A row over several servers whose host has spare PSs, or one whose number of workers is not the
    least for its duration, is expressed by a column that uses no more; without such a column the
    variables are left without values.
    """
    columns: JobColumns = block.columns
    for index in columns.u:
        block.u[index].value = 0
    for cell in columns.y:
        block.y[cell].value = 0
    if row is None:
        return
    found = _matching_column(columns, cluster, row)
    if found is None:
        for index in columns.u:
            block.u[index].value = None
        return
    index, beside = found
    block.u[index].value = 1
    k, t = index[0], index[1]
    m, _, q, _, length = columns.table.tuples()[k]
    if not q:
        for h in np.flatnonzero(beside):
            block.y[m, length, t, int(h)].value = int(beside[h])


def _matching_column(
    columns: JobColumns, cluster: WindowCluster, row: WindowRow
) -> tuple[tuple[int, int, int, int], NDArray[np.int64]] | None:
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
