"""What a method knows so far, kept for when a limit stops it in the middle of something else.

The door (`solvers.api.solve`) keeps a list while a method runs; a method that has a solution or a
bound in hand before it goes on to something long says so by `keep`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hindsched.solvers.door.result import Result

_kept: ContextVar[list[Result] | None] = ContextVar("kept", default=None)


def keep(result: Result) -> Result:
    """Keep what is known; the same result is returned."""
    found = _kept.get()
    if found is not None:
        found.append(result)
    return result


@contextmanager
def keeping() -> Iterator[list[Result]]:
    """Collect what is kept inside."""
    found: list[Result] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)
