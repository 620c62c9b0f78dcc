"""Pricing oracles of batchsched: best response of one job to prices on the servers' resources.

The layouts are those of `windows/oracle.py`. Slots beyond the last priced one, T, cost nothing.
What begins in a priced slot may end there; of what begins there the shortest mode in T + 1 is the
cheapest, at ``w (T + 1 + L)``: it is every job's outside option.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import minibatch_times, modes
from hindsched.instances.decimals import common_step, exactly, loosened
from hindsched.instances.modes import NEVER, PREEMPTIVE, Modes, in_pieces
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solvers.families.batchsched.schedules import ScheduleSearch, kinds_of, list_schedule
from hindsched.solvers.families.windows.oracle import (
    NOTHING,
    ROWS,
    EndCosts,
    MergedOracle,
    PiecesOracle,
    WindowOracle,
    WindowServerOracle,
    first_rows,
    merged_modes,
    slot_ways,
    tree_rows,
)
from hindsched.solvers.kernels.windows.window import Parts
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

__all__ = ["ORACLE_ROWS", "build", "first_rows", "tree_rows"]
ORACLE_ROWS = ROWS


class BatchschedOracle(WindowOracle):
    """What all layouts share."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: BatchschedInstance

    def __init__(self, instance: BatchschedInstance, formulation: str | None) -> None:
        super().__init__(instance, formulation)
        self.cluster = instance

    def lay_rows(self, servers: tuple[str, ...] | None) -> None:
        """Lay out the rows, of each server or of all merged."""
        usable, resources = self.instance.usable_capacity, self.instance.resources
        usable = usable if servers else usable.sum(axis=0)
        slots = slot_labels(self.slots, usable.size)
        axes: tuple[Any, ...] = (("resource", resources), ("slot", slots))
        capacity = np.repeat(usable[..., None], self.slots, axis=-1)
        axes = (("server", servers), *axes) if servers else axes
        self.rows = Rows([RowSet("capacity", axes, capacity)])

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
        hosted = _hosted(instance)
        found = [merged_modes(instance, modes(instance, job), hosted) for job in instance.jobs]
        arrival = np.array([job.arrival for job in instance.jobs], dtype=np.int64)
        shortest = np.array([duration[0] for duration, _ in found], dtype=np.int64)
        total = instance.server_capacity.sum(axis=0)
        volume = sum(
            ((length[:, None] * demand).min(axis=0) for length, demand in found), 0 * total
        )
        busy = np.divide(volume, total, out=np.zeros(len(total)), where=total > 0)
        latest = int((arrival + shortest).max(initial=1))
        self.slots = latest + math.ceil(1.5 * float(busy.max(initial=0.0)))
        self.lay_rows(None)
        rate: Floats = np.array([job.weight for job in instance.jobs], dtype=float)
        tail = int(shortest.max(initial=0))  # what ends later is dearer than the outside option
        table = np.arange(1.0, self.slots + tail + 2)[None]
        outside: Floats = rate * (np.maximum(arrival, self.slots + 1) + shortest)
        self.prepare(found, arrival, EndCosts(rate, table, np.zeros_like(arrival)), outside)

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


def _hosted(instance: BatchschedInstance) -> Ints:
    """PSs that the best host needs by types, q and number of workers; 0 without PSs."""
    if instance.has_ps:
        return instance.hosting.fewest_ps(instance.most_workers)
    return np.zeros((len(instance.worker_types), 1, 2, instance.most_workers), dtype=np.int64)


class BatchschedPieces(PiecesOracle, BatchschedMerged):
    """Best responses of jobs that may pause, move and resize, on all servers merged into one."""

    def __init__(self, instance: BatchschedInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        hosted, room = _hosted(instance), instance.worker_room
        ways = [
            slot_ways(instance, minibatch_times(instance, job), room, hosted)
            for job in instance.jobs
        ]
        self.prepare_pieces(ways, np.full(len(ways), math.inf))


class ServerOracle(BatchschedOracle, WindowServerOracle):
    """Best responses on real servers: the paper's subproblem (12), exact.

    Without `slots`, enough are priced for a list schedule and one more job after it. Ties: earlier
    completion, then fewer workers, worker type, q = 1 first, PS type.
    """

    def __init__(
        self, instance: BatchschedInstance, formulation: str | None = None, slots: int | None = None
    ) -> None:
        super().__init__(instance, formulation)
        self._tables: dict[int, Modes] = {}
        self._shortest_of: dict[int, int] = {}
        self.slots = slots or self._enough_slots()
        names = tuple(server.name for server in instance.servers)
        self.lay_rows(names)
        self.kinds, self.features = kinds_of(instance), self.features_on(names)
        self.outside_ends_after = self.slots
        self.step = common_step(exactly(job.weight) for job in instance.jobs) or None

    def _enough_slots(self) -> int:
        schedules = list_schedule(self.instance).values()
        longest = max((s.duration for s in schedules), default=1)
        return max((s.last for s in schedules), default=1) + longest

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
            table, once = self.table(block), ScheduleSearch(self.instance, 1)
            for length in np.unique(table.duration).tolist():
                alike = table.take(table.duration == length)
                at_once = replace(alike, duration=np.ones_like(alike.duration))
                if once.cheapest(at_once) is not None:
                    break
            else:
                length = NEVER
            self._shortest_of[block] = int(length)
        return self._shortest_of[block]

    def table(self, block: int) -> Modes:
        """Modes of a job."""
        if block not in self._tables:
            self._tables[block] = modes(self.instance, self.instance.jobs[block])
        return self._tables[block]

    def end_costs(self, block: int) -> Floats:
        """Weight x (last slot + 1)."""
        weight = float(self.instance.jobs[block].weight)
        found: Floats = weight * np.arange(1.0, self.slots + self._tail + 2)
        return found

    def earliest(self, block: int) -> int:
        """The arrival."""
        return self.instance.jobs[block].arrival

    def parts(self, vector: Floats) -> Parts:
        """A vector over the rows by server, resource and slot, and 0 in the slots behind them."""
        shape = self.instance.server_capacity.shape
        found = np.pad(vector.reshape(*shape, self.slots), ((0, 0), (0, 0), (0, self._tail)))
        return Parts.of(found)

    @cached_property
    def full(self) -> Parts:
        """The empty servers, `loosened`."""
        capacity = loosened(self.instance.server_capacity, self.instance.server_capacity)
        found = np.repeat(capacity[:, :, None], self.slots + self._tail, axis=2)
        return Parts.of(found)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Cheapest schedule of a job; see `BlockOracle.best_response`."""
        if residual is None:
            outside = self.outside(block)
            found = self.cheapest(block, self.full, self.parts(prices), {})
            return outside if found is None or outside.value < found.value else found
        free = self.parts(loosened(residual, self.rows.capacity))
        return self.cheapest(block, free, self.parts(prices), {COMPLETES: (0, self.slots)})

    def outside(self, block: int) -> Response:
        """The shortest mode after all priced slots: no schedule that begins there is cheaper."""
        job = self.instance.jobs[block]
        begins, length = max(job.arrival, self.slots + 1), self._shortest(block)
        cost = float(job.weight) * (begins + length) if length < NEVER else math.inf
        return Response(cost, cost, NOTHING, np.zeros(0))

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Row of the solution file for a response."""
        return [BatchschedSolution.write_row(self.instance, row) for row in response.plan]


def build(instance: BatchschedInstance, formulation: str, rows: str) -> BlockOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    oracles = {"servers": ServerOracle, PREEMPTIVE: BatchschedPieces}
    return oracles.get(rows, BatchschedMerged)(instance, formulation)
