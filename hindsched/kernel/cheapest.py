"""The cheapest units of what is offered, in integers, and the cheapest slots of a job in pieces.

Layout ``preemptive`` of batchsched and astraea is of jobs whose slots need not touch: in every slot
a job may have any placement that the rules of a slot allow. On all servers merged into one, a slot
of type w, type p, q and N workers gives N / time of work; mixes of slots are allowed too, a
relaxation, so that the price of work in a slot is a convex envelope and the best response buys what
the job needs where it is cheapest. Rates are rounded up and slopes down to multiples of 1/FINE: the
bound errs outward only.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, chain, islice, pairwise, repeat
from operator import itemgetter
from typing import Any

from . import reading
from .exact import ceiling

FINE = 1 << 96
Kind = tuple[str, Any, Sequence[tuple[int, int]], Sequence[Any]]
"""Types w and p, the pairs (N, fewest PSs), and the slots of a mini-batch for each."""
Way = tuple[int, str, Any, int, int]
"""What a job may do in a slot: a rate in units of 1/FINE, N workers of w, so many PSs of p."""


class Cheapest:
    """The cheapest `need` units offered so far; at first all at a price that none is worth."""

    def __init__(self, need: int, never: int) -> None:
        self.held, self.cost = {never: need}, never * need
        self._dearest = [-never]

    @property
    def dearest(self) -> int:
        """Price of the dearest units that are held."""
        return -self._dearest[0]

    def offer(self, price: int, number: int) -> None:
        """Units that replace the dearest ones, as long as these cost more."""
        while number and price < (dearest := self.dearest):
            taken = min(self.held[dearest], number)
            self.cost, number = self.cost - taken * (dearest - price), number - taken
            if price not in self.held:
                self.held[price] = 0
                heappush(self._dearest, -price)
            self.held[price] += taken
            self.held[dearest] -= taken
            if not self.held[dearest]:
                del self.held[-heappop(self._dearest)]


def cheapest_units(places: Iterable[tuple[int, int, int]], most: int, never: int) -> list[int]:
    """Cost of the cheapest 0, 1, ..., `most` units on places (price, least, most), or `never`."""
    listed = sorted(places)
    if any(low > high for _, low, high in listed):
        return [never] * (most + 1)
    forced = sum(low for _, low, _ in listed)
    start = sum(price * low for price, low, _ in listed)
    units = chain.from_iterable(repeat(price, high - low) for price, low, high in listed)
    costs = [*repeat(never, min(forced, most + 1)), *accumulate(islice(units, most), initial=start)]
    return (costs + [never] * most)[: most + 1]


def ways(kinds: Iterable[Kind]) -> list[Way]:
    """Ways by rising rate; of equal times only those at corners of the envelope of PSs over N.

    Between two corners a mix of both works at the same rate for no more of any resource.
    """
    listed = []
    for w, p, pairs, times in kinds:
        corners: list[tuple[int, int]] = [(0, 0)]
        for n, units in pairs:
            while len(corners) > 1 and times.count(times[0]) == len(times):
                (n0, u0), (n1, u1) = corners[-2:]
                if (u1 - u0) * (n - n0) < (units - u0) * (n1 - n0):
                    break
                corners.pop()
            corners.append((n, units))
        time = dict(zip((n for n, _ in pairs), times, strict=True))
        listed += [(ceiling(Fraction(FINE * n) / time[n]), w, p, n, u) for n, u in corners[1:]]
    return sorted(listed, key=itemgetter(0))


def envelope(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Slopes, rounded down, and widths of the lower envelope of (rate, price) from (0, 0)."""
    hull = [(0, 0)]
    for rate, price in points:
        while len(hull) > 1:
            (r0, p0), (r1, p1) = hull[-2:]
            if (p1 - p0) * (rate - r0) < (price - p0) * (r1 - r0):
                break
            hull.pop()
        hull.append((rate, price))
    for (r0, p0), (r1, p1) in pairwise(hull):
        if r1 > r0:
            yield (p1 - p0) * FINE // (r1 - r0), r1 - r0


def cheapest_slots(
    first: int, last: int | None, minibatches: int, options: Sequence[Way], unit: Any, cost: Any,
    best: int | None,
) -> tuple[int, int] | None:  # fmt: skip
    """Least cost, and one that is no less than the true one; None if the work is never done.

    `unit` is the price of one worker (w) or PS (p) by slot from 1 on, and nothing after; `cost`
    that of ending in a slot, which never falls; `best` what staying out costs.
    """
    most, end = best, first
    prices = sum(max(series, default=0) for series in unit.values())
    dear = max((n + units for *_, n, units in options), default=0) * prices
    work = Cheapest(minibatches * FINE, 1 + FINE * dear)  # no slope is so steep
    while options and (last is None or end <= last):
        reading.spend(50 + 20 * len(options))
        low, high = cost(end)
        if best is not None and low >= best:
            break
        priced = {
            kind: series[end - 1] if end <= len(series) else 0 for kind, series in unit.items()
        }
        points = [
            (rate, n * priced["w", w] + units * priced["p", p]) for rate, w, p, n, units in options
        ]
        for slope, width in envelope(points):
            work.offer(slope, width)
        pay = work.cost // FINE
        if work.dearest <= FINE * dear and (best is None or low + pay < best):
            best, most = low + pay, high + pay + 1
        end += 1
    return None if best is None or most is None else (best, most)
