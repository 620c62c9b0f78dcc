"""Pricing oracles of batchsched and astraea, on real servers and on all merged into one.

``cluster``: rows (resource, slot) with the summed capacity. Every schedule on real servers is one
on the merged server, so the bound is valid; part of what fragmentation costs is kept (no mode that
the empty cluster cannot place, and at least the PSs that the best host needs).
``servers``: rows (server, resource, slot), the paper's subproblem: one mode in one window on one
placement. Its features are ``completion`` and ``start`` (slots), ``workers`` (N), ``worker_type``
and ``ps_type`` (positions of the types, from 0), ``server_workers`` and ``server_ps``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances import modes
from hindsched.instances.base import JobRecord
from hindsched.instances.decimals import loosened
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.window_solution import WindowRow, WindowSolution, row_use
from hindsched.solvers.families.windows.schedules import cheapest_row
from hindsched.solvers.kernels.placement import no_limits
from hindsched.solvers.kernels.windows import merged_server
from hindsched.solvers.oracles.base import BranchingOracle, PlacingOracle, PricingOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Feature, Limits, window_of
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

START, WORKERS = Feature("start"), Feature("workers")
WORKER_TYPE, PS_TYPE = Feature("worker_type"), Feature("ps_type")
ON_SERVER, PS_ON_SERVER = "server_workers", "server_ps"
NO_ROWS = np.zeros(0, dtype=np.int64)
Choices = tuple[Any, Floats]
"""What a job may do: durations of modes; demands, shape (modes, resources), of the merged
server."""


class EndCosts(NamedTuple):
    """What ending in a slot costs: ``rate[j] * table[row[j], last]``; a revenue's negative."""

    rate: Floats  # factor, (jobs,)
    # by last slot, 1-based; never falls. It may go on behind the priced slots, which are free,
    # (rows, slots + 1)
    table: Floats
    row: Ints  # row of each job, (jobs,)


class WindowOracle(PricingOracle):
    """What all layouts share: the problem, and the use of a given schedule.

    A family's class sets what stands first.
    """

    instance: Any  # a `WindowInstance`
    slots: int
    first: Ints  # first slot that a job may use, (jobs,)
    ends: EndCosts
    outside_costs: Floats  # of what jobs do instead; 0 where they are optional, inf: nothing

    def __init__(self, instance: modes.WindowInstance, formulation: str | None) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)

    @property
    @abstractmethod
    def row_sets(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        """Name of each set of rows, its axis beside server and slot, and the axis' labels."""

    @abstractmethod
    def worth(self, solution: Any, job: JobRecord) -> float | None:
        """A job's part of a solution's objective; None if it has none."""

    def lay_rows(self, *, servers: bool) -> None:
        """Lay out the rows, of each server or of all merged."""
        names = tuple(server.name for server in self.instance.servers)
        usable, begin, sets = self.instance.usable_capacity, 0, list[RowSet]()
        for name, axis, labels in self.row_sets:
            units = usable[:, begin : begin + len(labels)]
            units, begin = units if servers else units.sum(axis=0), begin + len(labels)
            axes = (axis, tuple(labels)), ("slot", slot_labels(self.slots, units.size))
            capacity = np.repeat(units[..., None], self.slots, axis=-1)
            sets.append(RowSet(name, (("server", names), *axes) if servers else axes, capacity))
        self.rows = Rows(sets)

    @property
    def sign(self) -> float:
        """1 where values are costs, -1 where they are revenues."""
        return 1.0 if self.sense == "min" else -1.0

    @cached_property
    def _first_row(self) -> Ints:
        """Flat row of the first slot of each resource, or of each server and resource."""
        parts = [
            self.rows.slices[s.name].start + np.arange(s.capacity.size).reshape(s.shape)[..., 0]
            for s in self.rows.sets
        ]
        return np.concatenate(parts, axis=-1)

    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each; slots beyond the last have none."""
        used = row_use(self.instance, row)
        used = used if self._first_row.ndim == 2 else used.sum(axis=0)
        slots, at = np.arange(row.first - 1, min(row.last, self.slots)), used != 0
        rows = (self._first_row[at][:, None] + slots).ravel()
        return rows, np.repeat(used[at], len(slots))

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution as use of this layout's rows."""
        responses: list[Response | None] = []
        for job in self.instance.jobs:
            worth = self.worth(solution, job)
            if worth is None:
                responses.append(None)
                continue
            plan = solution.rows[job.name]  # type: ignore[attr-defined]
            rows, amounts = map(np.concatenate, zip(*map(self.place_use, plan), strict=True))
            responses.append(Response(worth, worth, rows, amounts, tuple(plan)))
        return responses


class MergedOracle(WindowOracle):
    """All servers merged into one; a family's class calls `prepare`."""

    layout = "cluster"

    def prepare(self, choices: Sequence[Choices]) -> None:
        """Lay out the rows; take what the jobs may do, one behind the other."""
        self.lay_rows(servers=False)
        width = self.rows.size // self.slots
        self._begin = np.cumsum([0, *(len(length) for length, _ in choices)], dtype=np.int64)
        self._durations = np.concatenate([np.zeros(0, dtype=np.int64), *(c[0] for c in choices)])
        self._demands = np.concatenate([np.zeros((0, width)), *(c[1] for c in choices)])

    def best_response(self, block: int, prices: Floats) -> Response | None:
        """Best schedule of a job on the merged server."""
        outside = np.full(1, math.inf if self.optional else self.outside_costs[block])
        costs, last, used = self.respond(slice(block, block + 1), outside, prices)
        cost, end = float(costs[0]), int(last[0])
        if end == 0:
            value = self.sign * cost
            return None if math.isinf(cost) else Response(value, value, NO_ROWS, np.zeros(0))
        objective = self.ends.rate[block] * self.ends.table[self.ends.row[block], end]
        used = used.T.ravel()
        rows = np.flatnonzero(used)
        return Response(self.sign * cost, self.sign * objective, rows, used[rows], (end,))

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        costs, _, used = self.respond(slice(None), self.outside_costs, prices)
        return self.sign * costs, used.T.ravel()

    def respond(self, jobs: slice, outside: Floats, prices: Floats) -> tuple[Floats, Ints, Floats]:
        """Costs of some jobs, their last slots (0: outside) and their use, (slots, resources)."""
        begin, by_slot = self._begin, prices.reshape(-1, self.slots).T
        prefix = np.zeros((self.slots + 1, by_slot.shape[1]))
        np.cumsum(by_slot, axis=0, out=prefix[1:])
        costs, last = np.zeros(len(outside)), np.zeros(len(outside), dtype=np.int64)
        used, (rate, table, row) = np.zeros(by_slot.shape), self.ends
        merged_server.all_on_merged_server(
            begin[:-1][jobs], begin[1:][jobs], self.first[jobs], rate[jobs], table, row[jobs],
            outside, self._durations, self._demands, prefix, costs, last, used,
        )  # fmt: skip
        return costs, last, used


def merged_modes(instance: modes.WindowInstance, job: JobRecord) -> Choices:
    """Durations and demands of a job's undominated modes on the merged server, by rising duration.

    A mode has at least the PSs that the best host needs; one that no host serves is left out.
    """
    table = modes.modes(instance, job)
    demand = table.workers[:, None] * instance.worker_demand[table.worker_type]
    if instance.has_ps:
        fewest = modes.fewest_ps(instance, table)
        demand = demand + fewest[:, None] * instance.ps_demand[table.ps_type]
    kept = _undominated(table.duration, demand)
    return np.ascontiguousarray(table.duration[kept]), np.ascontiguousarray(demand[kept])


def _undominated(number: Any, demand: Floats) -> Ints:
    """Positions by rising number of what no other is as low as and as small in every resource."""
    order = np.lexsort((demand.sum(axis=1), number))
    positions: Ints = order[merged_server.undominated_rows(demand[order])]
    return positions


class WindowServerOracle(WindowOracle, PlacingOracle, BranchingOracle):
    """Best responses within limits on real servers, exact."""

    layout = "servers"
    solution: ClassVar[type[WindowSolution]]  # the family's

    def __init__(self, instance: modes.WindowInstance, formulation: str | None) -> None:
        super().__init__(instance, formulation)
        self._tables: dict[int, modes.Modes] = {}
        on_server = (("server", tuple(server.name for server in self.instance.servers)),)
        plain = (COMPLETION, START.name, WORKERS.name, WORKER_TYPE.name, PS_TYPE.name)
        self.features = {
            **dict.fromkeys(plain, ()), ON_SERVER: on_server, PS_ON_SERVER: on_server,
        }  # fmt: skip

    def table(self, block: int) -> modes.Modes:
        """Modes of a job."""
        if block not in self._tables:
            self._tables[block] = modes.modes(self.instance, self.instance.jobs[block])
        return self._tables[block]

    def by_server(self, vector: Floats) -> Floats:
        """A vector over the rows by server, resource and slot; 0 in the slots behind them."""
        parts = np.concatenate(list(self.rows.unpack(vector).values()), axis=1)
        behind = self.ends.table.shape[1] - 1 - self.slots
        return np.pad(parts, ((0, 0), (0, 0), (0, behind))) if behind else parts

    @cached_property
    def full(self) -> Floats:
        """The empty servers, `loosened`, as of `by_server`."""
        capacity = self.instance.server_capacity
        slots = self.ends.table.shape[1] - 1
        return np.repeat(loosened(capacity, capacity)[:, :, None], slots, axis=2)

    def cheapest(self, block: int, free: Floats, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of a job on what is free, by slot, within limits on its features."""
        servers, _, slots = prices.shape
        table, rate = self.table(block), self.ends.rate[block]
        base, earliest = rate * self.ends.table[self.ends.row[block]], int(self.first[block])
        if any(low > high for low, high in limits.values()):
            return None
        keep = np.ones(len(table), dtype=bool)
        for feature, values in (
            (WORKERS, table.workers), (WORKER_TYPE, table.worker_type), (PS_TYPE, table.ps_type),
        ):  # fmt: skip
            low, high = window_of(limits, feature)
            keep &= (low <= values) & (values <= high)
        order = np.argsort(table.workers, kind="stable")  # the first mode takes a tie
        table = table.take(order[keep[order]])
        starts, ends = (
            (max(low, earliest), min(high, slots))
            for low, high in (window_of(limits, START), window_of(limits, COMPLETES))
        )
        ranges = {name: no_limits(servers) for name in (ON_SERVER, PS_ON_SERVER)}
        for feature, (low, high) in limits.items():
            if feature.name == PS_ON_SERVER and low > 0 and not self.instance.has_ps:
                return None
            if feature.name in ranges:
                ranges[feature.name].low[feature.index] = low
                ranges[feature.name].high[feature.index] = high
        best = cheapest_row(
            self.instance, table, base, starts, ends, free, prices,
            on_worker=ranges[ON_SERVER], on_ps=ranges[PS_ON_SERVER],
        )  # fmt: skip
        if best is None:
            return None
        cost, row = best
        objective = self.sign * float(base[row.last])
        return Response(self.sign * cost, objective, *self.place_use(row), (row,))

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of a job within limits, at full capacity, without the outside option."""
        return self.cheapest(block, self.full, self.by_server(prices), limits)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job; see `PlacingOracle.best_response`."""
        priced = self.by_server(prices)
        if residual is None:
            return self.cheapest(block, self.full, priced, {})
        free = self.by_server(loosened(residual, self.rows.capacity))
        return self.cheapest(block, free, priced, {COMPLETES: (0, self.slots)})

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Value of every feature of a schedule that is not 0."""
        row: WindowRow = response.plan[0]
        values = {
            COMPLETES: row.last,
            START: row.first,
            WORKERS: row.num_workers,
            WORKER_TYPE: row.worker_type,
            PS_TYPE: max(0, row.ps_type),
        }
        for name, counts in ((ON_SERVER, row.workers), (PS_ON_SERVER, row.ps)):
            for server in np.flatnonzero(counts).tolist():
                values[Feature(name, (server,))] = int(counts[server])
        return values

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file for a response."""
        return [self.solution.write_row(self.instance, row) for row in response.plan]
