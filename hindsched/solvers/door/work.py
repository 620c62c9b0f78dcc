"""The time by which methods decide: seconds, or work where no clock may decide.

Under a work limit (`counting`) every engine says what it does by `spend`, and `now` tells the work
done instead of the seconds gone, at `UNIT_SECONDS` a unit. So all shares and limits of time become
shares and limits of work, and two runs do the same whatever else the machine does. A unit is one
evaluation of all blocks, one neighbourhood, one node of a tree or of the solver's search, or one
linear program of a node; building and the solver's root count one each, however long they take.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event

UNIT_SECONDS = 0.01
"""What a unit of work counts as."""


@dataclass
class _Work:
    done: int = 0


_work: ContextVar[_Work | None] = ContextVar("work", default=None)


def now() -> float:
    """Seconds since some moment: by the clock, or by the work done where that is counted."""
    work = _work.get()
    return time.perf_counter() if work is None else UNIT_SECONDS * work.done


def spend(units: int = 1) -> None:
    """Say that work was done."""
    work = _work.get()
    if work is not None:
        work.done += units


def is_counted() -> bool:
    """Whether work decides here, not the clock."""
    return _work.get() is not None


def units_of(seconds: float) -> int:
    """Units of work that count as so many seconds."""
    return max(0, round(seconds / UNIT_SECONDS))


@contextmanager
def counting() -> Iterator[None]:
    """Count work inside, from 0."""
    token = _work.set(_Work())
    try:
        yield
    finally:
        _work.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Let what happens inside not count, as what happens only once in a process."""
    token = _work.set(None if _work.get() is None else _Work())
    try:
        yield
    finally:
        _work.reset(token)


@dataclass(frozen=True)
class Clock:
    """A limit of time in seconds from its making on, and an event that ends it at once."""

    seconds: float
    stop: Event = field(default_factory=Event)
    begin: float = field(default_factory=now)

    @property
    def gone(self) -> float:
        """Seconds since the begin."""
        return now() - self.begin

    @property
    def seconds_left(self) -> float:
        """Seconds until the end, at least 0."""
        return 0.0 if self.stop.is_set() else max(0.0, self.seconds - self.gone)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.seconds_left <= 0.0

    def first(self, seconds: float) -> Clock:
        """A clock for the next seconds, at most until this one's end."""
        return Clock(min(seconds, self.seconds_left), self.stop)
