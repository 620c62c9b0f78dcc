"""What the decimals of a file mean, exactly, at the speed of floating point.

A number in a file is the decimal that is written, and what is counted from it (slots of work, how
many fit, PSs needed) is meant in exact rational arithmetic: amounts are counted as `whole_units`,
and compiled loops only ever see quotients that no rounding can take for a tie (`same_ceilings`).
Searches compare what is left of a capacity in floating point with the error of that and no more
(`loosened`): what they find is checked exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Floats, Ints
from hindsched.kernel.exact import common_step as common_step

NEAR = 1e-9
"""A float this close to a whole number, relatively, may stand for it or for a hair beside it."""
SEPARATED = 1e-5  # what solvers of integer programs, which allow rows 1e-6, tell from nothing
FLOAT_ERROR = 2.0**-44
"""What sums of some hundred amounts in floating point may be wrong by, relative to the largest."""
LARGEST_INTEGER = 2**62  # whole numbers below it are counted in 64 bits, others as Python's
LARGEST_TERM = 2**44  # so many terms below it add up in 64 bits that no schedule has more

Whole = NDArray[Any]
"""Whole numbers: 64-bit integers, or Python's integers where those are too short."""


def integral(value: object) -> Any:
    """A float that is an integer, as JSON and pandas have it, is that integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=65_536)
def exactly(number: float) -> Fraction:
    """The decimal that a file shows for a number, exactly: 0.1 is ``Fraction(1, 10)``."""
    return Fraction(repr(float(number))) if number % 1 else Fraction(int(number))


@lru_cache(maxsize=65_536)
def exact_step(slots: float, gradient_mb: float, mbps: float, slot_seconds: float) -> Fraction:
    """Slots of a step that takes `slots`, sends a gradient and receives the parameters, exactly."""
    sent = 16 * exactly(gradient_mb) / exactly(mbps) / exactly(slot_seconds) if gradient_mb else 0
    return exactly(slots) + sent


@lru_cache(maxsize=65_536)
def same_ceilings(top: float, bottom: float, most: int) -> float:
    """Quotient q with ``ceil(n q - 1e-9) = ceil(n top / bottom)``, n in 0..most, in floats too.

    The least fraction of a denominator up to `most` that is not below ``top / bottom``: no multiple
    of it lies closer than ``1 / most`` above a whole number.

    >>> same_ceilings(1, 2, 10), same_ceilings(2.000000001, 2, 4)
    (0.5, 1.25)
    """
    exact = exactly(top) / exactly(bottom)
    near = exact.limit_denominator(most)
    if near < exact:  # the next larger fraction with a denominator up to `most`
        a, b = near.numerator, near.denominator
        first = pow(-a, -1, b)
        d = first + (most - first) // b * b
        near = Fraction(1 + a * d, b * d)
    quotient = float(near)  # and not above it: products of millions would pass a whole number
    return quotient if quotient <= near else math.nextafter(quotient, 0.0)


def how_many_fit(capacity: Floats, demand: Floats, most: int) -> Ints:
    """How many units of a demand (R,) fit into each capacity (..., R) of a file, exactly."""
    have, unit = whole_units(capacity, demand)
    return how_many_left(have, unit, most)


def how_many_left(free: Whole, demand: Whole, most: int) -> Ints:
    """How many units of a demand (R,) fit into what is free, (..., R); `most` without demands.

    Both in whole units, or in floating point with `free` `loosened`.
    """
    needed = np.flatnonzero(demand > 0)
    if not needed.size:
        return np.full(free.shape[:-1], most, dtype=np.int64)
    fits = (free[..., needed] // demand[needed]).min(axis=-1)
    return np.clip(fits, 0, most).astype(np.int64)


def loosened(free: Floats, capacity: Floats | float) -> Floats:
    """What is left of capacities, larger by what floating point may have lost of them.

    Searches compare demands with it and need no tolerance of their own.
    """
    free_at_most: Floats = free + FLOAT_ERROR * capacity
    return free_at_most


def separated(top: float, bottom: float, most: int) -> float:
    """``top / bottom`` for rows ``n top <= m bottom`` of programs solved with a tolerance.

    It is the quotient itself, unless some multiple n up to `most` lies a hair above a whole number:
    then that of `same_ceilings`, with which the row says the same of whole numbers.
    """
    multiples = np.arange(1, most + 1) * (top / bottom)
    quotient = same_ceilings(top, bottom, most)
    ceilings = np.ceil(np.arange(1, most + 1) * quotient - NEAR)
    return quotient if np.any(ceilings - multiples > 1 - SEPARATED) else top / bottom


def whole_units(*tables: Floats) -> tuple[Whole, ...]:
    """Amounts of shapes (..., R) as whole numbers, in units of a resource's finest decimal."""
    columns = []
    for r in range(tables[0].shape[-1]):
        known = {value: exactly(value) for table in tables for value in set(table[..., r].flat)}
        unit = math.lcm(*(number.denominator for number in known.values()))
        whole = {value: int(number * unit) for value, number in known.items()}
        kind = np.int64 if max(whole.values(), default=0) < LARGEST_TERM else object
        columns.append(
            [
                np.array([whole[v] for v in table[..., r].flat], kind).reshape(table.shape[:-1])
                for table in tables
            ]
        )
    return tuple(np.stack(parts, axis=-1) for parts in zip(*columns, strict=True))


def times(counts: Ints, amounts: Whole) -> Whole:
    """Product of counts and whole amounts, of shapes that broadcast, without overflow.

    Counts of a relaxation, which are not whole, are multiplied in floating point.
    """
    if counts.dtype.kind == "f":
        return counts * amounts.astype(float)
    size = max(1, int(np.abs(counts).max(initial=0))) * int(amounts.max(initial=0))
    kind = np.int64 if size < LARGEST_TERM else object
    product: Whole = counts.astype(kind) * amounts.astype(kind)
    return product
