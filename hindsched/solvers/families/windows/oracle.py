"""Pricing oracles of batchsched and astraea, on real servers and on all merged into one.

``cluster``: rows (resource, slot) with the summed capacity. Every schedule on real servers is one
on the merged server, so the bound is valid; part of what fragmentation costs is kept (no mode that
the empty cluster cannot place, and at least the PSs that the best host needs).
``preemptive``: the same rows; a job may use any slots, in each any placement that the rules of a
slot allow: the formulation ``preemptive``, which only this layout bounds.
``servers``: rows (server, resource, slot), the paper's subproblem: one mode in one window on one
placement. Its features are ``completion`` and ``start`` (slots), ``workers`` (N), ``worker_type``
and ``ps_type`` (positions of the types, from 0), ``server_workers`` and ``server_ps``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
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
"""What a job may do: durations of modes, or rates of ways to run in a slot; demands, shape
(choices, resources), of the merged server."""


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
        self.exact = not modes.in_pieces(self.formulation)

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


def end_to_end(choices: Sequence[Choices], width: int, kind: Any) -> tuple[Ints, Any, Floats]:
    """Choices of the jobs one behind the other: where each job's begin, numbers, demands."""
    first = np.cumsum([0, *(len(number) for number, _ in choices)], dtype=np.int64)
    numbers = [*(number for number, _ in choices), np.zeros(0, dtype=kind)]
    demands = [*(demand for _, demand in choices), np.zeros((0, width))]
    return first, np.concatenate(numbers), np.concatenate(demands)


class MergedOracle(WindowOracle):
    """All servers merged into one; a family's class calls `prepare`."""

    layout = "cluster"

    def prepare(self, choices: Sequence[Choices]) -> None:
        """Lay out the rows; take what the jobs may do."""
        self.lay_rows(servers=False)
        self._laid = end_to_end(choices, self.rows.size // self.slots, np.int64)

    def _by_slot(self, prices: Floats) -> Floats:
        """Prices, shape (slots, resources)."""
        return prices.reshape(-1, self.slots).T

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
        begin, durations, demands = self._laid
        by_slot = self._by_slot(prices)
        prefix = np.zeros((self.slots + 1, by_slot.shape[1]))
        np.cumsum(by_slot, axis=0, out=prefix[1:])
        costs, last = np.zeros(len(outside)), np.zeros(len(outside), dtype=np.int64)
        used, (rate, table, row) = np.zeros(by_slot.shape), self.ends
        merged_server.all_on_merged_server(
            begin[:-1][jobs], begin[1:][jobs], self.first[jobs], rate[jobs], table, row[jobs],
            outside, durations, demands, prefix, costs, last, used,
        )  # fmt: skip
        return costs, last, used


class PiecesOracle(MergedOracle):
    """Jobs whose slots need not touch; a family's class also calls `prepare_pieces`."""

    layout = modes.PREEMPTIVE

    def prepare_pieces(self) -> None:
        """Take the jobs' ways to run in a slot.

        Slots behind the priced ones are used as far as the costs of ending go.
        """
        self.exact = True
        rate, table, row = self.ends
        jobs = self.instance.jobs
        self._ways = [slot_ways(self.instance, job) for job in jobs]
        self._laid_ways = end_to_end(self._ways, self.rows.size // self.slots, float)
        self._work = np.array([float(job.total_minibatches) for job in jobs])
        self._by_end = rate[:, None] * table[row][:, 1:]

    def respond(self, jobs: slice, outside: Floats, prices: Floats) -> tuple[Floats, Ints, Floats]:
        """As of the base: the cheapest slots of the jobs."""
        by_slot = self._by_slot(prices)
        priced, used = np.zeros((2, self.ends.table.shape[1] - 1, by_slot.shape[1]))
        priced[: self.slots] = by_slot  # behind them all is free
        costs, last = np.zeros(len(outside)), np.zeros(len(outside), dtype=np.int64)
        begin, rates, demands = self._laid_ways
        merged_server.all_cheapest_merged_slots(
            begin[:-1][jobs], begin[1:][jobs], self.first[jobs] - 1, self._work[jobs], rates,
            demands, self._by_end[jobs], priced, outside, costs, last, used,
        )  # fmt: skip
        return costs, last, used[: self.slots]


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


def slot_ways(instance: modes.WindowInstance, job: JobRecord) -> Choices:
    """Rates of work and demands of a slot on the merged server, undominated, by rising rate."""
    times, room = modes.minibatch_times(instance, job), instance.worker_room
    hosted = instance.hosting.fewest_ps(times.shape[3])
    rates, demands = list[float](), list[Floats]()
    for m, p, q in np.ndindex(times.shape[:3]):
        most = min(times.shape[3], int(room[:, m].max() if q else room[:, m].sum()))
        count = 1 + np.flatnonzero(hosted[m, p, q, :most] < modes.NEVER)
        fewest, rate = hosted[m, p, q, count - 1], count / times[m, p, q, count - 1]
        for at, speed in ways_in_line(rate, count, fewest):
            demand = count[at] * instance.worker_demand[m]
            rates.append(speed)
            if instance.has_ps:
                demand = demand + fewest[at] * instance.ps_demand[p]
            demands.append(demand)
    rate, demand = np.array(rates), np.array(demands).reshape(-1, len(instance.server_capacity[0]))
    kept = _undominated(-rate, demand)[::-1]
    return np.ascontiguousarray(rate[kept]), np.ascontiguousarray(demand[kept])


def _undominated(number: Any, demand: Floats) -> Ints:
    """Positions by rising number of what no other is as low as and as small in every resource."""
    order = np.lexsort((demand.sum(axis=1), number))
    positions: Ints = order[merged_server.undominated_rows(demand[order])]
    return positions


def ways_in_line(rate: Floats, count: Ints, units: Ints) -> Iterator[tuple[int, float]]:
    """Ways (position, rate) of one pair of types that no mix of others beats at any prices.

    `count` workers, ascending, need `units` PSs and do `rate` of work in a slot. Where the rate is
    proportional to the workers, only corners of the PSs' lower envelope are left. Otherwise of many
    about one in each factor of 3/2 is kept, with rates raised until the lines between them are
    above all others (a relaxation).
    """
    if not len(rate):
        return
    per_worker = rate / count
    if np.allclose(per_worker, per_worker[0], rtol=1e-12):
        hull = [(0, 0, -1)]
        for at, (n, u) in enumerate(zip(count.tolist(), units.tolist(), strict=True)):
            while len(hull) > 1:
                (n0, u0, _), (n1, u1, _) = hull[-2:]
                if (u1 - u0) * (n - n0) < (u - u0) * (n1 - n0):
                    break
                hull.pop()
            hull.append((n, u, at))
        yield from ((at, float(rate[at])) for _, _, at in hull[1:])
        return
    steps = np.unique(np.floor(np.log(count) / np.log(1.5)), return_index=True)[1]
    kept = np.unique([*steps, len(count) - 1])
    line = np.interp(count, [0, *count[kept]], [0.0, *rate[kept]])
    factor = max(1.0, float((rate / line).max()))
    yield from ((at, factor * float(rate[at])) for at in kept.tolist())


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
