"""Names of array types, and functions of arrays that are the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable

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
    return _each(_exp, exponents)


def log_of(numbers: Floats) -> Floats:
    """Natural logarithm of every element, by the C library; that of 0 is minus infinity."""
    return _each(_log, numbers)


def _each(function: Callable[[float], float], values: Floats) -> Floats:
    found = [function(value) for value in values.ravel().tolist()]
    return np.array(found, dtype=np.float64).reshape(values.shape)


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 709.0 else float(np.exp(exponent))


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf
