"""What the pricing oracles of batchsched and astraea share, and the layout ``cluster``.

``cluster``
    All servers merged into one: rows (resource, slot) with the summed capacity. Every schedule on
    real servers is one on the merged server, so the bound is valid; what is lost is fragmentation
    (part of it is kept: no mode that the empty cluster cannot place, and at least the PSs that the
    best host needs).
``preemptive``
    The same rows; a job's slots need not touch, see `pieces`.
``servers``
    Rows (server, resource, slot), the paper's subproblem: each family's own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord
from hindsched.instances.modes import Modes, in_pieces
from hindsched.models.windows.sets import WindowCluster, row_use
from hindsched.solutions.base import Solution
from hindsched.solutions.window_row import WindowRow
from hindsched.solvers.kernels.windows.merged_server import (
    all_on_merged_server,
    cheapest_on_merged_server,
    undominated,
)
from hindsched.solvers.oracles.base import BlockOracle, Response

NOTHING = np.zeros(0, dtype=np.int64)


class EndToEnd(NamedTuple):
    """What each job may do, one job's choices behind the other's, as the compiled kernels read it.

    Parameters
    ----------
    first : ndarray of int, shape (jobs + 1,)
        Where each job's choices begin, and the end.
    number : ndarray, shape (choices,)
        Duration of a mode, or rate of a way to run in a slot.
    demand : ndarray, shape (choices, resources)
        What it takes of the merged server.
    """

    first: Ints
    number: NDArray[Any]
    demand: Floats

    @classmethod
    def of(
        cls, choices: Sequence[tuple[NDArray[Any], Floats]], width: int, kind: DTypeLike = float
    ) -> Self:
        """Lay them end to end: numbers of a kind and demands of `width` resources, job by job."""
        first = np.cumsum([0, *(len(number) for number, _ in choices)], dtype=np.int64)
        numbers = [*(number for number, _ in choices), np.zeros(0, dtype=kind)]
        demands = [*(demand for _, demand in choices), np.zeros((0, width))]
        return cls(first, np.concatenate(numbers), np.concatenate(demands))

    def of_job(self, job: int) -> tuple[NDArray[Any], Floats]:
        """Numbers and demands of one job's choices."""
        own = slice(self.first[job], self.first[job + 1])
        return self.number[own], self.demand[own]

    def some(self, kept: Ints) -> Self:
        """The same of some of the jobs."""
        choices = [self.of_job(job) for job in kept]
        return self.of(choices, self.demand.shape[1], self.number.dtype)


class EndCosts(NamedTuple):
    """What ending in a slot costs: ``rate[j] * table[row[j], last]``; a revenue's negative.

    Parameters
    ----------
    rate : ndarray, shape (jobs,)
        Factor.
    table : ndarray, shape (rows, slots + 1)
        By last slot, 1-based; never falls. It may go on behind the priced slots, which are free.
    row : ndarray of int, shape (jobs,)
        Row of each job.
    """

    rate: Floats
    table: Floats
    row: Ints

    def of_job(self, job: int) -> tuple[float, Floats]:
        """Factor and row of one job."""
        return float(self.rate[job]), self.table[self.row[job]]


class WindowOracle(BlockOracle):
    """What all layouts share: the problem, and the use of a given schedule."""

    cluster: WindowCluster
    slots: int

    def __init__(self, instance: Instance, formulation: str | None) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.exact = not in_pieces(self.formulation)

    @abstractmethod
    def worth(self, solution: Any, job: JobRecord) -> float | None:
        """A job's part of a solution's objective; None if it has none."""

    @abstractmethod
    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each; slots beyond the last have none."""

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution as use of this layout's rows."""
        found: list[Response | None] = []
        for job in self.instance.jobs:
            worth = self.worth(solution, job)
            if worth is None:
                found.append(None)
                continue
            plan = solution.rows[job.name]  # type: ignore[attr-defined]
            uses = [self.place_use(row) for row in plan]
            rows, amounts = (np.concatenate(part) for part in zip(*uses, strict=True))
            found.append(Response(worth, worth, rows, amounts, tuple(plan)))
        return found


class MergedOracle(WindowOracle):
    """Best responses on all servers merged into one.

    A family's class sets `rows` and `slots` and calls `prepare`.
    """

    layout = "cluster"

    def prepare(self, choices: EndToEnd, first: Ints, ends: EndCosts, outside: Floats) -> None:
        """Take what the jobs may do, from which slot on, what it costs, and what they do instead.

        A family with optional jobs has 0 for `outside`; infinite stands for nothing.
        """
        self._choices, self._first, self._ends, self._outside = choices, first, ends, outside

    @property
    def _sign(self) -> float:
        return 1.0 if self.sense == "min" else -1.0

    def of_blocks(self, blocks: slice) -> BlockOracle:
        """The same rows, whose number all jobs decide, with some of the jobs."""
        part = copy(self)
        part.instance = self.instance.with_jobs(self.instance.jobs[blocks])
        kept = np.arange(self.num_blocks)[blocks]
        rate, table, row = self._ends
        rows, place = np.unique(row[kept], return_inverse=True)
        ends = EndCosts(rate[kept], table[rows], place)
        part.prepare(self._choices.some(kept), self._first[kept], ends, self._outside[kept])
        return part

    def _prefix(self, prices: Floats) -> Floats:
        return prefix_sums(prices.reshape(-1, self.slots).T)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job on the merged server; only full capacity is known here."""
        if residual is not None:
            raise InputError("rows", "cluster", "schedules that fit need the layout servers")
        durations, demands = self._choices.of_job(block)
        rate, ends = self._ends.of_job(block)
        outside = math.inf if self.optional else float(self._outside[block])
        cost, mode, start = cheapest_on_merged_server(
            int(self._first[block]), rate, ends, outside, durations, demands, self._prefix(prices)
        )
        if mode < 0:
            value = self._sign * cost
            return None if math.isinf(cost) else Response(value, value, NOTHING, np.zeros(0))
        last = start - 1 + int(durations[mode])
        use = window_use(demands[mode], start, min(last, self.slots), self.slots)
        objective = self._sign * rate * float(ends[last])
        return Response(self._sign * cost, objective, *use, (mode, start))

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        values = np.zeros(self.num_blocks)
        used = np.zeros((self.slots, self.rows.size // self.slots))
        choices = self._choices
        all_on_merged_server(
            choices.first, self._first, *self._ends, self._outside, choices.number,
            choices.demand, self._prefix(prices), values, used,
        )  # fmt: skip
        return self._sign * values, used.T.ravel()

    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each; slots beyond the last have none."""
        demand = row_use(self.cluster, row).sum(axis=0)
        return window_use(demand, row.first, min(row.last, self.slots), self.slots)


def merged_modes(cluster: WindowCluster, table: Modes, fewest: Ints) -> tuple[Ints, Floats]:
    """Durations and demands (modes, resources) of a job on the merged server, undominated.

    `fewest` are the PSs that the best host of each mode needs.
    """
    demand = table.workers[:, None] * cluster.worker_demand[table.worker_type]
    if cluster.has_ps:
        demand = demand + fewest[:, None] * cluster.ps_demand[table.ps_type]
    return undominated_modes(table.duration, demand)


def undominated_modes(duration: Ints, demand: Floats) -> tuple[Ints, Floats]:
    """Modes by rising duration, without those that another is as short as and no larger than."""
    order = np.lexsort((demand.sum(axis=1), duration))
    duration, demand = duration[order], demand[order]
    keep = undominated(duration, demand)
    return np.ascontiguousarray(duration[keep]), np.ascontiguousarray(demand[keep])


def prefix_sums(prices: Floats) -> Floats:
    """Prices of all slots before each, shape (slots + 1, resources), from (slots, resources)."""
    prefix = np.zeros((len(prices) + 1, prices.shape[1]))
    np.cumsum(prices, axis=0, out=prefix[1:])
    return prefix


def window_use(demand: Floats, first: int, last: int, slots: int) -> tuple[Ints, Floats]:
    """Flat rows (resource, slot) that a window uses, and how much of each: `demand` by resource."""
    kinds = np.flatnonzero(demand)
    rows = (kinds[:, None] * slots + np.arange(first - 1, last)).ravel()
    return rows, np.repeat(demand[kinds], max(0, last - first + 1))
