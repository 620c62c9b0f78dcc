"""One job of the edgecloud family at given prices: its cheapest schedule, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import loosened
from hindsched.models.edgecloud.sets import lone_time
from hindsched.solvers.families.edgecloud.priced_rows import PricedRows
from hindsched.solvers.kernels.edgecloud.cheapest_chunks import (
    cheapest_by_completion,
    cheapest_units_by_completion,
    cheapest_windows,
)
from hindsched.solvers.oracles.base import Response


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
        self,
        priced: PricedRows,
        formulation: str,
        block: int,
        prices: Floats,
        residual: Floats | None,
        *,
        restricted: bool = False,
    ) -> None:
        self.priced, self.formulation, self.j = priced, formulation, block
        instance = priced.instance
        self.job = job = instance.jobs[block]
        places = priced.places_of(block)
        self.rows = [row for row, _, _ in places]
        self.work = int(instance.edge_slots[block])
        self.cloud_work = int(instance.cloud_slots[block])
        self.first = np.array([delay for _, delay, _ in places], dtype=np.int64)
        self.count = np.array([count for _, _, count in places], dtype=np.int64)
        self.limit = instance.cloud_workers(job.worker_type)
        self.ready = int(instance.cloud_upload[block])
        self.may_be_together = self.limit != 0 and instance.cloud_ps(job.ps_type) != 0
        self.few_ps = residual is not None and instance.cloud_ps(job.ps_type) is not None
        self.prices = prices
        self.length = self._length(restricted)
        self.price = np.zeros((len(self.rows), self.length))
        self.free = np.repeat(self.count[:, None].astype(float), self.length, axis=1)
        for i, row in enumerate(self.rows):
            base = row * priced.last
            self._fill(self.price[i], prices, base)
            if residual is not None:
                self.free[i] = 0.0
                self._fill(self.free[i], residual, base)
                self.price[i][self.free[i] < 1] = np.inf
        self.extra = np.zeros_like(self.price)
        self.owner = np.array([self._server(row) for row in self.rows], dtype=np.int64)
        self.room = np.zeros((0, self.length))
        self._add_storage(prices, residual)
        self.cloud_price = np.zeros(self.length)
        self.cloud_room: Floats | None = None
        if (cloud := priced.cloud_row(job.worker_type)) is not None:
            self._fill(self.cloud_price, prices, cloud)
            if residual is not None:
                self.cloud_room = np.zeros(self.length)
                self._fill(self.cloud_room, residual, cloud)
        self.together_price = self.cloud_price.copy()
        if self.few_ps:
            assert residual is not None
            self._mask_ps(residual)

    def _server(self, row: int) -> int:
        """Server of a row; the first one in the layout ``types``."""
        return self.priced.instance.worker_list[self.priced.places.members[row][0]][0]

    def _mask_ps(self, residual: Floats) -> None:
        """Nothing runs where no PS is left, and nothing wholly in the cloud where none is there."""
        for name, targets in (
            ("parameter_servers", (*self.price, self.cloud_price, self.together_price)),
            ("cloud_parameter_servers", (self.together_price,)),
        ):
            left = np.zeros(self.length)
            base = self.priced.ps_row(name, self.job.ps_type)
            self._fill(left, residual, base)
            for target in targets:
                target[left < 1] = np.inf

    def _length(self, restricted: bool) -> int:
        """Slots from the arrival in which the best response must lie.

        Behind the last priced slot everything is free: there the job can run in waves on its
        workers at the edge, or if it has none on those of a cloud that has few; under decisions
        all on one worker.
        """
        if self.limit is None and self.may_be_together and not (self.few_ps or restricted):
            return self.ready + self.cloud_work
        workers = int(self.count.sum()) if len(self.rows) and not restricted else int(restricted)
        alone = max([self.ready, *self.first.tolist()]) + 1
        waves = -(-self.job.chunks // max(1, workers or self.limit or self.job.chunks))
        tail = alone + waves * max(self.work, self.cloud_work)
        return max(0, self.priced.last - self.job.arrival + 1) + tail

    def _fill(self, target: Floats, source: Floats, base: int) -> None:
        """Copy a row's slots from the arrival on; what lies behind the last one stays."""
        begin = self.job.arrival - 1
        width = max(0, min(self.length, self.priced.last - begin))
        target[:width] = source[base + begin : base + begin + width]

    def _add_storage(self, prices: Floats, residual: Floats | None) -> None:
        gb = self.job.chunk_gb
        if not gb or self.priced.storage_slice is None:
            return
        if residual is not None:
            self.room = np.full((len(self.priced.instance.servers), self.length), np.inf)
        for i, server in enumerate(self.owner.tolist()):
            base = self.priced.storage_row(server)
            if base is None:
                continue
            series = np.zeros(self.length)
            self._fill(series, prices, base)
            if self.formulation == "literal":
                self.price[i] += gb * series
            else:
                self.extra[i] = gb * np.cumsum(series)
            if residual is not None:
                left = np.full(self.length, np.inf)
                self._fill(left, residual, base)
                least = np.minimum.accumulate(left)
                storage = self.priced.instance.storage_gb[server]
                self.room[server] = np.floor(loosened(least, storage) / gb)

    def no_migration(self) -> Response | None:
        """Chunks stay on their workers."""
        best, c, all_in, mixed = self._search()
        if best == np.inf:
            return None
        if c < 0:
            windows = self._windows(all_in, self.cloud_work, self.together_price, self.job.chunks)
            return self._answer(EdgecloudPlan(self._slot(all_in), True, {}, windows), best)
        return self._answer(self._plan(c, mixed[:, c]), best)

    def value(self) -> float:
        """The best response's value alone, which is all that a bound needs."""
        return self._moving()[0] if self.formulation == "literal" else self._search()[0]

    def _search(self) -> tuple[float, int, int, Floats]:
        """Value, completion (-1: all in the cloud), completion there, and chunk prices there."""
        D = self.job.chunks
        together = np.full(self.length, np.inf)
        mixed = np.full((1, self.length), np.inf)
        if self.limit != 0:
            mixed = self._cloud_costs(self.cloud_price, self.work)
            if self.may_be_together:
                costs = self._cloud_costs(self.together_price, self.cloud_work)
                together = costs.sum(axis=0) if len(costs) == D else D * costs[0]
                together[self.windows(self.cloud_work) < D] = np.inf
        times = np.arange(1, self.length + 1) + together
        all_in = int(np.argmin(times)) if self.length else -1
        limit = float(times[all_in]) if self.length else np.inf
        earliest = lone_time(self.priced.instance, self.j, "no-migration") - 1
        best, c = cheapest_by_completion(
            self.first, self.count, self.price, self.extra, self.work, D, mixed,
            self.windows(self.work), self.owner, self.room, limit, earliest,
        )  # fmt: skip
        return float(best), int(c), all_in, mixed

    def windows(self, work: int) -> Ints:
        """Most chunks that can have ended in the cloud by each slot: its workers one after another.

        Where what is left of its workers is known (`cloud_room`), the prices say it.
        """
        every = np.full(self.length, self.job.chunks)
        if self.limit is None or self.cloud_room is not None:
            return every
        turns = np.maximum(np.arange(1, self.length + 1) - self.ready, 0) // work
        return np.minimum(every, turns * self.limit)

    def _cloud_costs(self, price: Floats, work: int) -> Floats:
        """Price of the first, second, ... chunk in the cloud by completion, shape (K, L).

        One row if any number can run at once. Where only so many workers are left (`cloud_room`)
        chunks take the earliest windows, one after the other; then this is one way, not the best.
        """
        if self.cloud_room is None:
            return cheapest_windows(price, self.ready, work)[None, :]
        costs = np.full((self.job.chunks, self.length), np.inf)
        for k, (first, cost) in enumerate(self._in_turn(price, work, self.job.chunks)):
            costs[k, first + work - 1 :] = cost
        return costs

    def _in_turn(self, price: Floats, work: int, chunks: int) -> list[tuple[int, float]]:
        """First slot and cost of chunks that take the earliest windows left."""
        assert self.cloud_room is not None
        room = self.cloud_room.copy()
        found: list[tuple[int, float]] = []
        first = self.ready
        while len(found) < chunks and first + work <= self.length:
            window = slice(first, first + work)
            cost = float(price[window].sum())
            if room[window].min() < 1 or cost == np.inf:
                first += 1
                continue
            room[window] -= 1
            found.append((first, cost))
        return found

    def _slot(self, index: int) -> int:
        return self.job.arrival + index

    def _windows(self, end: int, work: int, price: Floats, chunks: int) -> list[tuple[int, int]]:
        """First and last slots of chunks in the cloud that have ended by `end`, cheapest first."""
        if self.cloud_room is not None:
            firsts = [first for first, _ in self._in_turn(price, work, chunks)]
        else:
            starts = range(self.ready, end - work + 2)
            firsts = [min(starts, key=lambda t: (float(price[t : t + work].sum()), t))] * chunks
        return [(self._slot(first), self._slot(first + work - 1)) for first in firsts]

    def _plan(self, c: int, cloud: Floats) -> EdgecloudPlan:
        """The schedule behind `cheapest_by_completion`; `cloud` has the prices there by `c`."""
        edge: dict[int, list[tuple[list[int], int]]] = {row: [] for row in self.rows}
        ranked: list[list[int]] = []
        for i in range(len(self.rows)):
            begin = int(self.first[i])
            order = np.argsort(self.price[i, begin : c + 1], kind="stable") + begin
            ranked.append(order.tolist())
        layer = [0] * len(self.rows)
        left, sent = self.job.chunks, 0
        space = self.room[:, c].tolist() if len(self.room) else None
        sky = int(self.windows(self.work)[c])
        taken: list[tuple[int, int, int]] = []
        while left:
            which, cheapest = -1, float(cloud[min(sent, len(cloud) - 1)])
            cheapest = cheapest if sent < sky else np.inf
            for i, server in enumerate(self.owner.tolist()):
                slots = ranked[i][layer[i] * self.work : (layer[i] + 1) * self.work]
                if len(slots) == self.work and (space is None or space[server] >= 1):
                    step = float(self.price[i, slots].sum()) + float(self.extra[i, c])
                    if step < cheapest or (which == -1 and step <= cheapest):
                        which, cheapest = i, step
            if which == -1:
                number = min(left, sky - sent) if sent + 1 >= len(cloud) else 1
                sent += number
                left -= number
                continue
            number = min(left, int(self.count[which]))
            if space is not None:
                number = int(min(number, space[self.owner[which]]))
                space[self.owner[which]] -= number
            taken.append((which, layer[which], number))
            layer[which] += 1
            left -= number
        for i, depth, number in taken:
            slots = ranked[i][depth * self.work : (depth + 1) * self.work]
            chunk = sorted(self._slot(t) for t in slots)
            edge[self.rows[i]].append((chunk, number))
        windows = self._windows(c, self.work, self.cloud_price, sent) if sent else []
        return EdgecloudPlan(self._slot(c), False, {r: s for r, s in edge.items() if s}, windows)

    def _moving(self) -> tuple[float, int, bool, Any]:
        """Value, completion (-1: none), if all is in the cloud; first slots, workers, prices."""
        D, instance = self.job.chunks, self.priced.instance
        earliest = lone_time(instance, self.j, "literal") - 1
        first, free, price = self.first, self._within_storage(), self.price
        if self.limit != 0:
            first = np.append(first, self.ready)
            room = np.full(self.length, float(D if self.limit is None else min(D, self.limit)))
            if self.cloud_room is not None:
                room = np.minimum(room, self.cloud_room)
            free = np.vstack((free, room))
            price = np.vstack((price, self.cloud_price))
        best, c, together = np.inf, -1, False
        if self.may_be_together:
            cloud = slice(len(self.rows), None)
            wholly = self.together_price[None, :]
            best, c = cheapest_units_by_completion(
                first[cloud], free[cloud], wholly, self.cloud_work, D, np.inf, 0
            )
            together = c >= 0
        better, at = cheapest_units_by_completion(
            first, free, price, self.work, D, best, max(0, earliest)
        )
        if at >= 0:
            best, c, together = better, at, False
        if together:
            price = np.vstack((self.price, self.together_price))
        return float(best), int(c), together, (first, free, price)

    def literal(self) -> Response | None:
        """Work may move."""
        D, (best, c, together, (first, free, price)) = self.job.chunks, self._moving()
        if c < 0:
            return None
        units: dict[tuple[int, int], int] = {}
        work = self.cloud_work if together else self.work
        rows = [*self.rows, *([len(self.priced.places.labels)] if self.limit != 0 else [])]
        skip = len(self.rows) if together else 0
        left = D * work
        options: list[tuple[float, int, int, int]] = []
        for t in range(c + 1):
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
                key = rows[i], self._slot(t)
                units[key] = units.get(key, 0) + number
                left -= number
        last = max(t for _, t in units)
        plan = EdgecloudPlan(max(last, self._slot(c)), together, units=units)
        return self._answer(plan, best)

    def _within_storage(self) -> Floats:
        """Workers left of each row, only as many on a server as it can store chunks throughout."""
        free = self.free.copy()
        if len(self.room):
            left = self.room.min(axis=1)
            for i, server in enumerate(self.owner.tolist()):
                free[i] = np.minimum(free[i], left[server])
                left[server] -= min(left[server], float(self.count[i]))
        return free

    def _answer(self, plan: EdgecloudPlan, value: float) -> Response:
        priced = self.priced
        rows: list[int] = []
        amounts: list[float] = []

        def add(base: int, slots: Iterable[int], amount: float) -> None:
            kept = [base + t - 1 for t in slots if t <= priced.last]
            rows.extend(kept)
            amounts.extend([amount] * len(kept))

        for row, parts in plan.edge.items():
            for slots, number in parts:
                add(row * priced.last, slots, float(number))
        for (row, t), number in plan.units.items():
            if row < len(priced.places.labels):
                add(row * priced.last, (t,), float(number))
        if (base := priced.cloud_row(self.job.worker_type)) is not None:
            for first, last in plan.cloud:
                add(base, range(first, last + 1), 1.0)
            for (row, t), number in plan.units.items():
                if row == len(priced.places.labels):
                    add(base, (t,), float(number))
        self._store(plan, add)
        self._hold(plan, add)
        index, place = np.unique(np.array(rows, dtype=np.int64), return_inverse=True)
        summed = np.zeros(index.size)
        np.add.at(summed, place, np.array(amounts))
        time = float(plan.completion - self.job.arrival + 1)
        return Response(value, time, index, summed, plan)

    def _store(self, plan: EdgecloudPlan, add: Callable[[int, Iterable[int], float], None]) -> None:
        priced, gb = self.priced, self.job.chunk_gb
        if not gb:
            return
        for row, parts in plan.edge.items():
            base = priced.storage_row(self._server(row))
            if base is not None:
                for _, number in parts:
                    add(base, range(self.job.arrival, plan.completion + 1), gb * number)
        for (row, t), number in plan.units.items():
            if row < len(priced.places.labels):
                base = priced.storage_row(self._server(row))
                if base is not None:
                    add(base, (t,), gb * number)

    def _hold(self, plan: EdgecloudPlan, add: Callable[[int, Iterable[int], float], None]) -> None:
        """One PS in every slot in which the job runs, in the cloud if all of it is there."""
        if self.priced.instance.cloud_ps(self.job.ps_type) is None:
            return
        slots = {t for parts in plan.edge.values() for chunk, _ in parts for t in chunk}
        slots |= {t for first, last in plan.cloud for t in range(first, last + 1)}
        slots |= {t for _, t in plan.units}
        for name in ("parameter_servers", *(("cloud_parameter_servers",) * plan.together)):
            if self.priced.layout == "servers":
                add(self.priced.ps_row(name, self.job.ps_type), sorted(slots), 1.0)
