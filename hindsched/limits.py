"""Limits of time that hold for whatever code runs inside them.

Methods look at the clock where they can stop with an answer. These limits are for what cannot:
a program that is still being built, a kernel that was given a million slots. `time_limit` raises
`OutOfTime` in the middle of it, and leaves the process as it was.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hindsched.compiler_clock import seconds_of_compiling
from hindsched.errors import HindschedError, InputError

UNASKED_SLOTS = 1_000_000
"""Slots that may be played one by one without any limit of time or memory: nobody has said that it
may take long."""
ROOM_FOR_A_THREAD = 32 << 20
"""Bytes of a thread's stack and of its first steps, generously."""
ROUNDS_TO_DELIVER = 3
SECONDS_BETWEEN_ALARMS = 1.0
SECONDS_OF_LOADING, SECONDS_BETWEEN_LOOKS = 60.0, 0.02
"""How long an alarm lets modules load, which half loaded stay broken; how often it looks."""
OVERRUN_SHARE, OVERRUN_SECONDS = 1.1, 1.0
"""Work that has not stopped by itself after so many times its time limit, and so many seconds more,
is stopped."""
KILL_SHARE, KILL_SECONDS = 1.2, 2.0
"""The same for what does not stop either: its process is killed, where it is a worker's. A command
keeps to it from the start of its process."""
SECONDS_TO_END, SECONDS_TO_LEAVE = 1.0, 0.6
"""What a command needs for its last steps once its work was stopped, and once they are done too."""


class OutOfTime(BaseException):
    """Raised inside a `time_limit` whose time is over; no ``except Exception`` swallows it."""


class NoTimeLeft(OutOfTime):
    """Raised before something is built that cannot be ready in the time that is left.

    Parameters
    ----------
    refusal : InputError
        What it needs, what there is, and how to raise the limit.
    """

    def __init__(self, refusal: InputError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class LimitReached(HindschedError, RuntimeError):
    """A command stopped at its limit of time or memory."""


_ends: ContextVar[float] = ContextVar("ends", default=math.inf)
"""When the innermost `time_limit` ends, by ``time.monotonic``."""


_asked: ContextVar[bool] = ContextVar("asked", default=False)
"""Whether a `memory_limit` of somebody's choice is in force, or a command's time limit."""


_command_ends: ContextVar[float] = ContextVar("command ends", default=math.inf)
"""When the work of the `command` around this code must have ended, without what numba compiles."""


_uncounted: ContextVar[float | None] = ContextVar("uncounted", default=None)
"""Since when a command's time counts for none of its parts yet: the first one has it."""


def time_left(otherwise: float) -> float:
    """Seconds until the `time_limit` around this code ends; `otherwise` if that is less."""
    return max(0.0, min(otherwise, _ends.get() - time.monotonic()))


def overrun(limit: float | None) -> float | None:
    """Seconds after which work that was given a time limit is stopped from outside.

    Inside a `command` it ends so early that the command keeps to its own limit, whatever went
    before; half of its limit is left to the work in any case.
    """
    if limit is None:
        return None
    left = _command_ends.get() - counted_time()
    return max(min(OVERRUN_SHARE * limit + OVERRUN_SECONDS, left), limit / 2)


def planned(limit: float) -> float:
    """Seconds that work given a time limit may plan with, to end before `overrun` stops it.

    That is the limit, unless so much of a `command` is over that nothing would be left after it.
    """
    return min(limit, (overrun(limit) or limit) / OVERRUN_SHARE)


@contextmanager
def command(limit: float | None, began: float) -> Iterator[None]:
    """Let all work inside be stopped so early that a command keeps to its time limit.

    That is `KILL_SHARE` of it and `KILL_SECONDS`, the loading of modules included.

    Parameters
    ----------
    limit : float, optional
        Seconds for the whole command; None for no limit.
    began : float
        By ``time.monotonic``: of a process that is there for the command, when that started.
    """
    most = math.inf if limit is None else KILL_SHARE * limit + KILL_SECONDS - SECONDS_TO_END
    ends = min(_command_ends.get(), began + most - seconds_of_compiling())
    token = _command_ends.set(ends)
    uncounted = _uncounted.set(began if limit is None else None)
    try:
        with chosen(limit is not None):
            yield
    finally:
        _command_ends.reset(token)
        _uncounted.reset(uncounted)


@contextmanager
def part(limit: float | None) -> Iterator[None]:
    """Let the work inside, a part of a command that has a limit of each, end as a command does.

    What the command did before its first part counts with that one.

    Parameters
    ----------
    limit : float, optional
        Seconds of the part; None for no limit.
    """
    now, since = time.monotonic(), _uncounted.get()
    _uncounted.set(None)
    with command(limit, now if since is None else since):
        yield


def counted_time() -> float:
    """``time.monotonic`` that stands still while numba compiles, which counts against no limit."""
    return time.monotonic() - seconds_of_compiling()


def seconds_before(seconds: float) -> float:
    """Seconds until the last so many of the `command` around this code begin; inf without one."""
    return max(0.0, _command_ends.get() - seconds - counted_time())


def seconds_to_finish(otherwise: float) -> float:
    """Seconds that the last steps of the `command` around this code may take; `otherwise` if less.

    It may stop at once where there are none: then nothing is begun that could be left out.
    """
    ends = _command_ends.get() + SECONDS_TO_END - SECONDS_TO_LEAVE
    return max(0.0, min(otherwise, ends - counted_time()))


class time_limit:  # noqa: N801 - used like contextlib's managers
    """Raise `OutOfTime` in the code inside once the time is over, whatever it does.

    It arrives between two steps of Python code, so a single long call into compiled code ends
    first, as does the loading of a module; one that only waits for the system, as ``time.sleep``
    does, is woken in the main thread. Time in which numba compiles kernels, once in an
    installation, does not count.

    Parameters
    ----------
    seconds : float, optional
        None for no limit.

    Examples
    --------
    >>> from hindsched.limits import OutOfTime, time_limit
    >>> try:
    ...     with time_limit(0.05):
    ...         while True:
    ...             pass
    ... except OutOfTime as error:
    ...     print(error)
    0.05 s
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._alarm: type[OutOfTime] = type("Alarm", (OutOfTime,), {})
        self._over = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self._seconds is None:
            return self
        bytes(ROOM_FOR_A_THREAD)  # a thread that finds no memory would be waited for without end
        self._outer = _ends.get()
        try:
            _ends.set(min(time.monotonic() + self._seconds, self._outer))
            self._thread = threading.get_ident()
            self._loading, _ = _inside(self._thread)
            self._waker = _listen()
            self._deadline = counted_time() + self._seconds
            threading.Thread(target=self._watch, name="time limit", daemon=True).start()
        except BaseException as error:
            self._finish(error)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._seconds is not None:
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        """Let no alarm of this block come later; raise `OutOfTime` if one came."""
        stopped, other = self._ended(error), None
        ended = False
        while not ended:
            try:
                with self._lock:
                    self._over.set()
                for _ in range(ROUNDS_TO_DELIVER):  # one that is on its way comes here
                    time.sleep(0)
                _ends.set(self._outer)
                if getattr(self, "_waker", False):
                    signal.signal(signal.SIGURG, signal.SIG_DFL)
                ended = True
            except self._alarm:
                stopped = True
            except OutOfTime as alarm:  # of a block around this one
                other = alarm
        if other is not None:
            raise other
        if stopped:
            raise OutOfTime(f"{self._seconds:g} s") from None

    def _ended(self, error: BaseException | None) -> bool:
        """Whether the alarm ended the block; compiled code passes it on as another's cause."""
        while error is not None and not isinstance(error, self._alarm):
            error = error.__cause__
        return error is not None

    def _watch(self) -> None:
        while (left := self._deadline - counted_time()) > 0:
            if self._over.wait(left):
                return
        patience = time.monotonic() + SECONDS_OF_LOADING
        while True:  # again until it ends: a destructor or a callback swallows what is raised in it
            with self._lock:
                if self._over.is_set():
                    return
                loading, ends = _inside(self._thread)  # and it takes no step until it hears
                now = not ends and (loading <= self._loading or time.monotonic() > patience)
                if now:
                    _raise_in(self._thread, self._alarm)
                    if self._thread == threading.main_thread().ident and hasattr(signal, "SIGURG"):
                        signal.pthread_kill(self._thread, signal.SIGURG)
            self._over.wait(SECONDS_BETWEEN_ALARMS if now else SECONDS_BETWEEN_LOOKS)


def without_alarms(hook: Callable[[Any], object]) -> Callable[[Any], None]:
    """A ``sys.unraisablehook`` that is silent on alarms that a destructor or a callback swallows.

    They come again; everything else is told by `hook`.
    """

    def tell(unraisable: Any) -> None:
        if unraisable.exc_type is None or not issubclass(unraisable.exc_type, OutOfTime):
            hook(unraisable)

    return tell


_ENDS = {
    way.__code__ for way in (time_limit.__enter__, time_limit.__exit__, time_limit._finish)
}  # fmt: skip
"""Steps that must be taken whole; `__exit__` begins outside any ``try``."""


@contextmanager
def killed_after(seconds: float | None) -> Iterator[None]:
    """Let the system kill this process where nothing else stops what runs inside.

    For processes that are there for nothing else, of which another one waits for the answer.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM, which kills if nobody listens
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


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


def ask() -> None:
    """Count this process as one whose limits somebody chose, as its parent is."""
    _asked.set(True)


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
            " or fewer jobs, or say by --time-limit or --memory-limit what it may take"
        )
        raise InputError(what, f"{count} {things}", rule)


def _listen() -> bool:
    """Let SIGURG, which nobody hears otherwise, end what only waits; whether that was new."""
    here = threading.current_thread() is threading.main_thread()
    if not here or getattr(signal, "SIGURG", None) is None:
        return False
    if signal.getsignal(signal.SIGURG) is not signal.SIG_DFL:
        return False
    signal.signal(signal.SIGURG, lambda number, frame: None)
    return True


def _numba_folder() -> str:
    """Where numba's files stand, once it is loaded."""
    numba = sys.modules.get("numba")
    if numba is None or numba.__file__ is None:
        return os.devnull  # with which no file's path begins
    return f"{Path(numba.__file__).parent}{os.sep}"


def _inside(thread: int) -> tuple[int, bool]:
    """How many steps of loading a thread is in, and whether a block begins or ends there.

    They are those of imports and of numba, whose registries stay half read for good.
    """
    frame, loading, ends = sys._current_frames().get(thread), 0, False
    numba = _numba_folder()
    while frame is not None:
        file = frame.f_code.co_filename
        loading += file.startswith("<frozen importlib") or file.startswith(numba)
        ends = ends or frame.f_code in _ENDS
        frame = frame.f_back
    return loading, ends


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
