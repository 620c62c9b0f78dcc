"""Vectors of counts that no other one is at least as large as."""

from __future__ import annotations

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.solvers.kernels.stable_order import stable_order

WORDS, BITS = 2, 62
"""Numbers that hold one packed vector, and bits of each."""
MOST_UNITS = 1_000_000
"""Units of all places together: the sums are sorted by counting."""


@njit(cache=True)
def maximal_sums(
    first: Ints, second: Ints, most: Ints, limit: int, effort: int
) -> tuple[Ints, int]:
    """Sums of a vector of each of two lists, cut off at `most`, without those below another one.

    Counts are packed into words, each with a guard bit above it. A vector lies below another one if
    no guard is borrowed when it is taken from it: all counts are compared at once.

    Parameters
    ----------
    first, second : ndarray of int, shapes (m, d), (n, d)
        Counts.
    most : ndarray of int, shape (d,)
        What counts no further.
    limit : int
        How many may be left.
    effort : int
        How many comparisons of two vectors may be made.

    Returns
    -------
    ndarray of int, shape (k, d)
        The largest sums first; none if more than `limit` are left, or `effort` does not do, or
        the counts are too large.
    int
        Comparisons made.
    """
    size = most.size
    nothing = np.empty((0, size), dtype=np.int64)
    word, shift = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    filled = np.empty(size, dtype=np.int64)
    guards = np.zeros(WORDS, dtype=np.int64)
    at = used = total = 0
    for place in range(size):
        total += min(most[place], MOST_UNITS + 1)
        bits = 1
        while most[place] >> (bits - 1):  # the guard's besides
            bits += 1
        if used + bits > BITS:
            at, used = at + 1, 0
        if total > MOST_UNITS or at == WORDS:
            return nothing, 0
        word[place], shift[place] = at, used
        filled[place] = (1 << bits) - 1
        used += bits
        guards[at] |= 1 << (used - 1)
    low_guards, high_guards = guards[0], guards[1]

    number = len(first) * len(second)
    packed = np.zeros((number, WORDS), dtype=np.int64)
    smallness = np.empty(number, dtype=np.int64)
    begin = np.zeros(total + 2, dtype=np.int64)
    for here in range(number):
        small = total
        for place in range(size):
            count = first[here // len(second), place] + second[here % len(second), place]
            count = min(count, most[place])
            packed[here, word[place]] |= count << shift[place]
            small -= count
        smallness[here] = small
        begin[small + 1] += 1
    for small in range(total):
        begin[small + 1] += begin[small]
    order = np.empty(number, dtype=np.int64)
    for here in range(number):
        order[begin[smallness[here]]] = here
        begin[smallness[here]] += 1

    most_kept = min(limit, number)
    low, high = np.empty(most_kept, dtype=np.int64), np.empty(most_kept, dtype=np.int64)
    rank = np.empty(most_kept, dtype=np.int64)
    kept = last = compared = 0
    for position in range(number):  # what is larger than a vector comes before it
        own_low, own_high = packed[order[position], 0], packed[order[position], 1]
        if kept and (  # the last one that another vector lay below
            ((low[last] | low_guards) - own_low) & low_guards == low_guards
            and ((high[last] | high_guards) - own_high) & high_guards == high_guards
        ):
            continue
        for other in range(kept):
            if ((low[other] | low_guards) - own_low) & low_guards == low_guards and (
                (high[other] | high_guards) - own_high
            ) & high_guards == high_guards:
                last = other // 2  # who has many below it moves to the front
                low[last], low[other] = low[other], low[last]
                high[last], high[other] = high[other], high[last]
                rank[last], rank[other] = rank[other], rank[last]
                compared += other + 1
                break
        else:
            compared += kept
            if kept == limit:
                return nothing, compared
            low[kept], high[kept], rank[kept] = own_low, own_high, position
            kept += 1
        if compared > effort:
            return nothing, compared
    found = np.empty((kept, size), dtype=np.int64)
    for row, place_of in enumerate(stable_order(rank[:kept])):
        own = packed[order[rank[place_of]]]
        for place in range(size):
            found[row, place] = own[word[place]] >> shift[place] & filled[place]
    return found, compared
