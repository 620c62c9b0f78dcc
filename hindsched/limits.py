"""Limits of time: seconds that a solver gets as its own, and that loops look at between steps.

A method or a loop that can go on for long asks `time_left`, or calls `check_time` between two of
its steps; nothing is interrupted in the middle of a step. What asks neither is ended with its
process: a worker's by whoever waits for it, a command's by `hard_stop`.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hindsched.errors import HindschedError, InputError

UNASKED_SLOTS = 1_000_000
"""Slots that may be played one by one without any limit of time or memory: nobody has said that it
may take long."""
OVERRUN_SHARE, OVERRUN_SECONDS = 1.1, 1.0
"""A method that has not ended after so many times its time limit, and so many seconds more, is
stopped at its next look at the clock."""


class OutOfTime(HindschedError):
    """The time limit around the code that asked is over."""


class NoTimeLeft(OutOfTime):
    """Something is not begun that cannot be ready in the time that is left: bad input."""

    exit_code = 2


_ends: ContextVar[float] = ContextVar("ends", default=math.inf)
"""When the innermost `time_limit` ends, by ``time.monotonic``."""
_asked: ContextVar[bool] = ContextVar("asked", default=False)
"""Whether somebody chose a limit of time or memory for what runs."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let `time_left` and `check_time` inside know when the time is over.

    Parameters
    ----------
    seconds : float, optional
        None for no limit; a limit around this one holds as well.

    Examples
    --------
    >>> from hindsched.limits import OutOfTime, check_time, time_limit
    >>> try:
    ...     with time_limit(0.05):
    ...         while True:
    ...             check_time()
    ... except OutOfTime as error:
    ...     print(error)
    stopped after 0.05 s (--time-limit)
    """
    outer = _ends.get()
    ends = math.inf if seconds is None else time.monotonic() + seconds
    token = _ends.set(min(ends, outer))
    try:
        yield
    except OutOfTime as error:
        if type(error) is OutOfTime and ends <= outer:
            raise OutOfTime(f"stopped after {seconds:g} s (--time-limit)") from None
        raise
    finally:
        _ends.reset(token)


def time_left(otherwise: float) -> float:
    """Seconds until the `time_limit` around this code ends; `otherwise` if that is less."""
    return max(0.0, min(otherwise, _ends.get() - time.monotonic()))


def check_time() -> None:
    """Raise `OutOfTime` if the `time_limit` around this code is over."""
    if time.monotonic() > _ends.get():
        raise OutOfTime("stopped at its time limit")


@contextmanager
def uncounted() -> Iterator[None]:
    """Let what runs inside count against no limit, as kernels compile once an installation."""
    began, ends = time.monotonic(), _ends.get()
    token = _ends.set(math.inf)
    here = threading.current_thread() is threading.main_thread()
    alarm = signal.setitimer(signal.ITIMER_REAL, 0)[0] if here else 0.0
    try:
        yield
    finally:
        _ends.reset(token)
        _ends.set(ends + time.monotonic() - began)
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, alarm)


@contextmanager
def hard_stop(seconds: float | None, line: str) -> Iterator[None]:
    """End this process in one line, exit code 1, if what runs inside takes longer.

    For a process that is there for nothing else.
    """
    if seconds is None:
        yield
        return

    def leave(*_: object) -> None:
        os.write(2, f"error: {line}\n".encode())
        os._exit(1)

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def chosen(is_chosen: bool = True) -> Iterator[None]:
    """Let what runs inside know that somebody chose a limit for it."""
    token = _asked.set(_asked.get() or is_chosen)
    try:
        yield
    finally:
        _asked.reset(token)


def nobody_asked() -> bool:
    """Whether no limit of time is in force, nor one of memory that somebody chose."""
    return not _asked.get() and math.isinf(_ends.get())


def check_count(what: str, count: int, things: str, most: int | None = None) -> None:
    """Refuse to go through very many things one by one where there is no limit.

    Parameters
    ----------
    what : str
        What would be done.
    count : int
        How many things that takes at least.
    things : str
        What they are.
    most : int, optional
        How many may be; `UNASKED_SLOTS` if None.

    Raises
    ------
    InputError
        One line that says how many there are, the limit, and how to raise it.
    """
    most = UNASKED_SLOTS if most is None else most
    if count > most and nobody_asked():
        rule = (
            f"must be at most {most} where no limit is given: take longer slots"
            " or fewer jobs, or say by --time-limit what it may take"
        )
        raise InputError(what, f"{count} {things}", rule)
