"""Names of array types, and functions of arrays that are the same on every machine."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]  # amounts, prices, costs
Ints = NDArray[np.int64]  # counts, slots, positions
Bools = NDArray[np.bool_]  # which of some things


def exp_of(exponents: Floats) -> Floats:
    """e^x of every element, by the C library.

    numpy's own differs in the last digit between processors with and without AVX-512, and ties
    between prices are decided by it.
    """
    values = [math.exp(x) if x < 709.0 else float(np.exp(x)) for x in exponents.ravel().tolist()]
    return np.array(values, dtype=np.float64).reshape(exponents.shape)


def log_of(numbers: Floats) -> Floats:
    """Natural logarithm of every element, by the C library; that of 0 is minus infinity."""
    values = [math.log(x) if x > 0 else -math.inf for x in numbers.ravel().tolist()]
    return np.array(values, dtype=np.float64).reshape(numbers.shape)
