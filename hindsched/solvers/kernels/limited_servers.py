"""The cheapest way to put units on servers that each take at least and at most so many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Floats, Ints

UNLIMITED = 2**31 - 1


class Range(NamedTuple):
    """Least and most units, by server, by slot, or by both."""

    low: Ints
    high: Ints


def no_limits(*shape: int) -> Range:
    """A range that limits nothing."""
    return Range(np.zeros(shape, dtype=np.int64), np.full(shape, UNLIMITED, dtype=np.int64))


@njit(cache=True, nogil=True)
def limited_prefix(
    skipped: int, low: Ints, most: Ints, price: Floats, order: Ints, cost: Floats
) -> None:
    """Fill ``cost[n]`` with the price of the cheapest `n` units within the limits, or inf.

    Each server takes `low` to `most` units; `order` has them from cheap to dear; `skipped` takes no
    part (-1: all do).
    """
    cost[:] = np.inf
    forced = 0
    total = 0.0
    for h in range(low.shape[0]):
        if h != skipped:
            if low[h] > most[h]:
                return
            forced += low[h]
            total += low[h] * price[h]
    if forced >= cost.shape[0]:
        return
    cost[forced] = total
    n = forced
    for h in order:
        if h == skipped:
            continue
        for _ in range(most[h] - low[h]):
            n += 1
            if n == cost.shape[0]:
                return
            total += price[h]
            cost[n] = total


@njit(cache=True, nogil=True)
def fill_limited(
    skipped: int, low: Ints, most: Ints, order: Ints, wanted: int, placed: Ints
) -> None:
    """Put the cheapest `wanted` units within the limits into `placed`; see `limited_prefix`."""
    for h in range(low.shape[0]):
        if h != skipped:
            placed[h] = low[h]
            wanted -= low[h]
    for h in order:
        if h != skipped:
            units = min(wanted, most[h] - low[h])
            placed[h] += units
            wanted -= units
