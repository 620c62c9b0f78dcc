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
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import Instance, JobRecord
from hindsched.instances.modes import NEVER, PREEMPTIVE, Modes, in_pieces
from hindsched.models.windows.sets import WindowCluster, row_use
from hindsched.solutions.base import Solution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.kernels.placement import Kinds, no_limits
from hindsched.solvers.kernels.windows.merged_server import (
    all_cheapest_slots,
    all_on_merged_server,
    cheapest_on_merged_server,
    cheapest_slots,
    undominated,
)
from hindsched.solvers.kernels.windows.window import Parts, cheapest_window
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    COMPLETION,
    Axes,
    Feature,
    Limits,
    window_of,
)

ROWS = ("cluster", "servers", PREEMPTIVE)
"""The layouts of both families."""
START, WORKERS = Feature("start"), Feature("workers")
WORKER_TYPE, PS_TYPE = Feature("worker_type"), Feature("ps_type")
ON_SERVER, PS_ON_SERVER = "server_workers", "server_ps"
NOTHING = np.zeros(0, dtype=np.int64)
Choices = tuple[Any, Floats]
"""What a job may do: durations of modes, or rates of ways to run in a slot; demands, shape
(choices, resources), of the merged server."""


def first_rows(formulation: str) -> str:
    """Layout in which a formulation is bounded: windows do not bound jobs in pieces."""
    return PREEMPTIVE if in_pieces(formulation) else "cluster"


def tree_rows(instance: Instance, formulation: str) -> tuple[str, ...]:
    """Layouts that are branched on."""
    return () if in_pieces(formulation) else ("servers",)


class EndCosts(NamedTuple):
    """What ending in a slot costs: ``rate[j] * table[row[j], last]``; a revenue's negative."""

    rate: Floats  # factor, (jobs,)
    # by last slot, 1-based; never falls. It may go on behind the priced slots, which are free,
    # (rows, slots + 1)
    table: Floats
    row: Ints  # row of each job, (jobs,)


class WindowOracle(BlockOracle):
    """What all layouts share: the problem, and the use of a given schedule."""

    cluster: WindowCluster
    slots: int

    def __init__(self, instance: Instance, formulation: str | None) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.exact = not in_pieces(self.formulation)

    @property
    def sign(self) -> float:
        """1 where values are costs, -1 where they are revenues."""
        return 1.0 if self.sense == "min" else -1.0

    @abstractmethod
    def worth(self, solution: Any, job: JobRecord) -> float | None:
        """A job's part of a solution's objective; None if it has none."""

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
        used = row_use(self.cluster, row)
        return self.window_use(used if self._first_row.ndim == 2 else used.sum(axis=0), row)

    def window_use(self, used: Floats, row: Any) -> tuple[Ints, Floats]:
        """Flat rows and amounts of what is used from slot ``row.first`` to ``row.last``."""
        slots, at = np.arange(row.first - 1, min(row.last, self.slots)), used != 0
        rows = (self._first_row[at][:, None] + slots).ravel()
        return rows, np.repeat(used[at], len(slots))

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution as use of this layout's rows."""
        found: list[Response | None] = []
        for job in self.instance.jobs:
            worth = self.worth(solution, job)
            if worth is None:
                found.append(None)
                continue
            plan = solution.rows[job.name]  # type: ignore[attr-defined]
            rows, amounts = map(np.concatenate, zip(*map(self.place_use, plan), strict=True))
            found.append(Response(worth, worth, rows, amounts, tuple(plan)))
        return found


class Span(NamedTuple):
    """First and last slot."""

    first: int
    last: int


def end_to_end(choices: Sequence[Choices], width: int, kind: Any) -> tuple[Ints, Any, Floats]:
    """Choices of the jobs one behind the other: where each job's begin, numbers, demands."""
    first = np.cumsum([0, *(len(number) for number, _ in choices)], dtype=np.int64)
    numbers = [*(number for number, _ in choices), np.zeros(0, dtype=kind)]
    demands = [*(demand for _, demand in choices), np.zeros((0, width))]
    return first, np.concatenate(numbers), np.concatenate(demands)


class MergedOracle(WindowOracle):
    """All servers merged into one; a family's class sets `rows` and `slots` and calls `prepare`."""

    layout = "cluster"

    def prepare(
        self, choices: Sequence[Choices], first: Ints, ends: EndCosts, outside: Floats
    ) -> None:
        """Take what the jobs may do, from which slot on, what it costs, and what they do instead.

        `outside` is 0 for optional jobs; infinite stands for nothing.
        """
        self._choices, self._first, self._ends, self._outside = choices, first, ends, outside
        self._laid = end_to_end(choices, self.rows.size // self.slots, np.int64)

    def _by_slot(self, prices: Floats) -> Floats:
        """Prices, shape (slots, resources)."""
        return prices.reshape(-1, self.slots).T

    def _prefix(self, prices: Floats) -> Floats:
        by_slot = self._by_slot(prices)
        prefix = np.zeros((len(by_slot) + 1, by_slot.shape[1]))
        np.cumsum(by_slot, axis=0, out=prefix[1:])
        return prefix

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job on the merged server; only full capacity is known here."""
        _refuse(residual)
        durations, demands = self._choices[block]
        rate, ends = float(self._ends.rate[block]), self._ends.table[self._ends.row[block]]
        outside = math.inf if self.optional else float(self._outside[block])
        cost, mode, start = cheapest_on_merged_server(
            int(self._first[block]), rate, ends, outside, durations, demands, self._prefix(prices)
        )
        if mode < 0:
            value = self.sign * cost
            return None if math.isinf(cost) else Response(value, value, NOTHING, np.zeros(0))
        last = start - 1 + int(durations[mode])
        use = self.window_use(demands[mode], Span(start, last))
        objective = self.sign * rate * float(ends[last])
        return Response(self.sign * cost, objective, *use, (mode, start))

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        values, used = (
            np.zeros(self.num_blocks),
            np.zeros((self.slots, self.rows.size // self.slots)),
        )
        begin, durations, demands = self._laid
        all_on_merged_server(
            begin, self._first, *self._ends, self._outside, durations, demands,
            self._prefix(prices), values, used,
        )  # fmt: skip
        return self.sign * values, used.T.ravel()


def _refuse(residual: Floats | None) -> None:
    if residual is not None:
        raise InputError("rows", "cluster", "schedules that fit need the layout servers")


class PiecesOracle(MergedOracle):
    """Jobs whose slots need not touch; a family's class also calls `prepare_pieces`."""

    layout = PREEMPTIVE

    def prepare_pieces(self, ways: Sequence[Choices], instead: Floats) -> None:
        """Take the jobs' ways to run in a slot; `instead` is what else a job may do at what cost.

        Slots behind the priced ones are used as far as the costs of ending go.
        """
        self.exact = True
        rate, table, row = self._ends
        self._free = table.shape[1] - 1 - self.slots
        self._ways, self._instead = ways, instead
        self._laid_ways = end_to_end(ways, self.rows.size // self.slots, float)
        self._work = np.array([float(job.total_minibatches) for job in self.instance.jobs])
        self._by_end = rate[:, None] * table[row][:, 1:]

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Cheapest slots of a job at full capacity; `residual` is not known here."""
        _refuse(residual)
        priced = self._padded(prices)
        used = np.zeros_like(priced)
        cost, end = cheapest_slots(
            int(self._first[block]) - 1, float(self._work[block]), *self._ways[block],
            self._by_end[block], priced, float(self._instead[block]), used,
        )  # fmt: skip
        if end < 0 and np.isinf(cost):
            return None
        objective = cost if end < 0 else float(self._by_end[block, end])
        used = used[: self.slots].T.ravel()
        rows = np.flatnonzero(used)
        plan = None if end < 0 else (end,)
        return Response(self.sign * cost, self.sign * objective, rows, used[rows], plan)

    def _padded(self, prices: Floats) -> Floats:
        """Prices by slot and resource, and slots that are free."""
        return np.ascontiguousarray(np.pad(self._by_slot(prices), ((0, self._free), (0, 0))))

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        found, priced = np.zeros(self.num_blocks), self._padded(prices)
        used = np.zeros_like(priced)
        begin, rates, demands = self._laid_ways
        all_cheapest_slots(
            begin, self._first - 1, self._work, rates, demands, self._by_end, priced,
            self._instead, found, used,
        )  # fmt: skip
        return self.sign * found, used[: self.slots].T.ravel()


def merged_modes(cluster: WindowCluster, table: Modes, hosted: Ints) -> Choices:
    """Durations and demands of a job's undominated modes on the merged server, by rising duration.

    `hosted` are the PSs that the best host needs, by types, q and number of workers; `NEVER` where
    none serves them.
    """
    fewest = hosted[table.worker_type, table.ps_type, table.one_server, table.workers - 1]
    table, fewest = table.take(fewest < NEVER), fewest[fewest < NEVER]
    demand = table.workers[:, None] * cluster.worker_demand[table.worker_type]
    if cluster.has_ps:
        demand = demand + fewest[:, None] * cluster.ps_demand[table.ps_type]
    kept = _undominated(table.duration, demand)
    return np.ascontiguousarray(table.duration[kept]), np.ascontiguousarray(demand[kept])


def slot_ways(cluster: WindowCluster, times: Floats, room: Ints, hosted: Ints) -> Choices:
    """Rates of work and demands of a slot on the merged server, undominated, by rising rate.

    `times` are slots that one of N workers needs for a mini-batch, (worker types, PS types, 2, most
    workers); `room` the workers that fit, (servers, worker types); `hosted` as for `merged_modes`.
    """
    rates, demands = list[float](), list[Floats]()
    for m, p, q in np.ndindex(times.shape[:3]):
        most = min(times.shape[3], int(room[:, m].max() if q else room[:, m].sum()))
        count = 1 + np.flatnonzero(hosted[m, p, q, :most] < NEVER)
        fewest, rate = hosted[m, p, q, count - 1], count / times[m, p, q, count - 1]
        for at, speed in ways_in_line(rate, count, fewest):
            demand = count[at] * cluster.worker_demand[m]
            rates.append(speed)
            demands.append(demand + fewest[at] * cluster.ps_demand[p] if cluster.has_ps else demand)
    rate, demand = np.array(rates), np.array(demands).reshape(-1, cluster.server_capacity.shape[1])
    kept = _undominated(-rate, demand)[::-1]
    return np.ascontiguousarray(rate[kept]), np.ascontiguousarray(demand[kept])


def _undominated(number: Any, demand: Floats) -> Ints:
    """Positions by rising number of what no other is as low as and as small in every resource."""
    order = np.lexsort((demand.sum(axis=1), number))
    found: Ints = order[undominated(demand[order])]
    return found


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


class WindowServerOracle(WindowOracle):
    """Best responses within limits on real servers, exact."""

    layout = "servers"
    kinds: Kinds

    @abstractmethod
    def table(self, block: int) -> Modes:
        """Modes of a job."""

    @abstractmethod
    def end_costs(self, block: int) -> Floats:
        """What ending in a slot costs, 1-based; it never falls; a revenue's negative."""

    @abstractmethod
    def earliest(self, block: int) -> int:
        """First slot that a job may use."""

    @abstractmethod
    def parts(self, vector: Floats) -> Parts:
        """A vector over the rows as the kernel takes it."""

    def features_on(self, servers: tuple[str, ...]) -> dict[str, Axes]:
        """Features of a window on these servers."""
        on_server: Axes = (("server", servers),)
        plain = (COMPLETION, START.name, WORKERS.name, WORKER_TYPE.name, PS_TYPE.name)
        return {**dict.fromkeys(plain, ()), ON_SERVER: on_server, PS_ON_SERVER: on_server}

    @cached_property
    @abstractmethod
    def full(self) -> Parts:
        """The empty servers, `loosened`."""

    def cheapest(
        self, block: int, free: Parts, prices: Parts, limits: Limits, slack: float = 0.0
    ) -> Response | None:
        """Best schedule of a job on what is free, by slot, within limits on its features."""
        servers, _, slots = prices.first.shape
        table, base, earliest = self.table(block), self.end_costs(block), self.earliest(block)
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
            if feature.name == PS_ON_SERVER and low > 0 and not self.kinds.has_ps:
                return None
            if feature.name in ranges:
                ranges[feature.name].low[feature.index] = low
                ranges[feature.name].high[feature.index] = high
        workers, ps = np.zeros(servers, dtype=np.int64), np.zeros(servers, dtype=np.int64)
        cost, mode, start = cheapest_window(
            base, starts, ends, tuple(table.columns), tuple(self.kinds), tuple(free), tuple(prices),
            slack, tuple(ranges[ON_SERVER]), tuple(ranges[PS_ON_SERVER]), np.inf, False,
            workers, ps,
        )  # fmt: skip
        if mode < 0:
            return None
        last = start + int(table.duration[mode]) - 1
        ps_type = int(table.ps_type[mode]) if self.kinds.has_ps else -1
        row = WindowRow(start, last, int(table.worker_type[mode]), ps_type, workers, ps)
        return self.response(self.sign * float(cost), self.sign * float(base[last]), row)

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of a job within limits, at full capacity, without the outside option."""
        return self.cheapest(block, self.full, self.parts(prices), limits)

    def response(self, value: float, objective: float, row: WindowRow) -> Response:
        """A row as a response."""
        return Response(value, objective, *self.place_use(row), (row,))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Value of every feature of a schedule that is not 0."""
        row: WindowRow = response.plan[0]
        found = {
            COMPLETES: row.last,
            START: row.first,
            WORKERS: row.num_workers,
            WORKER_TYPE: row.worker_type,
            PS_TYPE: max(0, row.ps_type),
        }
        for name, counts in ((ON_SERVER, row.workers), (PS_ON_SERVER, row.ps)):
            for server in np.flatnonzero(counts).tolist():
                found[Feature(name, (server,))] = int(counts[server])
        return found

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Return the prices: the layout is that of servers."""
        return prices
