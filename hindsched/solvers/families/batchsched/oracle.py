"""Pricing oracles of batchsched: best response of one job to prices on the servers' resources.

Row layouts:

``cluster``
    All servers merged into one: rows (resource, slot) with the summed capacity. Every schedule on
    real servers is one on the merged server, so the bound is valid; what is lost is fragmentation
    (part of it is kept: at most ``sum_h floor(C_h / e)`` workers, and the fewest PSs with which
    some server can host them beside its own workers).
``buckets``
    The same with rows (resource, bucket of `BUCKET` slots).
``servers``
    Rows (server, resource, slot): the paper's subproblem, solved by the exact routine of
    `ScheduleSearch`. Schedules are placed on servers in this layout only.

``preemptive``
    The rows of ``cluster``; a job's slots need not touch and its placement may change, see
    `hindsched.solvers.oracles.preemptive`.

Slots beyond the last priced one, T, cost nothing. What begins in a priced slot may end there; of
what begins there the shortest mode in T + 1 is the cheapest, at ``w (T + 1 + L)``: it is every
job's outside option.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import fewest_ps, minibatch_times, modes
from hindsched.instances.decimals import common_step, exactly, loosened
from hindsched.instances.modes import NEVER, in_pieces
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.batchsched.solution import (
    BatchschedRow,
    BatchschedSolution,
    row_use,
    write_row,
)
from hindsched.solutions.window_row import WindowRow
from hindsched.solvers.families.batchsched.list_schedule import list_schedule
from hindsched.solvers.families.batchsched.oracle_search import (
    ModeIndex,
    Schedule,
    ScheduleSearch,
    kinds_of,
    most_workers,
)
from hindsched.solvers.kernels.super_server import (
    all_on_super_server,
    cheapest_on_super_server,
)
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
    first_rows,
    ways_in_line,
)
from hindsched.solvers.oracles.restricted_window import Cluster, window_features
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

ORACLE_ROWS = ("cluster", "buckets", "servers", LAYOUT)
BUCKET = 4
"""Slots in a bucket of the layout ``buckets``."""


class BatchschedOracle(BlockOracle):
    """What all layouts share: the problem, and the use of a given schedule."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: BatchschedInstance

    def __init__(self, instance: BatchschedInstance, formulation: str | None) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.exact = not in_pieces(self.formulation)

    @abstractmethod
    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each; slots beyond the last have none."""

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a feasible solution as use of this layout's rows."""
        assert isinstance(solution, BatchschedSolution)
        found: list[Response | None] = []
        for job in self.instance.jobs:
            rows = solution.rows.get(job.name, ())
            completion = solution.completion(job.name)
            once = len(rows) == 1 or (len(rows) > 1 and in_pieces(solution.formulation))
            if not once or completion is None:
                raise InputError("solution", job.name, "must run the job once, to its end")
            objective = float(job.weight) * (completion + 1)
            uses = [self.place_use(row) for row in rows]
            places, amounts = (np.concatenate(part) for part in zip(*uses, strict=True))
            plan = schedule_of(rows[0], objective) if len(rows) == 1 else rows
            found.append(Response(objective, objective, places, amounts, plan))
        return found


class MergedOracle(BatchschedOracle):
    """Best responses on all servers merged into one, rows by slot or by bucket of slots.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    formulation : str, optional
        Both formulations state the same problem.
    bucket : int
        Slots in a row.
    """

    def __init__(
        self, instance: BatchschedInstance, formulation: str | None = None, bucket: int = 1
    ) -> None:
        super().__init__(instance, formulation)
        self.bucket = bucket
        self.layout = "cluster" if bucket == 1 else "buckets"
        self.slots = self._prepare()
        resources = instance.resources
        total = instance.usable_capacity.sum(axis=0)
        if bucket == 1:
            slots = slot_labels(self.slots, len(resources))
            last_axis: tuple[str, tuple[int | str, ...]] = ("slot", slots)
        else:
            count = math.ceil(self.slots / bucket)
            self.slots = count * bucket
            labels = tuple(f"{i * bucket + 1}-{(i + 1) * bucket}" for i in range(count))
            last_axis = ("bucket", labels)
        shape = (len(resources), self.slots // bucket)
        capacity = np.broadcast_to(total[:, None] * bucket, shape).copy()
        self.rows = Rows([RowSet("capacity", (("resource", resources), last_axis), capacity)])
        begins = np.maximum(self._arrival, self.slots + 1)
        self._outside = self._rate * (begins + self._shortest)

    def _prepare(self) -> int:
        """Lay the jobs' modes end to end; return how many slots to price."""
        instance = self.instance
        width = len(instance.resources)
        found = [merged_modes(instance, job) for job in instance.jobs]
        self._modes = EndToEnd.of(found, width, np.int64)
        volume, latest = np.zeros(width), 1
        for job, (duration, demand) in zip(instance.jobs, found, strict=True):
            volume += (duration[:, None] * demand).min(axis=0)
            latest = max(latest, job.arrival + int(duration[0]))
        self._shortest = self._modes.number[self._modes.first[:-1]]
        self._arrival = np.array([job.arrival for job in instance.jobs], dtype=np.int64)
        self._rate = np.array([job.weight for job in instance.jobs], dtype=float)
        total = instance.server_capacity.sum(axis=0)
        busy = np.divide(volume, total, out=np.zeros(width), where=total > 0)
        return latest + math.ceil(1.5 * float(busy.max(initial=0.0)))

    def of_blocks(self, blocks: slice) -> BlockOracle:
        """The same rows, whose number all jobs decide, with some of the jobs."""
        part = copy(self)
        part.instance = self.instance.with_jobs(self.instance.jobs[blocks])
        kept = np.arange(self.num_blocks)[blocks]
        part._modes = self._modes.some(kept)
        part._arrival, part._rate = self._arrival[kept], self._rate[kept]
        part._outside = self._outside[kept]
        return part

    def _prefix(self, prices: Floats) -> Floats:
        by_row = prices.reshape(len(self.instance.resources), -1).T
        return prefix_sums(np.repeat(by_row, self.bucket, axis=0))

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Cheapest schedule of a job on the merged server; only full capacity is known here."""
        refuse_residual(residual)
        durations, demands = self._modes.of_job(block)
        value, mode, start = cheapest_on_super_server(
            int(self._arrival[block]),
            float(self._rate[block]),
            float(self._outside[block]),
            durations,
            demands,
            self._prefix(prices),
        )
        if mode < 0:
            empty = np.zeros(0, dtype=np.int64)
            return Response(value, value, empty, np.zeros(0))
        end = start + int(durations[mode])
        objective = float(self._rate[block]) * end
        use = self._use(demands[mode], start, min(end - 1, self.slots))
        return Response(value, objective, *use, (mode, start))

    def _use(self, demand: Floats, first: int, last: int) -> tuple[Ints, Floats]:
        rows = np.arange(first - 1, last) // self.bucket
        return window_use(demand, rows, self.slots // self.bucket)

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and their total use at `prices`."""
        values = np.zeros(self.num_blocks)
        used = np.zeros((self.slots, len(self.instance.resources)))
        all_on_super_server(
            self._modes.first,
            self._arrival,
            self._rate,
            self._outside,
            self._modes.number,
            self._modes.demand,
            self._prefix(prices),
            values,
            used,
        )
        by_row = used.reshape(-1, self.bucket, used.shape[1]).sum(axis=1)
        return values, by_row.T.ravel()

    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each; slots beyond the last have none."""
        demand = row_use(self.instance, row).sum(axis=0)
        return self._use(demand, row.first, min(row.last, self.slots))

    @cached_property
    def _server_slots(self) -> int:
        return ServerOracle(self.instance, self.formulation).slots

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server and slot."""
        per_slot = np.diff(self._prefix(prices), axis=0)
        slots = self._server_slots
        spread = np.zeros((len(self.instance.servers), per_slot.shape[1], slots))
        common = min(slots, len(per_slot))
        spread[:, :, :common] = per_slot[:common].T
        return spread.ravel()


class PreemptiveOracle(SlotOracle, MergedOracle):
    """Best responses of jobs that may pause, move and resize, on all servers merged into one."""

    def __init__(self, instance: BatchschedInstance, formulation: str | None = None) -> None:
        MergedOracle.__init__(self, instance, formulation)
        self.layout = LAYOUT
        self._tail = int(self._shortest.max(initial=0))  # free slots in which every job ends
        self.prepare(self.slots, self._tail)

    def slot_ways(self, job: BatchschedJob) -> tuple[Floats, Floats]:
        """Rates and demands by types, q and workers, with the PSs of the best host."""
        instance = self.instance
        times, room = minibatch_times(instance, job), instance.worker_room
        hosted = instance.hosting.fewest_ps(times.shape[3]) if instance.has_ps else None
        rates, demands = [], []
        for m, p, q in np.ndindex(times.shape[:3]):
            most = min(times.shape[3], int(room[:, m].max() if q else room[:, m].sum()))
            count = np.arange(1, most + 1)
            fewest = np.zeros_like(count) if hosted is None else hosted[m, p, q, :most]
            count, fewest = count[fewest < NEVER], fewest[fewest < NEVER]
            rate = count / times[m, p, q, count - 1]
            for speed, workers, servers in ways_in_line(rate, count, fewest):
                demand = workers * instance.worker_demand[m]
                if hosted is not None:
                    demand = demand + servers * instance.ps_demand[p]
                rates.append(speed)
                demands.append(demand)
        return np.array(rates), np.array(demands).reshape(len(rates), len(instance.resources))

    def first_slot(self, job: BatchschedJob) -> int:
        """The slot of its arrival."""
        return job.arrival - 1

    def end_costs(self, job: BatchschedJob) -> Floats:
        """Weight x (last slot + 1)."""
        found: Floats = float(job.weight) * np.arange(2.0, self.slots + self._tail + 2)
        return found

    def outside_cost(self, job: BatchschedJob) -> float:
        """None: behind all priced slots the work is free."""
        return math.inf


def schedule_of(row: WindowRow, cost: float) -> Schedule:
    """Return a row as a schedule."""
    return Schedule(row.first, row.slots, row.worker_type, row.ps_type, row.workers, row.ps, cost)


def merged_modes(instance: BatchschedInstance, job: object) -> tuple[Ints, Floats]:
    """Durations and demands (modes, resources) of a job on the merged server, undominated."""
    table = modes(instance, job)  # type: ignore[arg-type]
    demand = table.workers[:, None] * instance.worker_demand[table.worker_type]
    if instance.has_ps:
        count = fewest_ps(instance, table)
        demand = demand + count[:, None] * instance.ps_demand[table.ps_type]
    return undominated_modes(table.duration, demand)


class ServerOracle(BatchschedOracle):
    """Best responses on real servers: the paper's subproblem (12), exact.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    formulation : str, optional
        Both formulations state the same problem.
    slots : int, optional
        Slots that are priced; by default enough for a list schedule and one more job after it.

    Notes
    -----
    Ties: earlier completion, then worker type, q = 1 first, PS type, fewer workers.
    """

    layout = "servers"

    def __init__(
        self,
        instance: BatchschedInstance,
        formulation: str | None = None,
        slots: int | None = None,
    ) -> None:
        super().__init__(instance, formulation)
        self._index: dict[int, ModeIndex] = {}
        self._shortest_of: dict[int, int] = {}
        self.slots = slots or self._enough_slots()
        names = tuple(server.name for server in instance.servers)
        axes = (
            ("server", names),
            ("resource", instance.resources),
            ("slot", slot_labels(self.slots, instance.server_capacity.size)),
        )
        shape = (*instance.server_capacity.shape, self.slots)
        capacity = np.broadcast_to(instance.usable_capacity[:, :, None], shape).copy()
        self.rows = Rows([RowSet("capacity", axes, capacity)])
        self.features = self._cluster.features(names)
        self.outside_ends_after = self.slots
        self.step = common_step(exactly(job.weight) for job in instance.jobs) or None

    def _enough_slots(self) -> int:
        schedules = list_schedule(self.instance).values()
        longest = max((s.duration for s in schedules), default=1)
        return max((s.last for s in schedules), default=1) + longest

    @cached_property
    def _search(self) -> ScheduleSearch:
        return ScheduleSearch(self.instance, self.slots, most_workers(self.instance.jobs))

    @cached_property
    def _wide(self) -> ScheduleSearch:
        """A search at full capacity that sees how what begins in a priced slot ends."""
        slots = self.slots + self._tail
        return ScheduleSearch(self.instance, slots, most_workers(self.instance.jobs))

    @cached_property
    def _tail(self) -> int:
        """Slots behind the priced ones in which every job ends that uses no other.

        What ends later is dearer than the outside option.
        """
        shortest = (self._shortest(block) for block in range(self.num_blocks))
        return max((length for length in shortest if length < NEVER), default=0)

    def _shortest(self, block: int) -> int:
        """Duration of the shortest mode that the empty servers hold."""
        if block not in self._shortest_of:
            table, job = self.index(block).modes, self.instance.jobs[block]
            once = ScheduleSearch(self.instance, 1, most_workers(self.instance.jobs))
            for length in np.unique(table.duration).tolist():
                alike = table.take(table.duration == length)
                at_once = replace(alike, duration=np.ones_like(alike.duration))
                if once.cheapest(once.index(job, at_once)) is not None:
                    break
            else:
                length = NEVER
            self._shortest_of[block] = int(length)
        return self._shortest_of[block]

    def index(self, block: int) -> ModeIndex:
        """Modes of a block's job."""
        if block not in self._index:
            self._index[block] = self._search.index(self.instance.jobs[block])
        return self._index[block]

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Cheapest schedule of a job; see `BlockOracle.best_response`."""
        if residual is None:
            self._wide.reset(prices=self._widened(prices))
            return self._respond(block, self._wide, self.outside(block))
        free = residual.reshape(*self.instance.server_capacity.shape, self.slots)
        self._search.reset(free.transpose(2, 0, 1), self._widened(prices)[: self.slots])
        return self._respond(block, self._search, None)

    def responses(self, prices: Floats) -> list[Response | None]:
        """Best responses of all blocks at full capacity."""
        self._wide.reset(prices=self._widened(prices))
        blocks = range(self.num_blocks)
        return [self._respond(block, self._wide, self.outside(block)) for block in blocks]

    def _widened(self, prices: Floats) -> Floats:
        """Prices by slot, server and resource, and slots behind them that are free."""
        by_slot = prices.reshape(*self.instance.server_capacity.shape, self.slots)
        wide = np.zeros((self.slots + self._tail, *by_slot.shape[:2]))
        wide[: self.slots] = by_slot.transpose(2, 0, 1)
        return wide

    def _respond(
        self, block: int, search: ScheduleSearch, outside: Response | None
    ) -> Response | None:
        job = self.instance.jobs[block]
        found = search.cheapest(self.index(block), rate=float(job.weight), earliest=job.arrival)
        if outside is not None and (found is None or outside.value < found.cost):
            return outside
        if found is None:
            return None
        rows, amounts = self.place_use(found.row())
        objective = float(job.weight) * found.completion
        return Response(found.cost, objective, rows, amounts, found)

    @cached_property
    def _cluster(self) -> Cluster:
        capacity = loosened(self.instance.server_capacity, self.instance.server_capacity)
        return Cluster(capacity, kinds_of(self.instance))

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Cheapest schedule of a job within limits; the outside option is `outside`."""
        job, table = self.instance.jobs[block], self.index(block).modes
        base = float(job.weight) * np.arange(1.0, self.slots + self._tail + 2)
        found = self._cluster.best_within(table, base, job.arrival, self._widened(prices), limits)
        if found is None:
            return None
        cost, row = found
        rows, amounts = self.place_use(row)
        objective = float(job.weight) * (row.last + 1)
        return Response(cost, objective, rows, amounts, schedule_of(row, cost))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Window, types and counts by server."""
        schedule: Schedule = response.plan
        return window_features(schedule.row())

    def outside(self, block: int) -> Response:
        """The shortest mode after all priced slots: no schedule that begins there is cheaper."""
        job = self.instance.jobs[block]
        begins = max(job.arrival, self.slots + 1)
        length = self._shortest(block)
        cost = float(job.weight) * (begins + length) if length < NEVER else math.inf
        return Response(cost, cost, np.zeros(0, dtype=np.int64), np.zeros(0))

    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Rows that a schedule uses, and how much of each; slots beyond the last have none."""
        used = row_use(self.instance, row).ravel()
        places = np.flatnonzero(used)
        slots = np.arange(row.first - 1, min(row.last, self.slots))
        rows = (places[:, None] * self.slots + slots).ravel()
        return rows, np.repeat(used[places], len(slots))

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Return the prices: the layout is that of servers."""
        return prices

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Row of the solution file for a response."""
        plan: Schedule | tuple[BatchschedRow, ...] = response.plan
        if isinstance(plan, tuple):  # a schedule in pieces that was found elsewhere
            return [write_row(self.instance, row) for row in plan]
        return [self._search.assignment(plan)]


def tree_rows(instance: BatchschedInstance, formulation: str) -> tuple[str, ...]:
    """Layouts that are branched on."""
    return branched_rows(formulation)


def build(instance: BatchschedInstance, formulation: str, rows: str) -> BlockOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    if rows == LAYOUT:
        return PreemptiveOracle(instance, formulation)
    if rows == "servers":
        return ServerOracle(instance, formulation)
    return MergedOracle(instance, formulation, BUCKET if rows == "buckets" else 1)


__all__ = ["ORACLE_ROWS", "build", "first_rows", "tree_rows"]
