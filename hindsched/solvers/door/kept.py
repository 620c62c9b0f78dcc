"""What a method knows so far, kept for when a limit stops it in the middle of something else.

The door (`solvers.api.solve`) keeps a list while a method runs; a method that has a solution or a
bound in hand before it goes on to something long says so by `keep`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hindsched.solvers.door.result import Result

_kept: ContextVar[list[Result] | None] = ContextVar("kept", default=None)
_told: ContextVar[Callable[[Result], None] | None] = ContextVar("told", default=None)


def keep(result: Result) -> Result:
    """Keep what is known; the same result is returned."""
    found, tell = _kept.get(), _told.get()
    if found is not None:
        found.append(result)
    if tell is not None:
        tell(result)
    return result


@contextmanager
def telling(tell: Callable[[Result], None]) -> Iterator[None]:
    """Tell somebody as well, at once, of what is kept inside."""
    token = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(token)


@contextmanager
def keeping() -> Iterator[list[Result]]:
    """Collect what is kept inside."""
    found: list[Result] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)
