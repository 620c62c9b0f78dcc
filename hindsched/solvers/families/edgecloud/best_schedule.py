"""One job of edgecloud at given prices: its cheapest schedule.

Without migration every completion c is looked at together: a group's n chunks take its workers'
cheapest slots up to c, one layer after the other, and chunks in the cloud the cheapest window that
has ended by c. A completion is when the job stops paying for time, so that a branching's decision
"completes in k at the earliest" is a price of waiting and bars no schedule that is worth having.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import loosened
from hindsched.models.edgecloud.sets import lone_time
from hindsched.solvers.families.edgecloud.priced_rows import PS_SETS, SET_NAMES, PricedRows, RowUse
from hindsched.solvers.kernels.edgecloud.cheapest_chunks import cheapest_by_completion
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.decisions import COMPLETES, Feature, Limits, window_of

CHUNKS, CLOUD_CHUNKS = "chunks", "cloud_chunks"
CLOUD = -1  # the place that is no row
Part = tuple[int, list[int], int]
"""Place (or `CLOUD`), slots, and how many workers take them: chunks, or units of moving work."""


@dataclass(frozen=True)
class EdgecloudPlan:
    """A job's schedule."""

    completion: int  # last slot that the job pays for
    together: bool  # zeta: everything in the cloud
    parts: list[Part]


def window_sums(prices: Floats, length: int) -> Floats:
    """Sums of all windows of a length, of at least one, put together from powers of two."""
    sums, blocks, done, size = np.zeros(prices.size - length + 1), prices, 0, 1
    while size <= length:
        if length & size:
            sums += blocks[done : done + sums.size]
            done += size
        blocks = blocks[:-size] + blocks[size:]
        size *= 2
    return sums


class PricedJob:
    """One job at given prices and with what is left of each row (None: all).

    Slots count from its arrival. `limits` of a branching's decisions hold at full capacity and
    without migration.
    """

    def __init__(
        self, priced: PricedRows, formulation: str, block: int, prices: Floats,
        residual: Floats | None = None, limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self.priced, self.formulation, self.limits = priced, formulation, limits or {}
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
        self.earliest = lone_time(instance, block, formulation) - 1
        few_ps = residual is not None and instance.cloud_ps(job.ps_type) is not None
        low, high = (end - job.arrival for end in window_of(self.limits, COMPLETES))
        self.length = max(0, min(self._length(few_ps), high + 1))
        self.paid_until = max(low, 0)
        shape, row_set = (len(self.rows), self.length), SET_NAMES[priced.layout]
        self.price, self.free, self.extra = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.free[:] = self.count[:, None]
        for i, row in enumerate(self.rows):
            self.price[i] = self._series(prices, row_set, row)
            if residual is not None:
                self.free[i] = self._series(residual, row_set, row)
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

    def _length(self, few_ps: bool) -> int:
        """Slots from the arrival in which the best response must lie.

        Behind the last priced slot everything is free: there the job runs in waves on its workers
        at the edge, or on those of a cloud that has few; under decisions all on one worker.
        """
        if self.limit is None and self.may_be_together and not (few_ps or self.limits):
            return self.ready + self.cloud_work
        workers = 1 if self.limits else int(self.count.sum()) or self.limit or self.job.chunks
        alone = max([self.ready, *self.first.tolist()]) + 1
        tail = alone + -(-self.job.chunks // workers) * max(self.work, self.cloud_work)
        return max(0, self.priced.last - self.job.arrival + 1) + tail

    def _series(self, source: Floats, name: str, key: object, beyond: float = 0.0) -> Floats:
        """Numbers of a place's rows from the arrival on, `beyond` behind the last one."""
        series, base = np.full(self.length, beyond), self.priced.first(name, key)
        if base is not None:
            begin = self.job.arrival - 1
            width = max(0, min(self.length, self.priced.last - begin))
            series[:width] = source[base + begin : base + begin + width]
        return series

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

    def best(self) -> Response | None:
        """The cheapest schedule, or None if there is none."""
        if any(low > high for low, high in self.limits.values()) or not self.length:
            return None
        if self.formulation == "literal":
            value, c, together, units = self._moving()
            rows = [*self.rows, CLOUD]
            parts = [(rows[i], [self._slot(t)], number) for i, t, number in units]
        else:
            value, c, together, homes = self._staying()
            parts = self._parts(c, together, homes) if value < np.inf else []
        if value == np.inf:
            return None
        c = max(c, self.paid_until)
        return self._answer(EdgecloudPlan(self._slot(c), together, parts), value)

    def _slot(self, index: int) -> int:
        return self.job.arrival + index

    # Chunks stay on their workers

    def _staying(self) -> tuple[float, int, bool, list[int]]:
        """Value, completion, if all is in the cloud, and chunks by place, the cloud last."""
        D, limits = self.job.chunks, self.limits
        features = [Feature(CHUNKS, (row,)) for row in self.rows] + [Feature(CLOUD_CHUNKS)]
        least, most = np.array([window_of(limits, of) for of in features]).T
        most = most.clip(max=D)
        together = np.full(self.length, np.inf)
        mixed = np.full((1, self.length), np.inf)
        if self.limit != 0:
            mixed = self._cloud_costs(self.cloud_price, self.work)
            may_be_all = least[-1] <= D == most[-1] and not least[:-1].any()
            if self.may_be_together and may_be_all:
                costs = self._cloud_costs(self.together_price, self.cloud_work)
                together = costs.sum(axis=0) if len(costs) == D else D * costs[0]
                together[self.windows(self.cloud_work) < D] = np.inf
        times = np.maximum(np.arange(self.length), self.paid_until) + 1.0 + together
        all_in = int(np.argmin(times)) if self.length else -1
        limit = float(times[all_in]) if self.length else np.inf
        earliest = max(self.earliest, min(self.paid_until, self.length - 1))
        best, c, homes = cheapest_by_completion(
            self.first, self.count, self.price, self.extra, self.work, D, mixed,
            self.windows(self.work), self.owner, self.room, least, most, limit, earliest,
            self.paid_until,
        )  # fmt: skip
        if c < 0:
            return float(best), all_in, True, [0] * len(self.rows) + [D]
        return float(best), int(c), False, homes.tolist()

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
            cheapest = np.full((1, self.length), np.inf)
            if self.ready + work <= self.length:
                windows = window_sums(price[self.ready :], work)
                cheapest[0, self.ready + work - 1 :] = np.minimum.accumulate(windows)
            return cheapest
        costs = np.full((self.job.chunks, self.length), np.inf)
        for k, first in enumerate(self._in_turn(price, work, self.job.chunks)):
            costs[k, first + work - 1 :] = price[first : first + work].sum()
        return costs

    def _in_turn(self, price: Floats, work: int, chunks: int) -> list[int]:
        """First slots of chunks that take the earliest windows left."""
        assert self.cloud_room is not None
        room = self.cloud_room.copy()
        firsts: list[int] = []
        first = self.ready
        while len(firsts) < chunks and first + work <= self.length:
            window = slice(first, first + work)
            taken = np.flatnonzero((room[window] < 1) | np.isinf(price[window]))
            if taken.size:
                first += int(taken[-1]) + 1
                continue
            room[window] -= 1
            firsts.append(first)
        return firsts

    def _parts(self, c: int, together: bool, homes: list[int]) -> list[Part]:
        """Slots of so many chunks at each place, in layers of its workers, and in the cloud."""
        parts: list[Part] = []
        for i, number in enumerate(homes[:-1]):
            slots = np.arange(self.first[i], c + 1)
            ranked = slots[np.argsort(self.price[i, slots], kind="stable")] + self.job.arrival
            for layer in range(-(-number // int(self.count[i]))):
                chunk = np.sort(ranked[layer * self.work : (layer + 1) * self.work]).tolist()
                in_layer = min(int(self.count[i]), number - layer * int(self.count[i]))
                parts.append((self.rows[i], chunk, in_layer))
        work, price = self.work, self.cloud_price
        if together:
            work, price = self.cloud_work, self.together_price
        if self.cloud_room is not None:
            firsts = self._in_turn(price, work, homes[-1])
        elif homes[-1]:
            cheapest = np.argmin(window_sums(price[self.ready : c + 1], work))
            firsts = [self.ready + int(cheapest)] * homes[-1]
        else:
            firsts = []
        for first, number in Counter(firsts).items():
            begin = self._slot(first)
            parts.append((CLOUD, list(range(begin, begin + work)), number))
        return parts

    # Work moves

    def _moving(self) -> tuple[float, int, bool, list[tuple[int, int, int]]]:
        """Value, completion, if all is in the cloud, and units by place and slot."""
        first, free, price = self.first, self._within_storage(), self.price
        skip, D = len(self.rows), self.job.chunks
        if self.limit != 0:
            first = np.append(first, self.ready)
            room = np.full(self.length, float(D if self.limit is None else min(D, self.limit)))
            if self.cloud_room is not None:
                room = np.minimum(room, self.cloud_room)
            free, price = np.vstack((free, room)), np.vstack((price, self.cloud_price))
        best, c, units = np.inf, -1, list[tuple[int, int, int]]()
        if self.may_be_together:
            wholly = self.together_price[None, :]
            best, c, units = self._cheapest_units(
                first[skip:], free[skip:], wholly, self.cloud_work, 0, best
            )
            units = [(skip, t, number) for _, t, number in units]
        mixed = self._cheapest_units(first, free, price, self.work, self.earliest, best)
        return (best, c, True, units) if mixed[1] < 0 else (*mixed[:2], False, mixed[2])

    def _cheapest_units(
        self, first: Ints, free: Floats, price: Floats, work: int, earliest: int, best: float
    ) -> tuple[float, int, list[tuple[int, int, int]]]:
        """Value, completion and units of the cheapest ``D work``, at most D a slot; -1 for none.

        The units chosen are kept in a heap, the dearest on top, which makes room for cheaper ones.
        """
        need, held, paid, c = self.job.chunks * work, 0, 0.0, -1
        chosen: list[tuple[float, int, int, int]] = []
        units: list[tuple[float, int, int, int]] = []
        for t in range(self.length):
            if t + 1 >= best:
                break
            room = self.job.chunks
            for i in np.argsort(price[:, t], kind="stable").tolist():
                cost, number = float(price[i, t]), int(min(room, free[i, t]))
                if t >= first[i] and number > 0 and cost < np.inf:
                    heappush(chosen, (-cost, -t, i, number))
                    held, paid, room = held + number, paid + number * cost, room - number
            while held > need:
                cost, slot, i, number = chosen[0]
                spare = min(number, held - need)
                held, paid = held - spare, paid + spare * cost
                if spare == number:
                    heappop(chosen)
                else:
                    heapreplace(chosen, (cost, slot, i, number - spare))
            if held == need and t >= earliest and t + 1 + paid < best:
                best, c, units = t + 1 + paid, t, list(chosen)
        return best, c, [(i, -t, number) for _, t, i, number in units]

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
        job, gb, use = self.job, self.job.chunk_gb or 0.0, RowUse(self.priced)
        stay = range(job.arrival, plan.completion + 1)
        for row, slots, number in plan.parts:
            if row == CLOUD:
                use.add("cloud_capacity", job.worker_type, slots, float(number))
                continue
            use.add(SET_NAMES[self.priced.layout], row, slots, float(number))
            stored = slots if self.formulation == "literal" else stay
            use.add("storage", self.priced.server_of(row), stored, gb * number)
        running = sorted({t for _, slots, _ in plan.parts for t in slots})
        for name in PS_SETS[: 1 + plan.together]:  # one PS wherever it runs
            use.add(name, job.ps_type, running, 1.0)
        index, place = np.unique(np.array(use.rows, dtype=np.int64), return_inverse=True)
        summed = np.zeros(index.size)
        np.add.at(summed, place, np.array(use.amounts))
        time = float(plan.completion - job.arrival + 1)
        return Response(value, time, index, summed, plan)
