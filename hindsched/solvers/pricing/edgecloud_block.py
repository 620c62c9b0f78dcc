"""One job of the edgecloud family at given prices: its cheapest schedule, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hindsched.models.edgecloud_windows import lone_time
from hindsched.solvers.kernels.cheapest_chunks import (
    cheapest_by_completion,
    cheapest_units_by_completion,
    cheapest_windows,
)
from hindsched.solvers.pricing.base import Response
from hindsched.solvers.pricing.rows import Vector

if TYPE_CHECKING:
    from hindsched.solvers.pricing.edgecloud import EdgecloudOracle


@dataclass(frozen=True)
class EdgecloudPlan:
    """A job's schedule.

    Parameters
    ----------
    completion : int
        Last slot.
    together : bool
        Zeta: everything in the cloud.
    edge : dict of int to list of (list of int, int)
        Slots of a chunk and how many chunks take them, on as many workers, by row of the layout.
    cloud : list of (int, int)
        First and last slot of each chunk in the cloud.
    units : dict of (int, int) to int
        Workers by (row, slot), in ``literal``.
    """

    completion: int
    together: bool = False
    edge: dict[int, list[tuple[list[int], int]]] = field(default_factory=dict)
    cloud: list[tuple[int, int]] = field(default_factory=list)
    units: dict[tuple[int, int], int] = field(default_factory=dict)


class JobView:
    """One job at given prices, with slots counted from its arrival."""

    def __init__(
        self, oracle: EdgecloudOracle, block: int, prices: Vector, residual: Vector | None
    ) -> None:
        self.oracle, self.j = oracle, block
        instance = oracle.instance
        self.job = job = instance.jobs[block]
        self.rows = oracle.rows_of(job)
        self.work = int(instance.edge_slots[block])
        self.cloud_work = int(instance.cloud_slots[block])
        self.first = np.array([oracle.delay(block, row) for row in self.rows], dtype=np.int64)
        self.count = oracle.places.counts[self.rows]
        self.limit = instance.cloud_workers(job.worker_type)
        self.ready = int(instance.cloud_upload[block])
        self.may_be_together = self.limit != 0 and instance.cloud_ps(job.ps_type) != 0
        self.length = self._length()
        rest = residual is None
        self.price = np.zeros((len(self.rows), self.length))
        self.free = np.repeat(self.count[:, None].astype(float), self.length, axis=1)
        for i, row in enumerate(self.rows):
            base = row * oracle.last
            self._fill(self.price[i], prices, base)
            if residual is not None:
                self.free[i] = 0.0
                self._fill(self.free[i], residual, base)
                self.price[i][self.free[i] < 1 - 1e-9] = np.inf
        self.extra = np.zeros_like(self.price)
        self._add_storage(prices)
        self.cloud_price = np.zeros(self.length)
        if self.limit:
            assert oracle.cloud_slice is not None
            base = (
                oracle.cloud_slice.start + oracle.cloud_types.index(job.worker_type) * oracle.last
            )
            self._fill(self.cloud_price, prices, base)
            if residual is not None:
                room = np.zeros(self.length)
                self._fill(room, residual, base)
                self.cloud_price[room < job.chunks] = np.inf
        self.prices, self.rest = prices, rest

    def _length(self) -> int:
        """Slots from the arrival in which the best response must lie."""
        if self.limit is None and self.may_be_together:
            return self.ready + self.cloud_work
        workers = int(self.count.sum()) if len(self.rows) else 0
        alone = max([self.ready, *self.first.tolist()]) + 1
        waves = -(-self.job.chunks // max(1, workers)) if workers else 1
        tail = alone + waves * max(self.work, self.cloud_work)
        return max(0, self.oracle.last - self.job.arrival + 1) + tail

    def _fill(self, target: Vector, source: Vector, base: int) -> None:
        """Copy a row's slots from the arrival on; what lies behind the last one stays."""
        begin = self.job.arrival - 1
        width = max(0, min(self.length, self.oracle.last - begin))
        target[:width] = source[base + begin : base + begin + width]

    def _add_storage(self, prices: Vector) -> None:
        gb = self.job.chunk_gb
        if not gb or self.oracle.storage_slice is None:
            return
        for i, row in enumerate(self.rows):
            server = self.oracle.instance.worker_list[self.oracle.places.members[row][0]][0]
            base = self.oracle.storage_row(server)
            if base is not None:
                series = np.zeros(self.length)
                self._fill(series, prices, base)
                if self.oracle.formulation == "literal":
                    self.price[i] += gb * series
                else:
                    self.extra[i] = gb * np.cumsum(series)

    def no_migration(self) -> Response | None:
        """Chunks stay on their workers."""
        best, c, all_in, mixed = self._search()
        if best == np.inf:
            return None
        if c < 0:
            window = self._window(all_in, self.cloud_work)
            plan = EdgecloudPlan(self._slot(all_in), True, {}, [window] * self.job.chunks)
            return self._answer(plan, best)
        return self._answer(self._plan(c, float(mixed[c])), best)

    def no_migration_value(self) -> float:
        """The value alone, which is all that a bound needs."""
        return self._search()[0]

    def _search(self) -> tuple[float, int, int, Vector]:
        """Value, completion (-1: all in the cloud), completion there, and chunk prices there."""
        D = self.job.chunks
        together = np.full(self.length, np.inf)
        mixed = np.full(self.length, np.inf)
        if self.limit != 0:
            mixed = cheapest_windows(self.cloud_price, self.ready, self.work)
            if self.may_be_together:
                together = cheapest_windows(self.cloud_price, self.ready, self.cloud_work)
        times = np.arange(1, self.length + 1) + D * together
        all_in = int(np.argmin(times)) if self.length else -1
        limit = float(times[all_in]) if self.length else np.inf
        earliest = lone_time(self.oracle.instance, self.j, "no-migration") - 1
        best, c = cheapest_by_completion(
            self.first, self.count, self.price, self.extra, self.work, D, mixed, limit, earliest
        )
        return float(best), int(c), all_in, mixed

    def _slot(self, index: int) -> int:
        return self.job.arrival + index

    def _window(self, end: int, work: int) -> tuple[int, int]:
        """First and last slot of the cheapest window in the cloud that has ended by `end`."""
        starts = range(self.ready, end - work + 2)
        first = min(starts, key=lambda t: (float(self.cloud_price[t : t + work].sum()), t))
        return self._slot(first), self._slot(first + work - 1)

    def _plan(self, c: int, cloud: float) -> EdgecloudPlan:
        """The schedule behind `cheapest_by_completion`."""
        edge: dict[int, list[tuple[list[int], int]]] = {row: [] for row in self.rows}
        ranked: list[list[int]] = []
        for i in range(len(self.rows)):
            begin = int(self.first[i])
            order = np.argsort(self.price[i, begin : c + 1], kind="stable") + begin
            ranked.append(order[self.price[i, order] < np.inf].tolist())
        layer = [0] * len(self.rows)
        left = self.job.chunks
        taken: list[tuple[int, int, int]] = []
        while left:
            which, cheapest = -1, cloud
            for i in range(len(self.rows)):
                slots = ranked[i][layer[i] * self.work : (layer[i] + 1) * self.work]
                if len(slots) == self.work:
                    step = float(self.price[i, slots].sum()) + float(self.extra[i, c])
                    if step < cheapest or (which == -1 and step <= cheapest):
                        which, cheapest = i, step
            if which == -1:
                break
            number = min(left, int(self.count[which]))
            taken.append((which, layer[which], number))
            layer[which] += 1
            left -= number
        for i, depth, number in taken:
            slots = ranked[i][depth * self.work : (depth + 1) * self.work]
            chunk = sorted(self._slot(t) for t in slots)
            edge[self.rows[i]].append((chunk, number))
        window = [self._window(c, self.work)] * left if left else []
        return EdgecloudPlan(self._slot(c), False, {r: s for r, s in edge.items() if s}, window)

    def literal(self) -> Response | None:
        """Work may move."""
        D, instance = self.job.chunks, self.oracle.instance
        earliest = lone_time(instance, self.j, "literal") - 1
        first, free, price = self.first, self.free, self.price
        if self.limit != 0:
            first = np.append(first, self.ready)
            room = float(D if self.limit is None else min(D, self.limit))
            free = np.vstack((free, np.full(self.length, room)))
            price = np.vstack((price, self.cloud_price))
        best, c, together = np.inf, -1, False
        if self.may_be_together:
            cloud = slice(len(self.rows), None)
            best, c = cheapest_units_by_completion(
                first[cloud], free[cloud], price[cloud], self.cloud_work, D, np.inf, 0
            )
            together = c >= 0
        better, at = cheapest_units_by_completion(
            first, free, price, self.work, D, best, max(0, earliest)
        )
        if at >= 0:
            best, c, together = better, at, False
        if c < 0:
            return None
        units: dict[tuple[int, int], int] = {}
        work = self.cloud_work if together else self.work
        rows = [*self.rows, *([len(self.oracle.places.labels)] if self.limit != 0 else [])]
        skip = len(self.rows) if together else 0
        left = D * work
        options: list[tuple[float, int, int, int]] = []
        for t in range(int(c) + 1):
            here = [
                (float(price[i, t]), i, int(free[i, t]))
                for i in range(skip, len(rows))
                if t >= first[i] and free[i, t] > 0 and price[i, t] < np.inf
            ]
            room_left = D
            for value, i, number in sorted(here):
                number = min(number, room_left)
                if number:
                    options.append((value, t, i, number))
                    room_left -= number
        for _, t, i, number in sorted(options):
            number = min(number, left)
            if number:
                units[rows[i], self._slot(t)] = number
                left -= number
        last = max(t for _, t in units)
        plan = EdgecloudPlan(max(last, self._slot(int(c))), together, units=units)
        return self._answer(plan, float(best))

    def _answer(self, plan: EdgecloudPlan, value: float) -> Response:
        oracle = self.oracle
        rows: list[int] = []
        amounts: list[float] = []

        def add(base: int, slots: Iterable[int], amount: float) -> None:
            kept = [base + t - 1 for t in slots if t <= oracle.last]
            rows.extend(kept)
            amounts.extend([amount] * len(kept))

        for row, parts in plan.edge.items():
            for slots, number in parts:
                add(row * oracle.last, slots, float(number))
        for (row, t), number in plan.units.items():
            if row < len(oracle.places.labels):
                add(row * oracle.last, (t,), float(number))
        if self.limit and oracle.cloud_slice is not None:
            position = oracle.cloud_types.index(self.job.worker_type)
            base = oracle.cloud_slice.start + position * oracle.last
            for first, last in plan.cloud:
                add(base, range(first, last + 1), 1.0)
            for (row, t), number in plan.units.items():
                if row == len(oracle.places.labels):
                    add(base, (t,), float(number))
        self._store(plan, add)
        index, place = np.unique(np.array(rows, dtype=np.int64), return_inverse=True)
        summed = np.zeros(index.size)
        np.add.at(summed, place, np.array(amounts))
        time = float(plan.completion - self.job.arrival + 1)
        return Response(value, time, index, summed, plan)

    def _store(self, plan: EdgecloudPlan, add: Callable[[int, Iterable[int], float], None]) -> None:
        oracle, gb = self.oracle, self.job.chunk_gb
        if not gb or oracle.storage_slice is None:
            return

        def base_of(row: int) -> int | None:
            worker = oracle.places.members[row][0]
            return oracle.storage_row(oracle.instance.worker_list[worker][0])

        for row, parts in plan.edge.items():
            base = base_of(row)
            if base is not None:
                for _, number in parts:
                    add(base, range(self.job.arrival, plan.completion + 1), gb * number)
        for (row, t), number in plan.units.items():
            base = base_of(row) if row < len(oracle.places.labels) else None
            if base is not None:
                add(base, (t,), gb * number)
