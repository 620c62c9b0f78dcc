"""Compiled work on several threads: for kernels that do not hold the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Protocol, TypeVar

from hindsched.limits import ROOM_FOR_A_THREAD

Found = TypeVar("Found")


class Together(Protocol):
    """Calls something with 0, 1, ..., all at the same time, and returns what each call returned."""

    def __call__(self, work: Callable[[int], Found]) -> list[Found]:
        """Call it."""
        ...


@contextmanager
def side_by_side(number: int) -> Iterator[Together]:
    """Threads for as many calls at a time, of which the caller's own is the first.

    Where there is no room for a thread the calls are made one after the other.
    """
    if number == 1:
        yield _in_turn(1)
        return
    with ThreadPoolExecutor(number - 1) as pool:
        try:
            for _ in range(number - 1):
                bytes(ROOM_FOR_A_THREAD)  # without it a thread would be waited for without end
                pool.submit(int).result()
        except (MemoryError, RuntimeError):
            yield _in_turn(number)
            return

        def together(work: Callable[[int], Found]) -> list[Found]:
            others = [pool.submit(copy_context().run, work, at) for at in range(1, number)]
            return [work(0), *(each.result() for each in others)]

        yield together


def _in_turn(number: int) -> Together:
    """Make the calls one after the other."""

    def together(work: Callable[[int], Found]) -> list[Found]:
        return [work(at) for at in range(number)]

    return together
