"""Draws inside compiled searches, whose state is one word that the caller keeps."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]


@njit(cache=True, nogil=True)
def unit(state: Words) -> float:
    """A draw from [0, 1): xorshift64*, whose state is one word."""
    word = state[0]
    word ^= word >> np.uint64(12)
    word ^= word << np.uint64(25)
    word ^= word >> np.uint64(27)
    state[0] = word
    return float((word * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def below(state: Words, count: int) -> int:
    """A draw from 0 .. count - 1."""
    return int(unit(state) * count)
