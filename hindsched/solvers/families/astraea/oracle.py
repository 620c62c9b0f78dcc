"""The astraea family's pricing oracle: one job's best window at prices on workers and PSs.

The layouts ``cluster`` and ``preemptive`` are those of `windows/oracle.py`, with row sets
``worker_capacity`` over (type, slot) and ``ps_capacity``; ``servers`` has rows (server, type,
slot): the exact subproblem. Schedules are placed on servers in this layout only.

The horizon is hard. With ``optional`` a job may stay out at value 0; with ``must-complete`` a job
that fits nowhere makes the bound -inf, as the problem then is infeasible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes, most_workers
from hindsched.instances.base import JobRecord
from hindsched.instances.modes import Modes, ps_for
from hindsched.models.astraea.sets import UnitCluster
from hindsched.models.windows.sets import row_use
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import write_row
from hindsched.solutions.base import Assignment
from hindsched.solutions.window_row import WindowRow
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
    fewest_ps,
    first_rows,
    slot_ways,
)
from hindsched.solvers.families.windows.restricted import Cluster, window_features
from hindsched.solvers.kernels.astraea.valued_window import best_window, place_window
from hindsched.solvers.kernels.placement import Kinds
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.decisions import Feature, Limits
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

ORACLE_ROWS = ROWS


class AstraeaOracle(WindowOracle):
    """What all layouts share: values, types, and the use of a given schedule."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: AstraeaInstance

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        self.cluster = UnitCluster.of(instance)
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

    def values_of(self, job: AstraeaJob) -> Floats:
        """Revenue by completion slot, shape (horizon + 1,); -inf before the first."""
        table = np.full(self.slots + 1, -math.inf)
        first = job.arrival + 1
        table[first:] = self.instance.revenues(job, np.arange(float(first), self.slots + 1))
        return table

    def worth(self, solution: Any, job: JobRecord) -> float | None:
        """Revenue of a completed job."""
        found: float | None = solution.revenue(job.name)
        return found


class AstraeaMerged(AstraeaOracle, MergedOracle):
    """Best responses on all servers merged into one."""

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        jobs = instance.jobs
        found = []
        for job in jobs:
            table = modes(instance, job)
            fewest = self._fewest(table)
            found.append(merged_modes(self.cluster, table.take(fewest > 0), fewest[fewest > 0]))
        values = np.array([self.values_of(job) for job in jobs]).reshape(len(jobs), self.slots + 1)
        each, width = np.arange(len(jobs)), self.cluster.server_capacity.shape[1]
        self.prepare(
            EndToEnd.of(found, width, np.int64),
            np.array([job.arrival + 1 for job in jobs], dtype=np.int64),
            EndCosts(np.ones(len(jobs)), -values, each),
            np.full(len(jobs), 0.0 if self.optional else math.inf),
        )

    def _row_set(self, name: str, count: Ints, types: tuple[str, ...]) -> RowSet:
        slots = slot_labels(self.slots, len(types))
        total = count.sum(axis=0).astype(float)
        capacity = np.broadcast_to(total[:, None], (len(types), self.slots)).copy()
        return RowSet(name, (("type", types), ("slot", slots)), capacity)

    def _fewest(self, table: Modes) -> Ints:
        """PSs that the best host of each mode needs; 0 for one that none serves."""
        hosted = np.zeros(
            (*self.instance.ps_ratio.shape, 2, table.workers.max(initial=0) + 1), dtype=np.int64
        )
        for w, p, q in np.ndindex(hosted.shape[:3]):
            count, fewest = self._served(w, p, bool(q), hosted.shape[3] - 1)
            hosted[w, p, q, count] = fewest
        found: Ints = hosted[table.worker_type, table.ps_type, table.one_server, table.workers]
        return found

    def _served(self, w: int, p: int, together: bool, most: int) -> tuple[Ints, Ints]:
        """Numbers of workers that some host serves, and the fewest PSs that it needs."""
        room, places = self.instance.worker_count[:, w], self.instance.ps_count[:, p]
        return fewest_ps(most, together, room, places, float(self.instance.ps_ratio[w, p]))

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Repeat the merged server's price on every server."""
        arrays = self.rows.unpack(prices)
        servers = len(self.instance.servers)
        return np.concatenate(
            [np.repeat(array[None], servers, axis=0).ravel() for array in arrays.values()]
        )


class AstraeaPieces(PiecesOracle, AstraeaMerged):
    """Best responses of jobs that may pause, move and resize, on all servers merged into one."""

    def __init__(self, instance: AstraeaInstance, formulation: str | None = None) -> None:
        super().__init__(instance, formulation)
        ways = [slot_ways(self.cluster, self._ways_of(job)) for job in instance.jobs]
        self.prepare_pieces(ways, self._outside)

    def _ways_of(self, job: AstraeaJob) -> Iterator[Way]:
        """Rates by types, zeta and workers, with the PSs of the best host."""
        times, most = self.instance.minibatch_times(job), most_workers(self.instance, job)
        for w, p, together in np.ndindex(times.shape):
            room = self.instance.worker_count[:, w]
            held = min(most, int(room.max() if together else room.sum()))
            count, fewest = self._served(w, p, bool(together), held)
            yield w, p, count / times[w, p, together], count, fewest


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
        rows, amounts = self.place_use(chosen)
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
        rows, amounts = self.place_use(chosen)
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

    def place_use(self, row: WindowRow) -> tuple[Ints, Floats]:
        """Flat rows that a schedule uses, and how much of each."""
        used, slots = row_use(self.cluster, row), np.arange(row.first - 1, row.last)
        split = len(self.instance.worker_types)
        found, amounts = [], []
        for row_set, of_types in zip(self.rows.sets, np.split(used, [split], axis=1), strict=True):
            cells = np.flatnonzero(of_types)
            base = self.rows.slices[row_set.name].start + cells * self.slots
            found.append((base[:, None] + slots).ravel())
            amounts.append(np.repeat(of_types.ravel()[cells], slots.size))
        return np.concatenate(found), np.concatenate(amounts)

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file."""
        plan: tuple[AstraeaRow, ...] = response.plan
        return [write_row(self.instance, row) for row in plan]


def build(instance: AstraeaInstance, formulation: str, rows: str) -> AstraeaOracle:
    """Build the oracle with one of the layouts `ORACLE_ROWS`."""
    oracles = {"servers": ServerOracle, LAYOUT: AstraeaPieces}
    return oracles.get(rows, AstraeaMerged)(instance, formulation)


def tree_rows(instance: AstraeaInstance, formulation: str) -> tuple[str, ...]:
    """Layouts that are branched on."""
    return branched_rows(formulation)


__all__ = ["ORACLE_ROWS", "build", "first_rows", "tree_rows"]
