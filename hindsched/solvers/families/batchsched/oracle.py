"""Pricing oracles of batchsched: best response of one job to prices on the servers' resources.

The layouts ``cluster`` and ``preemptive`` are those of `windows/oracle.py`; ``servers`` has rows
(server, resource, slot): the paper's subproblem, solved by the exact routine of `ScheduleSearch`.
Schedules are placed on servers in this layout only.

Slots beyond the last priced one, T, cost nothing. What begins in a priced slot may end there; of
what begins there the shortest mode in T + 1 is the cheapest, at ``w (T + 1 + L)``: it is every
job's outside option.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import fewest_ps, minibatch_times, modes
from hindsched.instances.decimals import common_step, exactly, loosened
from hindsched.instances.modes import NEVER, in_pieces
from hindsched.models.windows.sets import row_use
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import BatchschedRow, write_row
from hindsched.solutions.window_row import WindowRow
from hindsched.solvers.families.batchsched.list_schedule import list_schedule
from hindsched.solvers.families.batchsched.oracle_search import (
    ModeIndex,
    Schedule,
    ScheduleSearch,
    kinds_of,
    most_workers,
)
from hindsched.solvers.families.windows.oracle import (
    EndCosts,
    EndToEnd,
    MergedOracle,
    WindowOracle,
    merged_modes,
)
from hindsched.solvers.families.windows.pieces import (
    LAYOUT,
    ROWS,
    PiecesOracle,
    Way,
    branched_rows,
    first_rows,
    slot_ways,
)
from hindsched.solvers.families.windows.restricted import Cluster, window_features
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import Feature, Limits
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

ORACLE_ROWS = ROWS


class BatchschedOracle(WindowOracle):
    """What all layouts share."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: BatchschedInstance

    def __init__(self, instance: BatchschedInstance, formulation: str | None) -> None:
        super().__init__(instance, formulation)
        self.cluster = instance

    def worth(self, solution: Any, job: JobRecord) -> float:
        """Weight x (last slot + 1)."""
        rows, completion = solution.rows.get(job.name, ()), solution.completion(job.name)
        if completion is None or (len(rows) > 1 and not in_pieces(solution.formulation)):
            raise InputError("solution", job.name, "must run the job once, to its end")
        return float(job.weight) * (completion + 1)  # type: ignore[attr-defined]


class BatchschedMerged(BatchschedOracle, MergedOracle):
    """Best responses on all servers merged into one."""

    def __init__(self, instance: BatchschedInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        tables = [modes(instance, job) for job in instance.jobs]
        found = [merged_modes(instance, table, _hosted(instance, table)) for table in tables]
        resources = instance.resources
        volume, latest = np.zeros(len(resources)), 1
        for job, (duration, demand) in zip(instance.jobs, found, strict=True):
            volume += (duration[:, None] * demand).min(axis=0)
            latest = max(latest, job.arrival + int(duration[0]))
        total = instance.server_capacity.sum(axis=0)
        busy = np.divide(volume, total, out=np.zeros(len(volume)), where=total > 0)
        self.slots = latest + math.ceil(1.5 * float(busy.max(initial=0.0)))
        labels = slot_labels(self.slots, len(resources))
        axes = (("resource", resources), ("slot", labels))
        usable = instance.usable_capacity.sum(axis=0)
        capacity = np.broadcast_to(usable[:, None], (len(resources), self.slots)).copy()
        self.rows = Rows([RowSet("capacity", axes, capacity)])
        shortest = np.array([duration[0] for duration, _ in found], dtype=np.int64)
        arrival = np.array([job.arrival for job in instance.jobs], dtype=np.int64)
        rate: Floats = np.array([job.weight for job in instance.jobs], dtype=float)
        tail = int(shortest.max(initial=0))  # what ends later is dearer than the outside option
        table = np.arange(1.0, self.slots + tail + 2)[None]
        outside: Floats = rate * (np.maximum(arrival, self.slots + 1) + shortest)
        choices = EndToEnd.of(found, len(resources), np.int64)
        self.prepare(choices, arrival, EndCosts(rate, table, np.zeros_like(arrival)), outside)

    @cached_property
    def _server_slots(self) -> int:
        return ServerOracle(self.instance, self.formulation).slots

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server."""
        by_slot = prices.reshape(-1, self.slots)
        spread = np.zeros((len(self.instance.servers), len(by_slot), self._server_slots))
        common = min(self._server_slots, self.slots)
        spread[:, :, :common] = by_slot[:, :common]
        return spread.ravel()


def _hosted(instance: BatchschedInstance, table: Any) -> Ints:
    """PSs that the best host of each mode needs."""
    return fewest_ps(instance, table) if instance.has_ps else np.zeros(len(table), dtype=np.int64)


class BatchschedPieces(PiecesOracle, BatchschedMerged):
    """Best responses of jobs that may pause, move and resize, on all servers merged into one."""

    def __init__(self, instance: BatchschedInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        ways = [slot_ways(instance, self._ways_of(job)) for job in instance.jobs]
        self.prepare_pieces(ways, np.full(len(ways), math.inf))

    def _ways_of(self, job: BatchschedJob) -> Iterator[Way]:
        """Rates by types, q and workers, with the PSs of the best host."""
        instance = self.instance
        times, room = minibatch_times(instance, job), instance.worker_room
        hosted = instance.hosting.fewest_ps(times.shape[3]) if instance.has_ps else None
        for m, p, q in np.ndindex(times.shape[:3]):
            most = min(times.shape[3], int(room[:, m].max() if q else room[:, m].sum()))
            count = np.arange(1, most + 1)
            fewest = np.zeros_like(count) if hosted is None else hosted[m, p, q, :most]
            count, fewest = count[fewest < NEVER], fewest[fewest < NEVER]
            yield m, p, count / times[m, p, q, count - 1], count, fewest


def schedule_of(row: WindowRow, cost: float) -> Schedule:
    """Return a row as a schedule."""
    return Schedule(row.first, row.slots, row.worker_type, row.ps_type, row.workers, row.ps, cost)


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
        return Response(found.cost, objective, rows, amounts, (found.row(),))

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
        return Response(cost, objective, rows, amounts, (row,))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Window, types and counts by server."""
        return window_features(response.plan[0])

    def outside(self, block: int) -> Response:
        """The shortest mode after all priced slots: no schedule that begins there is cheaper."""
        job = self.instance.jobs[block]
        begins = max(job.arrival, self.slots + 1)
        length = self._shortest(block)
        cost = float(job.weight) * (begins + length) if length < NEVER else math.inf
        return Response(cost, cost, np.zeros(0, dtype=np.int64), np.zeros(0))

    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Rows that a schedule uses, and how much of each; slots beyond the last have none."""
        used = row_use(self.cluster, row).ravel()
        places = np.flatnonzero(used)
        slots = np.arange(row.first - 1, min(row.last, self.slots))
        rows = (places[:, None] * self.slots + slots).ravel()
        return rows, np.repeat(used[places], len(slots))

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Return the prices: the layout is that of servers."""
        return prices

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Row of the solution file for a response."""
        plan: tuple[BatchschedRow, ...] = response.plan
        return [write_row(self.instance, row) for row in plan]


def tree_rows(instance: BatchschedInstance, formulation: str) -> tuple[str, ...]:
    """Layouts that are branched on."""
    return branched_rows(formulation)


def build(instance: BatchschedInstance, formulation: str, rows: str) -> BlockOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    oracles = {"servers": ServerOracle, LAYOUT: BatchschedPieces}
    return oracles.get(rows, BatchschedMerged)(instance, formulation)


__all__ = ["ORACLE_ROWS", "build", "first_rows", "tree_rows"]
