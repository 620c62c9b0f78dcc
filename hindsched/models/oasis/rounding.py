"""What whole PSs are worth in a program whose counts are fractional: lines below ``ceil(n b / B)``.

A job that runs n workers in a slot needs a whole number of PSs. The largest convex function below
that number at n = 0, 1, ... is steeper than b / B: with b / B = 0.4 two workers need a PS, so that
no worker is served by less than a half.
"""

from __future__ import annotations

from itertools import pairwise

from hindsched.arrays import Ints


def lines_below(needed: Ints) -> list[tuple[float, float]]:
    """The convex function below ``needed[n]``: slopes and values at 0 of its lines."""
    corners: list[tuple[int, int]] = []
    for here in enumerate(needed.tolist()):
        while len(corners) > 1:
            (n0, m0), (n1, m1) = corners[-2:]
            if (m1 - m0) * (here[0] - n0) < (here[1] - m0) * (n1 - n0):
                break
            corners.pop()
        corners.append(here)
    lines = []
    for (n0, m0), (n1, m1) in pairwise(corners):
        slope = (m1 - m0) / (n1 - n0)
        lines.append((slope, m0 - slope * n0))
    return lines
