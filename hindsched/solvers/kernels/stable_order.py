"""Sorting and copying in kernels, in a few lines that compile fast.

Numba compiles ``np.argsort`` anew for every process and every type that sorts, which takes two to
four seconds. An assignment of an array to a slice brings along the text of its error message, with
all that writes numbers: as long again. Of these two the first is compiled once and cached, the
other is a loop where it is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.ties import TIE

RUN = 16
"""Keys that are sorted by insertion."""


@njit(cache=True, nogil=True)
def _goes_before(key: Any, other: Any) -> bool:
    """Whether a key is smaller, or a number where the other is none (which no number equals)."""
    return bool(key < other or (key == key and other != other))


@njit(cache=True, nogil=True)
def stable_order(keys: Any) -> Ints:
    """What ``np.argsort(keys, kind="stable")`` gives; NaN comes last."""
    size = keys.size
    order, other = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for begin in range(0, size, RUN):
        for position in range(begin, min(begin + RUN, size)):
            at = position
            while at > begin and _goes_before(keys[position], keys[order[at - 1]]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = position
    width = RUN
    while width < size:
        for begin in range(0, size, 2 * width):
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            left, right = begin, middle
            for at in range(begin, end):
                behind = left >= middle
                if not behind and right < end:
                    behind = _goes_before(keys[order[right]], keys[order[left]])
                if behind:
                    other[at] = order[right]
                    right += 1
                else:
                    other[at] = order[left]
                    left += 1
        order, other = other, order
        width *= 2
    return order


@njit(cache=True, nogil=True)
def order_up_to_ties(keys: Any) -> Ints:
    """`stable_order` in which keys count as equal that a `ties.TIE` is between at most."""
    order = stable_order(keys)
    rounded = np.empty(keys.size)
    level = keys[order[0]] if keys.size else 0.0
    for place in order:
        if keys[place] > level + TIE * abs(level) or keys[place] != keys[place]:
            level = keys[place]
        rounded[place] = level
    return stable_order(rounded)


@njit(cache=True, nogil=True)
def copy_to(target: Any, source: Any) -> None:
    """Copy the entries of one array of one dimension to another of the same size."""
    for i in range(target.size):
        target[i] = source[i]
