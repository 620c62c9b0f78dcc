"""Words that kernels on several threads read and write, and turns at what lies behind them.

Numba has neither for processors; LLVM, which it compiles with, has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from hindsched.arrays import Ints

Inside = Any
"""What numba and LLVM hand on while they compile."""

CACHE_LINE = 64
"""Bytes that cores exchange at once, at most."""


def apart(value: np.number) -> np.ndarray:
    """An array of one number on a cache line of its own, which no other core writes to."""
    numbers = CACHE_LINE // value.itemsize
    found = np.full(2 * numbers, value)
    return found[numbers : numbers + 1]  # with a line's bytes before and behind it


def _first(context: Inside, builder: Inside, signature: Inside, args: Inside) -> Inside:
    """Where an array's first number stands."""
    return make_array(signature.args[0])(context, builder, args[0]).data


@intrinsic
def read(typing: Inside, words: Inside) -> tuple[Inside, Callable[..., Inside]]:
    """Read the first word of an array, and after it all that was written before that word."""

    def make(context: Inside, builder: Inside, signature: Inside, args: Inside) -> Inside:
        return builder.load_atomic(_first(context, builder, signature, args), "acquire", 8)

    return types.int64(words), make


@intrinsic
def exchange(typing: Inside, words: Inside, word: Inside) -> tuple[Inside, Callable[..., Inside]]:
    """Put a word in the place of an array's first one at once, and return that."""

    def make(context: Inside, builder: Inside, signature: Inside, args: Inside) -> Inside:
        place = _first(context, builder, signature, args)
        return builder.atomic_rmw("xchg", place, args[1], "acq_rel")

    return types.int64(words, types.int64), make


@njit(cache=True, nogil=True)
def take_turn(turn: Ints) -> None:
    """Wait until no other thread has its turn.

    Whoever has it must not do what can fail: all others would wait without end.
    """
    while exchange(turn, 1) != 0:
        while read(turn) != 0:
            pass


@njit(cache=True, nogil=True)
def end_turn(turn: Ints) -> None:
    """Let another thread have its turn."""
    exchange(turn, 0)
