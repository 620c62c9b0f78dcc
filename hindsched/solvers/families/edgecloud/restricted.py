"""One job of edgecloud without migration under a branching's decisions, exactly.

Every completion c is looked at together: a group's n chunks take its workers' cheapest slots up to
c, one layer after the other, and chunks in the cloud the cheapest window that has ended by c. What
all places charge for 0, 1, ... of the job's chunks is added up place by place.

A completion is when the job stops paying for time: its work may be done before. So a decision
"completes in k at the earliest" is a price of waiting and bars no schedule that is worth having.
"""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.models.edgecloud.sets import lone_time
from hindsched.solvers.families.edgecloud.block import EdgecloudPlan, JobView
from hindsched.solvers.families.edgecloud.priced_rows import PricedRows
from hindsched.solvers.kernels.edgecloud.cheapest_chunks import cheapest_windows
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.decisions import COMPLETES, Feature, Limits, window_of

CHUNKS, CLOUD_CHUNKS = "chunks", "cloud_chunks"


class RestrictedJob(JobView):
    """One job at given prices, within limits.

    Parameters
    ----------
    priced : PricedRows
        Rows of the layout ``groups``.
    block : int
        Position of the job.
    prices : ndarray
        Price of each row.
    limits : mapping
        Of `completion`, `chunks` by place, and `cloud_chunks`.
    """

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
