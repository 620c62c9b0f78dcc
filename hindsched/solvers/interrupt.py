"""Ctrl-C while a solver runs: the first asks it to stop and keep what it has, the second kills."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_current: threading.Event | None = None


@contextmanager
def catch_interrupt() -> Iterator[threading.Event]:
    """Turn the first SIGINT inside the block into an event; a second raises `KeyboardInterrupt`.

    Nested blocks share the outermost block's event, so that an engine which solves many programs
    learns of an interrupt that came during any of them. Outside the main thread no signal arrives:
    the event of a block that the main thread holds is shared, and otherwise it is never set.

    Yields
    ------
    threading.Event
        Set once an interrupt has come.
    """
    global _current
    if _current is not None:
        yield _current
        return
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def ask_to_stop(signum: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    previous = signal.signal(signal.SIGINT, ask_to_stop)
    _current = event
    try:
        yield event
    finally:
        _current = None
        signal.signal(signal.SIGINT, signal.SIG_DFL if previous is None else previous)
