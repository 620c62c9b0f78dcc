"""The astraea family's pricing oracle: one job's best window at prices on workers and PSs.

Row layouts:

``cluster``
    All servers merged into one: ``worker_capacity`` over (type, slot) and ``ps_capacity``. Every
    schedule on real servers is one on the merged server, so the bound is valid; what is lost is
    fragmentation (part of it is kept: no mode that the empty cluster cannot place, and at least
    the PSs that the best host needs).
``servers``
    Rows over (server, type, slot): the exact subproblem. Schedules are placed on servers in this
    layout only.

``preemptive``
    The rows of ``cluster``; a job's slots need not touch and its placement may change, see
    `hindsched.solvers.oracles.preemptive`.

The horizon is hard. With ``optional`` a job may stay out at value 0; with ``must-complete`` a job
that fits nowhere makes the bound -inf, as the problem then is infeasible.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes, most_workers
from hindsched.instances.modes import Modes, in_pieces, ps_for
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import AstraeaSolution, write_row
from hindsched.solutions.base import Assignment, Solution
from hindsched.solvers.kernels.astraea.valued_window import (
    all_on_merged_server,
    best_on_merged_server,
    best_window,
    place_window,
)
from hindsched.solvers.kernels.placement import Kinds
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import Feature, Limits
from hindsched.solvers.oracles.merged import (
    EndToEnd,
    prefix_sums,
    refuse_residual,
    undominated_modes,
    window_use,
)
from hindsched.solvers.oracles.preemptive import (
    LAYOUT,
    SlotOracle,
    branched_rows,
    fewest_ps,
    first_rows,
    ways_in_line,
)
from hindsched.solvers.oracles.restricted_window import Cluster, window_features
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

ORACLE_ROWS = ("cluster", "servers", LAYOUT)


class AstraeaOracle(BlockOracle):
    """What both layouts share: values, types, and the use of a given schedule."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: AstraeaInstance

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.exact = not in_pieces(self.formulation)
        self.optional = self.formulation.startswith("optional")
        self.slots = instance.horizon
        self.rows = Rows(
            [
                self._row_set("worker_capacity", instance.worker_count, instance.worker_types),
                self._row_set("ps_capacity", instance.ps_count, instance.ps_types),
            ]
        )

    def _row_set(self, name: str, count: Ints, types: tuple[str, ...]) -> RowSet:
        raise TypeError(name)

    @property
    def _floor(self) -> float:
        return 0.0 if self.optional else -math.inf

    def of_blocks(self, blocks: slice) -> BlockOracle:
        """The same rows, which no job changes, with some of the jobs."""
        part = self.instance.with_jobs(self.instance.jobs[blocks])
        return type(self)(part, self.formulation)

    def values_of(self, job: AstraeaJob) -> Floats:
        """Revenue by completion slot, shape (horizon + 1,); -inf before the first."""
        table = np.full(self.slots + 1, -math.inf)
        first = job.arrival + 1
        table[first:] = self.instance.revenues(job, np.arange(float(first), self.slots + 1))
        return table

    def row_use(self, row: AstraeaRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each."""
        raise TypeError(type(self).__name__)

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution as use of this layout's rows."""
        assert isinstance(solution, AstraeaSolution)
        found: list[Response | None] = []
        for job in self.instance.jobs:
            revenue = solution.revenue(job.name)
            if revenue is None:
                found.append(None)
                continue
            uses = [self.row_use(row) for row in solution.rows[job.name]]
            rows = np.concatenate([use[0] for use in uses])
            amounts = np.concatenate([use[1] for use in uses])
            plan = solution.rows[job.name]
            found.append(Response(revenue, revenue, rows, amounts, plan))
        return found


class MergedOracle(AstraeaOracle):
    """Best responses on all servers merged into one."""

    layout = "cluster"

    def _row_set(self, name: str, count: Ints, types: tuple[str, ...]) -> RowSet:
        slots = slot_labels(self.slots, len(types))
        total = count.sum(axis=0).astype(float)
        capacity = np.broadcast_to(total[:, None], (len(types), self.slots)).copy()
        return RowSet(name, (("type", types), ("slot", slots)), capacity)

    @cached_property
    def _modes(self) -> EndToEnd:
        found = [merged_modes(self.instance, job) for job in self.instance.jobs]
        width = len(self.instance.worker_types) + len(self.instance.ps_types)
        return EndToEnd.of(found, width, np.int64)

    @cached_property
    def _arrivals(self) -> Ints:
        return np.array([job.arrival for job in self.instance.jobs], dtype=np.int64)

    @cached_property
    def _values(self) -> Floats:
        values = [self.values_of(job) for job in self.instance.jobs]
        return np.array(values).reshape(len(values), self.slots + 1)

    def _prefix(self, prices: Floats) -> Floats:
        return prefix_sums(prices.reshape(-1, self.slots).T)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job on the merged server; only full capacity is known here."""
        refuse_residual(residual)
        durations, demands = self._modes.of_job(block)
        values = self._values[block]
        value, mode, start = best_on_merged_server(
            int(self._arrivals[block]), values, durations, demands, self._prefix(prices), -math.inf
        )
        if mode < 0:
            return None
        end = start + int(durations[mode])
        use = window_use(demands[mode], np.arange(start, end), self.slots)
        return Response(float(value), float(values[end]), *use, (mode, start))

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`, in one compiled call."""
        found = np.zeros(self.num_blocks)
        used = np.zeros((self.slots, self.rows.size // self.slots))
        modes = self._modes
        all_on_merged_server(
            modes.first, self._arrivals, self._values, modes.number, modes.demand,
            self._prefix(prices), self._floor, found, used,
        )  # fmt: skip
        return found, used.T.ravel()

    def row_use(self, row: AstraeaRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each."""
        slots = np.arange(row.first - 1, row.last)
        worker_rows = row.worker_type * self.slots + slots
        ps_rows = (len(self.instance.worker_types) + row.ps_type) * self.slots + slots
        counts = (float(row.num_workers), float(row.ps.sum()))
        amounts = [np.full(slots.size, count) for count in counts]
        return np.concatenate([worker_rows, ps_rows]), np.concatenate(amounts)

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server."""
        arrays = self.rows.unpack(prices)
        servers = len(self.instance.servers)
        return np.concatenate(
            [np.repeat(array[None], servers, axis=0).ravel() for array in arrays.values()]
        )


class PreemptiveOracle(SlotOracle, MergedOracle):
    """Best responses of jobs that may pause, move and resize, on all servers merged into one."""

    layout = LAYOUT

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        MergedOracle.__init__(self, instance, formulation)
        self.prepare(self.slots)

    def slot_ways(self, job: AstraeaJob) -> tuple[Floats, Floats]:
        """Rates and demands by types, zeta and workers, with the PSs of the best host."""
        instance, times = self.instance, self.instance.minibatch_times(job)
        num_w, most = len(instance.worker_types), most_workers(instance, job)
        rates, demands = [], []
        for w, p, together in np.ndindex(times.shape):
            room, places = instance.worker_count[:, w], instance.ps_count[:, p]
            ratio = float(instance.ps_ratio[w, p])
            held = min(most, int(room.max() if together else room.sum()))
            count, fewest = fewest_ps(held, bool(together), room, places, ratio)
            rate = count / times[w, p, together]
            for speed, workers, servers in ways_in_line(rate, count, fewest):
                demand = np.zeros(num_w + len(instance.ps_types))
                demand[w], demand[num_w + p] = workers, servers
                rates.append(speed)
                demands.append(demand)
        return np.array(rates), np.array(demands).reshape(
            len(rates), num_w + len(instance.ps_types)
        )

    def first_slot(self, job: AstraeaJob) -> int:
        """The slot after its arrival, which is a point of time."""
        return job.arrival

    def end_costs(self, job: AstraeaJob) -> Floats:
        """Negative revenue by last slot."""
        return -self.values_of(job)[1:]

    def outside_cost(self, job: AstraeaJob) -> float:
        """Staying out, where that is allowed."""
        return -self._floor


class ServerOracle(AstraeaOracle):
    """Best responses on real servers, exact.

    Notes
    -----
    Ties: earlier types, centralised first, fewer workers, earlier start.
    """

    layout = "servers"

    def _row_set(self, name: str, count: Ints, types: tuple[str, ...]) -> RowSet:
        names = tuple(server.name for server in self.instance.servers)
        axes = (("server", names), ("type", types), ("slot", slot_labels(self.slots, count.size)))
        shape = (*count.shape, self.slots)
        return RowSet(name, axes, np.broadcast_to(count[:, :, None], shape).astype(float))

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.features = self._cluster.features([server.name for server in instance.servers])

    @cached_property
    def _tables(self) -> list[Modes]:
        return [modes(self.instance, job) for job in self.instance.jobs]

    @cached_property
    def _by_types(self) -> list[dict[tuple[int, int], Modes]]:
        """Modes of each job by worker type and PS type."""
        pairs = list(np.ndindex(len(self.instance.worker_types), len(self.instance.ps_types)))
        found = []
        for table in self._tables:
            own = {
                (w, p): table.take((table.worker_type == w) & (table.ps_type == p))
                for w, p in pairs
            }
            found.append({pair: modes for pair, modes in own.items() if len(modes)})
        return found

    @cached_property
    def _values(self) -> list[Floats]:
        return [self.values_of(job) for job in self.instance.jobs]

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a job; see `BlockOracle.best_response`."""
        job, values = self.instance.jobs[block], self._values[block]
        priced = self.rows.unpack(prices)
        left = self.rows.unpack(self.rows.capacity if residual is None else residual)
        best, chosen = -math.inf, None
        for (w, p), own in self._by_types[block].items():
            free, price = (
                [
                    np.ascontiguousarray(source[name][:, k], dtype=float)
                    for name, k in (("worker_capacity", w), ("ps_capacity", p))
                ]
                for source in (left, priced)
            )
            ratio = float(self.instance.ps_ratio[w, p])
            value, mode, start, host, on_host = best_window(
                job.arrival, tuple(own.columns), values, (*free, *price), ratio, best
            )
            if mode < 0:
                continue
            best = value
            chosen = self._row(own, mode, start, host, on_host, free[0], price[0], (w, p))
        if chosen is None:
            return None
        rows, amounts = self.row_use(chosen)
        return Response(float(best), float(values[chosen.last]), rows, amounts, (chosen,))

    @cached_property
    def _cluster(self) -> Cluster:
        instance = self.instance
        num_w, num_p = len(instance.worker_types), len(instance.ps_types)
        kinds = np.eye(num_w + num_p)
        counts = np.concatenate([instance.worker_count, instance.ps_count], axis=1)
        worker, server = (np.ascontiguousarray(part) for part in (kinds[:num_w], kinds[num_w:]))
        return Cluster(counts.astype(float), Kinds(worker, server, instance.ps_ratio, True))

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of a job within limits, at full capacity."""
        job, values = self.instance.jobs[block], self._values[block]
        priced = np.concatenate(list(self.rows.unpack(prices).values()), axis=1)
        found = self._cluster.best_within(
            self._tables[block], -values, job.arrival + 1, priced.transpose(2, 0, 1), limits
        )
        if found is None:
            return None
        cost, row = found
        chosen = AstraeaRow(row.first, row.last, row.worker_type, row.ps_type, row.workers, row.ps)
        rows, amounts = self.row_use(chosen)
        return Response(-cost, float(values[row.last]), rows, amounts, (chosen,))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Window, types and counts by server."""
        (row,) = response.plan
        return window_features(row)

    def _row(
        self,
        table: Modes,
        mode: int,
        start: int,
        host: int,
        on_host: int,
        free: Floats,
        price: Floats,
        types: tuple[int, int],
    ) -> AstraeaRow:
        """Schedule of a choice of the kernel; `free` and `price` are those of workers."""
        count, length = int(table.workers[mode]), int(table.duration[mode])
        ps = np.zeros(len(self.instance.servers), dtype=np.int64)
        ps[host] = 1
        if table.one_server[mode]:
            workers = np.zeros_like(ps)
            workers[host] = count
        else:
            workers = place_window(count, start, length, host, on_host, free, price)
            ps[host] = ps_for(count - on_host, self.instance.ps_ratio[types])
        return AstraeaRow(start + 1, start + length, *types, workers, ps)

    def row_use(self, row: AstraeaRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each."""
        slots = np.arange(row.first - 1, row.last)
        found, amounts = [], []
        for name, counts, kind, types in (
            ("worker_capacity", row.workers, row.worker_type, self.instance.worker_types),
            ("ps_capacity", row.ps, row.ps_type, self.instance.ps_types),
        ):
            servers = np.flatnonzero(counts)
            base = self.rows.slices[name].start + (servers * len(types) + kind) * self.slots
            found.append((base[:, None] + slots).ravel())
            amounts.append(np.repeat(counts[servers].astype(float), slots.size))
        return np.concatenate(found), np.concatenate(amounts)

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file."""
        plan: tuple[AstraeaRow, ...] = response.plan
        return [write_row(self.instance, row) for row in plan]


def merged_modes(instance: AstraeaInstance, job: AstraeaJob) -> tuple[Ints, Floats]:
    """Durations and demands (modes, W + P) of a job on the merged server, undominated.

    A mode has the fewest PSs with which any host serves it; one that none serves is left out.
    """
    table = modes(instance, job)
    num_w, num_p = len(instance.worker_types), len(instance.ps_types)
    hosted = np.zeros((num_w, num_p, 2, table.workers.max(initial=0) + 1), dtype=np.int64)
    for w, p, q in np.ndindex(hosted.shape[:3]):
        room, places = instance.worker_count[:, w], instance.ps_count[:, p]
        ratio, most = float(instance.ps_ratio[w, p]), hosted.shape[3] - 1
        count, fewest = fewest_ps(most, bool(q), room, places, ratio)
        hosted[w, p, q, count] = fewest
    needed = hosted[table.worker_type, table.ps_type, table.one_server, table.workers]
    table, needed = table.take(needed > 0), needed[needed > 0]
    demand = np.zeros((len(table), num_w + num_p))
    each = np.arange(len(table))
    demand[each, table.worker_type] = table.workers
    demand[each, num_w + table.ps_type] = needed
    return undominated_modes(table.duration, demand)


def build(instance: AstraeaInstance, formulation: str, rows: str) -> AstraeaOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    oracles = {"servers": ServerOracle, LAYOUT: PreemptiveOracle}
    return oracles.get(rows, MergedOracle)(instance, formulation)


def tree_rows(instance: AstraeaInstance, formulation: str) -> tuple[str, ...]:
    """Layouts that are branched on."""
    return branched_rows(formulation)


__all__ = ["ORACLE_ROWS", "build", "first_rows", "tree_rows"]
