"""One job of the edgecloud family at given prices: its cheapest schedule, exactly.

Under a branching's decisions (`RestrictedJob`) every completion c is looked at together: a group's
n chunks take its workers' cheapest slots up to c, one layer after the other, and chunks in the
cloud the cheapest window that has ended by c; what places charge is added up place by place. A
completion is when the job stops paying for time, so that a decision "completes in k at the
earliest" is a price of waiting and bars no schedule that is worth having.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import loosened
from hindsched.models.edgecloud.sets import lone_time
from hindsched.solvers.families.edgecloud.priced_rows import PS_SETS, SET_NAMES, PricedRows
from hindsched.solvers.kernels.edgecloud.cheapest_chunks import (
    cheapest_by_completion,
    cheapest_units_by_completion,
    cheapest_windows,
)
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.decisions import COMPLETES, Feature, Limits, window_of

CHUNKS, CLOUD_CHUNKS = "chunks", "cloud_chunks"


@dataclass(frozen=True)
class EdgecloudPlan:
    """A job's schedule."""

    completion: int  # last slot
    together: bool = False  # zeta: everything in the cloud
    # slots of a chunk and how many chunks take them, on as many workers, by row of the layout
    edge: dict[int, list[tuple[list[int], int]]] = field(default_factory=dict)
    # first and last slot of each chunk in the cloud
    cloud: list[tuple[int, int]] = field(default_factory=list)
    # workers by (row, slot), in ``literal``
    units: dict[tuple[int, int], int] = field(default_factory=dict)


class JobView:
    """One job at given prices and with what is left of each row (None: all).

    Slots count from its arrival. `restricted`: decisions may keep it from the cloud and from most
    workers.
    """

    def __init__(
        self, priced: PricedRows, formulation: str, block: int, prices: Floats,
        residual: Floats | None, *, restricted: bool = False,
    ) -> None:  # fmt: skip
        self.priced, self.formulation, self.j, self.prices = priced, formulation, block, prices
        instance = priced.instance
        self.job = job = instance.jobs[block]
        places = priced.places_of(block)
        self.rows = [row for row, _, _ in places]
        self.owner = np.array([priced.server_of(row) for row in self.rows], dtype=np.int64)
        self.work = int(instance.edge_slots[block])
        self.cloud_work = int(instance.cloud_slots[block])
        self.first = np.array([delay for _, delay, _ in places], dtype=np.int64)
        self.count = np.array([count for _, _, count in places], dtype=np.int64)
        self.limit = instance.cloud_workers(job.worker_type)
        self.ready = int(instance.cloud_upload[block])
        self.may_be_together = self.limit != 0 and instance.cloud_ps(job.ps_type) != 0
        few_ps = residual is not None and instance.cloud_ps(job.ps_type) is not None
        self.length = self._length(restricted, few_ps)
        shape, own = (len(self.rows), self.length), SET_NAMES[priced.layout]
        self.price, self.free, self.extra = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.free[:] = self.count[:, None]
        for i, row in enumerate(self.rows):
            self.price[i] = self._series(prices, own, row)
            if residual is not None:
                self.free[i] = self._series(residual, own, row)
                self.price[i][self.free[i] < 1] = np.inf
        self.room = np.zeros((0, self.length))
        if job.chunk_gb:
            self._add_storage(prices, residual)
        self.cloud_price = self._series(prices, "cloud_capacity", job.worker_type)
        self.cloud_room: Floats | None = None
        if residual is not None and priced.first("cloud_capacity", job.worker_type) is not None:
            self.cloud_room = self._series(residual, "cloud_capacity", job.worker_type)
        self.together_price = self.cloud_price.copy()
        if few_ps and residual is not None:  # nothing runs where no PS is left
            everywhere, in_cloud = (self._series(residual, n, job.ps_type) < 1 for n in PS_SETS)
            self.price[:, everywhere] = np.inf
            self.cloud_price[everywhere] = np.inf
            self.together_price[everywhere | in_cloud] = np.inf

    def _length(self, restricted: bool, few_ps: bool) -> int:
        """Slots from the arrival in which the best response must lie.

        Behind the last priced slot everything is free: there the job runs in waves on its workers
        at the edge, or on those of a cloud that has few; under decisions all on one worker.
        """
        if self.limit is None and self.may_be_together and not (few_ps or restricted):
            return self.ready + self.cloud_work
        workers = int(self.count.sum()) if len(self.rows) and not restricted else int(restricted)
        alone = max([self.ready, *self.first.tolist()]) + 1
        waves = -(-self.job.chunks // max(1, workers or self.limit or self.job.chunks))
        tail = alone + waves * max(self.work, self.cloud_work)
        return max(0, self.priced.last - self.job.arrival + 1) + tail

    def _series(self, source: Floats, name: str, key: object, beyond: float = 0.0) -> Floats:
        """Numbers of a place's rows from the arrival on, `beyond` behind the last one."""
        found, base = np.full(self.length, beyond), self.priced.first(name, key)
        if base is not None:
            begin = self.job.arrival - 1
            width = max(0, min(self.length, self.priced.last - begin))
            found[:width] = source[base + begin : base + begin + width]
        return found

    def _add_storage(self, prices: Floats, residual: Floats | None) -> None:
        """What storing chunks costs, and how many more a server can store by each completion."""
        gb, instance = self.job.chunk_gb or 0.0, self.priced.instance
        limited = [s for s in self.owner.tolist() if self.priced.first("storage", s) is not None]
        if residual is not None and limited:
            self.room = np.full((len(instance.servers), self.length), np.inf)
        for i, server in enumerate(self.owner.tolist()):
            if server not in limited:
                continue
            paid = gb * self._series(prices, "storage", server)
            if self.formulation == "literal":
                self.price[i] += paid
            else:
                self.extra[i] = np.cumsum(paid)
            if residual is not None:
                least = np.minimum.accumulate(self._series(residual, "storage", server, np.inf))
                self.room[server] = np.floor(loosened(least, instance.storage_gb[server]) / gb)

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
        """A plan and what it uses of the rows."""
        priced, job, gb = self.priced, self.job, self.job.chunk_gb or 0.0
        rows: list[int] = []
        amounts: list[float] = []

        def use(name: str, key: object, slots: Iterable[int], amount: float) -> None:
            base = priced.first(name, key)
            if base is not None and amount:
                kept = [base + t - 1 for t in slots if t <= priced.last]
                rows.extend(kept)
                amounts.extend([amount] * len(kept))

        own, stay = SET_NAMES[priced.layout], range(job.arrival, plan.completion + 1)
        running: set[int] = set()
        for row, parts in plan.edge.items():
            for slots, number in parts:
                running.update(slots)
                use(own, row, slots, float(number))
                use("storage", priced.server_of(row), stay, gb * number)
        for first, last in plan.cloud:
            running.update(range(first, last + 1))
            use("cloud_capacity", job.worker_type, range(first, last + 1), 1.0)
        for (row, t), number in plan.units.items():
            running.add(t)
            if row == len(priced.places.labels):
                use("cloud_capacity", job.worker_type, (t,), float(number))
            else:
                use(own, row, (t,), float(number))
                use("storage", priced.server_of(row), (t,), gb * number)
        for name in PS_SETS[: 1 + plan.together]:  # one PS wherever it runs
            use(name, job.ps_type, sorted(running), 1.0)
        index, place = np.unique(np.array(rows, dtype=np.int64), return_inverse=True)
        summed = np.zeros(index.size)
        np.add.at(summed, place, np.array(amounts))
        time = float(plan.completion - job.arrival + 1)
        return Response(value, time, index, summed, plan)


class RestrictedJob(JobView):
    """One job without migration on ``groups``, within `limits` of its decisions."""

    def __init__(self, priced: PricedRows, block: int, prices: Floats, limits: Limits) -> None:
        super().__init__(priced, "no-migration", block, prices, None, restricted=True)
        self.limits = limits
        self.is_empty = any(low > high for low, high in limits.values())

    def best(self) -> Response | None:
        """The cheapest schedule, or None if none is within limits."""
        low, high = (end - self.job.arrival for end in window_of(self.limits, COMPLETES))
        if self.is_empty or high < 0:
            return None
        tables = [self._charges(i) for i in range(len(self.rows))]
        sky_low, sky_high = window_of(self.limits, Feature(CLOUD_CHUNKS))
        numbers = np.arange(self.job.chunks + 1)
        out = (numbers < sky_low) | (numbers > sky_high)
        window = np.full(self.length, np.inf)
        if self.limit != 0:
            window = cheapest_windows(self.cloud_price, self.ready, self.work)
        sky = _times(window, numbers)
        sky[:, out] = np.inf
        sky[self.windows(self.work)[:, None] < numbers] = np.inf
        sums = [sky]
        for table in tables:
            sums.append(_add(sums[-1], table))
        mixed = sums[-1][:, -1].copy()
        mixed[: lone_time(self.priced.instance, self.j, "no-migration") - 1] = np.inf
        together = np.full(self.length, np.inf)
        if self.may_be_together and not out[-1] and all(table[-1, 0] == 0 for table in tables):
            window = cheapest_windows(self.cloud_price, self.ready, self.cloud_work)
            together = self.job.chunks * window
            together[self.windows(self.cloud_work) < self.job.chunks] = np.inf
        begin, end = min(max(low, 0), self.length - 1), min(high, self.length - 1) + 1
        times = np.maximum(np.arange(begin, end), low) + 1.0
        values = times + np.minimum(mixed, together)[begin:end]
        at = int(np.argmin(values))
        if not np.isfinite(values[at]):
            return None
        c, completion = begin + at, self._slot(int(times[at]) - 1)
        if together[c] <= mixed[c]:
            windows = self._windows(c, self.cloud_work, self.cloud_price, self.job.chunks)
            plan = EdgecloudPlan(completion, True, {}, windows)
        else:
            plan = self._restricted_plan(c, completion, tables, sums)
        found = self._answer(plan, 0.0)
        value = found.objective + float(self.prices[found.rows] @ found.amounts)
        return Response(value, found.objective, found.rows, found.amounts, plan)

    def _charges(self, i: int) -> Floats:
        """What a place charges for 0, 1, ... chunks if the job completes by c, (L, D + 1)."""
        slots, most, count = np.arange(self.length), self.job.chunks, int(self.count[i])
        low, high = window_of(self.limits, Feature(CHUNKS, (self.rows[i],)))
        free = (slots >= self.first[i]) & (slots[:, None] >= slots)
        sums = np.zeros((self.length, self.length + 1))
        np.cumsum(np.sort(np.where(free, self.price[i], np.inf), axis=1), axis=1, out=sums[:, 1:])
        found = np.full((self.length, most + 1), np.inf)
        for n in range(low, min(high, most) + 1):
            layers, more = divmod(n, count)
            if (layers + (more > 0)) * self.work > self.length:
                break
            cost = count * sums[:, layers * self.work]
            if more:
                with np.errstate(invalid="ignore"):
                    last = sums[:, (layers + 1) * self.work] - sums[:, layers * self.work]
                cost = cost + more * np.nan_to_num(last, nan=np.inf, posinf=np.inf)
            found[:, n] = cost + n * self.extra[i]
        return found

    def _restricted_plan(
        self, c: int, completion: int, tables: list[Floats], sums: list[Floats]
    ) -> EdgecloudPlan:
        left = self.job.chunks
        edge: dict[int, list[tuple[list[int], int]]] = {}
        for i in reversed(range(len(tables))):
            ways = tables[i][c, : left + 1] + sums[i][c, left::-1]
            n = int(np.argmin(ways))
            left -= n
            if n:
                edge[self.rows[i]] = self._chunks(i, n, c)
        windows = self._windows(c, self.work, self.cloud_price, left) if left else []
        return EdgecloudPlan(completion, False, edge, windows)

    def _chunks(self, i: int, n: int, c: int) -> list[tuple[list[int], int]]:
        """Slots of a place's n chunks, and how many workers take them."""
        slots = np.arange(self.first[i], c + 1)
        ranked = slots[np.argsort(self.price[i, slots], kind="stable")]
        found = []
        for layer in range(-(-n // int(self.count[i]))):
            number = min(int(self.count[i]), n - layer * int(self.count[i]))
            part = np.sort(ranked[layer * self.work : (layer + 1) * self.work])
            found.append(([self._slot(int(t)) for t in part], number))
        return found


def _times(window: Floats, numbers: Ints) -> Floats:
    """Price of so many windows by completion; none costs nothing."""
    found = np.full((window.size, numbers.size), np.inf)
    found[:, 0] = 0.0
    found[:, 1:] = window[:, None] * numbers[1:]
    return found


def _add(one: Floats, other: Floats) -> Floats:
    """Least cost of 0, 1, ... chunks in two sets of places."""
    found = np.full_like(one, np.inf)
    for n in range(one.shape[1]):
        if np.isfinite(other[:, n]).any():
            shifted = one[:, : one.shape[1] - n] + other[:, n : n + 1]
            found[:, n:] = np.minimum(found[:, n:], shifted)
    return found
