"""What ends a solve: time, in seconds or in work where no clock may decide, and Ctrl-C.

Under a work limit (`counting`) every engine says what it does by `count_work`, and `now` tells the
work done instead of the seconds gone, at `UNIT_SECONDS` a unit. So all shares and limits of time
become shares and limits of work, and two runs do the same whatever else the machine does. A unit is
one evaluation of all blocks, one neighbourhood, one node of a tree or of the solver's search, or
one linear program of a node; building and the solver's root count one each, however long they take.

The first Ctrl-C asks a solver to stop and keep what it has, the second kills. Where the command
line listens to SIGTERM (`raise_terminated`), that is treated alike. What cannot look at the event,
as the building of a program, is ended by an exception (`stopping_at_once`).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType

from hindsched.errors import SolveFailed

UNIT_SECONDS = 0.01  # what a unit of work counts as


@dataclass
class _Work:
    done: int = 0


_work: ContextVar[_Work | None] = ContextVar("work", default=None)


def now() -> float:
    """Seconds since some moment: by the clock, or by the work done where that is counted."""
    work = _work.get()
    return time.perf_counter() if work is None else UNIT_SECONDS * work.done


def count_work(units: int = 1) -> None:
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


def interrupted() -> threading.Event:
    """The event of the `catch_interrupt` around this code; without one, an event of its own."""
    return _current or threading.Event()


@dataclass(frozen=True)
class Clock:
    """A limit of time in seconds from its making on; an event, or who is asked, may end it."""

    seconds: float
    stop: threading.Event = field(default_factory=interrupted)
    begin: float = field(default_factory=now)
    asked: Callable[[], bool] = lambda: False

    @property
    def gone(self) -> float:
        """Seconds since the begin."""
        return now() - self.begin

    @property
    def seconds_left(self) -> float:
        """Seconds until the end, at least 0."""
        ended = self.stop.is_set() or self.asked()
        return 0.0 if ended else max(0.0, self.seconds - self.gone)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.seconds_left <= 0.0

    def first(self, seconds: float) -> Clock:
        """A clock for the next seconds, at most until this one's end."""
        return Clock(min(seconds, self.seconds_left), self.stop, asked=self.asked)


_current: threading.Event | None = None
_terminated = False
_caught = 0
_at_once: Callable[[], BaseException] | None = None


class NotBuilt(SolveFailed):
    """Ctrl-C or SIGTERM ended what does not look at the event."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: to be treated as Ctrl-C, but said by its name."""


def raise_terminated(signum: int, frame: FrameType | None) -> None:
    """Handler of SIGTERM for programs that have something to say before they end."""
    global _terminated
    _terminated = True
    raise Terminated


def interruption() -> KeyboardInterrupt:
    """What the event of `catch_interrupt` stands for, to be raised: Ctrl-C or SIGTERM."""
    return Terminated() if _terminated else KeyboardInterrupt()


def caught() -> int:
    """How many blocks of `catch_interrupt` ended interrupted in this process.

    A solve then returns what it has, and whoever has no use for half a result can tell.
    """
    return _caught


@contextmanager
def catch_interrupt() -> Iterator[threading.Event]:
    """Turn the first SIGINT inside the block into an event; a second raises `KeyboardInterrupt`.

    Nested blocks share the outermost block's event, so that an engine which solves many programs
    learns of an interrupt that came during any of them. Outside the main thread no signal arrives:
    the event of a block that the main thread holds is shared, and otherwise it is never set.
    """
    global _current, _caught
    if _current is not None:
        yield _current
        return
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def ask_to_stop(signum: int, frame: FrameType | None) -> None:
        global _terminated
        _terminated = signum == signal.SIGTERM
        if event.is_set():
            raise interruption()
        event.set()
        if _at_once is not None:
            raise _at_once()

    listening = {signal.SIGINT: signal.signal(signal.SIGINT, ask_to_stop)}
    if signal.getsignal(signal.SIGTERM) is raise_terminated:
        listening[signal.SIGTERM] = signal.signal(signal.SIGTERM, ask_to_stop)
    _current = event
    try:
        yield event
    finally:
        _current = None
        _caught += event.is_set()
        for number, previous in listening.items():
            signal.signal(number, signal.SIG_DFL if previous is None else previous)


def not_built() -> NotBuilt:
    """What ends the building of a program."""
    return NotBuilt("stopped while the program was built")


@contextmanager
def stopping_at_once(how: Callable[[], BaseException] = not_built) -> Iterator[None]:
    """Let an interrupt raise inside, where what is made is of no use by halves."""
    global _at_once
    before, _at_once = _at_once, how
    try:
        yield
    finally:
        _at_once = before


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back: processes started inside never get it, this one does afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
