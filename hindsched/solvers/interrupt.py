"""Ctrl-C while a solver runs: the first asks it to stop and keep what it has, the second kills.

Where the command line listens to SIGTERM (`raise_terminated`), that is treated alike.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_current: threading.Event | None = None
_terminated = False


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
        global _terminated
        _terminated = signum == signal.SIGTERM
        if event.is_set():
            raise interruption()
        event.set()

    listening = {signal.SIGINT: signal.signal(signal.SIGINT, ask_to_stop)}
    if signal.getsignal(signal.SIGTERM) is raise_terminated:
        listening[signal.SIGTERM] = signal.signal(signal.SIGTERM, ask_to_stop)
    _current = event
    try:
        yield event
    finally:
        _current = None
        for number, previous in listening.items():
            signal.signal(number, signal.SIG_DFL if previous is None else previous)
