"""Optimum of jobs whose slots need not touch: every placement of every job in every slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

EPS = 1e-9
Way = tuple[float, tuple[float, ...]]
"""Share of the job's work that a slot does, and what the placement takes of each resource."""


def least_cost(
    ways: Sequence[Sequence[Way]],
    capacity: tuple[float, ...],
    firsts: Sequence[int],
    cost: Callable[[int, int], float],
    outside: Sequence[float],
    last: int,
) -> float:
    """Least sum of costs by last slot, or of staying out, with all work done by slot `last`."""
    useful = [undominated(options) for options in ways]

    @cache
    def rest(slot: int, left: tuple[float, ...]) -> float:
        """Least cost of what happens from a slot on, by the work that each job has left."""
        if all(share <= 0 for share in left):
            return 0.0
        if slot > last:
            return sum(outside[j] for j, share in enumerate(left) if share > 0)

        def place(j: int, free: tuple[float, ...], after: tuple[float, ...]) -> float:
            if j == len(left):
                ended = sum(
                    cost(i, slot) for i in range(len(left)) if left[i] > 0 and after[i] <= 0
                )
                return ended + rest(slot + 1, after)
            best = place(j + 1, free, (*after, left[j]))
            if left[j] > 0 and slot >= firsts[j]:
                for rate, use in useful[j]:
                    if all(u <= f + EPS for u, f in zip(use, free, strict=True)):
                        remains = tuple(f - u for u, f in zip(use, free, strict=True))
                        share = round(left[j] - rate, 12)
                        share = 0.0 if share <= EPS else share
                        best = min(best, place(j + 1, remains, (*after, share)))
            return best

        return place(0, capacity, ())

    return rest(min(firsts, default=1), (1.0,) * len(ways))


def undominated(ways: Sequence[Way]) -> list[Way]:
    """Ways without those that another one is as fast as for no more of any resource."""
    kept: list[Way] = []
    for rate, use in sorted(ways, key=lambda way: (-way[0], sum(way[1]))):
        if rate > 0 and not any(
            all(a <= b for a, b in zip(other, use, strict=True)) for _, other in kept
        ):
            kept.append((rate, use))
    return kept
