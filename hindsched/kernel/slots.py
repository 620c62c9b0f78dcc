"""Layout ``preemptive`` of batchsched and astraea: jobs whose slots need not touch.

In every slot a job may have any placement that the rules of a slot allow. On all servers merged
into one, a slot of type w, type p, q and N workers gives N / time of work; mixes of slots are
allowed too, a relaxation, so that the price of work in a slot is a convex envelope and the best
response buys what the job needs where it is cheapest. Rates are rounded up and slopes down to
multiples of 1/FINE: the bound errs outward only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from . import reading
from .cheapest import Cheapest
from .exact import ceiling

LAYOUT = "preemptive"
FINE = 1 << 96
Kind = tuple[str, Any, Sequence[tuple[int, int]], Sequence[Any]]
"""Types w and p, the pairs (N, fewest PSs), and the slots of a mini-batch for each."""


class Way(NamedTuple):
    """What a job may do in a slot: a rate in units of 1/FINE, N workers of w, units PSs of p."""

    rate: int
    w: str
    p: Any
    n: int
    units: int


def ways(kinds: Iterable[Kind]) -> list[Way]:
    """Ways by rising rate; of equal times only those at corners of the envelope of PSs over N.

    Between two corners a mix of both works at the same rate for no more of any resource.
    """
    found = []
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
        found += [Way(ceiling(Fraction(FINE * n) / time[n]), w, p, n, u) for n, u in corners[1:]]
    return sorted(found, key=lambda way: way.rate)


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


def cheapest(
    first: int,
    last: int | None,
    minibatches: int,
    own: Sequence[Way],
    unit: Mapping[Any, Sequence[int]],
    cost: Callable[[int], tuple[int, int]],
    best: int | None,
) -> tuple[int, int] | None:
    """Least cost, and one that is no less than the true one; None if the work is never done.

    `unit` is the price of one worker (w) or PS (p) by slot from 1 on, and nothing after; `cost`
    that of ending in a slot, which never falls; `best` what staying out costs.
    """
    most, end = best, first
    prices = sum(max(series, default=0) for series in unit.values())
    dear = max((way.n + way.units for way in own), default=0) * prices
    work = Cheapest(minibatches * FINE, 1 + FINE * dear)  # no slope is so steep
    while own and (last is None or end <= last):
        reading.spend(50 + 20 * len(own))
        low, high = cost(end)
        if best is not None and low >= best:
            break
        priced = {
            kind: series[end - 1] if end <= len(series) else 0 for kind, series in unit.items()
        }
        points = [
            (way.rate, way.n * priced["w", way.w] + way.units * priced["p", way.p]) for way in own
        ]
        for slope, width in envelope(points):
            work.offer(slope, width)
        pay = work.cost // FINE
        if work.dearest <= FINE * dear and (best is None or low + pay < best):
            best, most = low + pay, high + pay + 1
        end += 1
    return None if best is None or most is None else (best, most)
