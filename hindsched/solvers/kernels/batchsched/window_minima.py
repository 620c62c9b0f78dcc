"""Minima over sliding windows of any length, by doubling: two look-ups a query.

Tables have time first: ``table[k, t]`` is the minimum over slots ``t .. t + 2**k - 1`` (0-based).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Floats


def num_levels(slots: int) -> int:
    """Levels that windows of up to `slots` slots need."""
    return max(1, int(slots).bit_length())


@njit(cache=True)
def build_minima(values: Floats, levels: int) -> Floats:
    """Table of window minima of `values`, shape (slots, servers, resources)."""
    slots, servers, resources = values.shape
    table = np.empty((levels, slots, servers, resources))
    for t in range(slots):
        for h in range(servers):
            for r in range(resources):
                table[0, t, h, r] = values[t, h, r]
    for k in range(1, levels):
        half = 1 << (k - 1)
        for t in range(slots):
            other = min(t + half, slots - 1)
            for h in range(servers):
                for r in range(resources):
                    table[k, t, h, r] = min(table[k - 1, t, h, r], table[k - 1, other, h, r])
    return table


@njit(cache=True)
def update_minima(table: Floats, server: int, first: int, last: int) -> None:
    """Renew the table after ``table[0]`` changed on one server in slots `first` .. `last`."""
    levels, slots, _, resources = table.shape
    for k in range(1, levels):
        half = 1 << (k - 1)
        for t in range(max(0, first - 2 * half + 1), last + 1):
            other = min(t + half, slots - 1)
            for r in range(resources):
                table[k, t, server, r] = min(
                    table[k - 1, t, server, r], table[k - 1, other, server, r]
                )


@njit(cache=True)
def level_of(length: int) -> int:
    """Largest k with ``2**k <= length``."""
    k = 0
    while (2 << k) <= length:
        k += 1
    return k
