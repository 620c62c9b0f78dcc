"""Vectors of counts that no other one is at least as large as."""

from __future__ import annotations

import numpy as np

from hindsched.arrays import Ints
from hindsched.compiled import compiled
from hindsched.solvers.kernels.stable_order import copy_to, stable_order


@compiled()
def maximal_sums(first: Ints, second: Ints, most: Ints, limit: int) -> Ints:
    """Sums of a vector of each of two lists, cut off at `most`, without those below another one.

    Parameters
    ----------
    first, second : ndarray of int, shapes (m, d), (n, d)
        Counts.
    most : ndarray of int, shape (d,)
        What counts no further.
    limit : int
        How many may be left.

    Returns
    -------
    ndarray of int, shape (k, d)
        The largest sums first; none if more than `limit` are left.
    """
    size = most.size
    sums = np.empty((len(first) * len(second), size), dtype=np.int64)
    smallness = np.zeros(len(sums), dtype=np.int64)
    number = 0
    for one in first:
        for other in second:
            for place in range(size):
                count = min(one[place] + other[place], most[place])
                sums[number, place] = count
                smallness[number] -= count
            number += 1
    kept = np.empty((min(limit, len(sums)), size), dtype=np.int64)
    number = 0
    for at in stable_order(smallness):  # what is larger than a vector comes before it
        for other in range(number):
            below = True
            for place in range(size):
                if sums[at, place] > kept[other, place]:
                    below = False
                    break
            if below:
                break
        else:
            if number == limit:
                return kept[:0]
            copy_to(kept[number], sums[at])
            number += 1
    return kept[:number]
