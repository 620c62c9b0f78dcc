"""Works side by side: each in a process of its own, which sends its result once.

The searches hold the interpreter's lock for half of their time, so threads would gain little; a
forked process begins with everything that its parent has built, which a pool would have to be sent.
Each works until its own deadline; those that are late are killed when the block ends. Where
processes cannot be forked safely (other systems than Linux) a solve uses one core.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.work import interrupted, is_counted

WAIT_SECONDS = 0.02  # between two looks for results while waiting
LAST_WORD_SECONDS = 3.0  # that works have to send their results once they are told to stop
Work = Callable[[], Any]
"""What a process does; it sees what its parent had when it began. What it returns is sent."""


class SideBySide:
    """Works that run while the block runs, each in a process of its own.

    `results` is what those that have ended returned, in the order in which it came; `errors` says
    why others ended without.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self.results: list[Any] = []
        self.errors: list[str] = []
        self._works = works
        self._running: list[tuple[Any, Connection]] = []

    def __enter__(self) -> Self:
        fork = multiprocessing.get_context("fork") if self._works else None
        for work in self._works:
            assert fork is not None
            receiver, sender = fork.Pipe(duplex=False)
            process = fork.Process(target=_run_and_send, args=(work, sender), daemon=True)
            try:
                process.start()
            except OSError as error:  # no room for one more: fewer do it
                self.errors.append(f"not begun: {error}")
                break
            sender.close()
            self._running.append((process, receiver))
        return self

    def __exit__(self, *error: object) -> None:
        for process, receiver in self._running:
            process.kill()
            process.join()
            receiver.close()
        self._running = []

    def look(self) -> list[Any]:
        """Receive what has come; all results so far."""
        for process, receiver in list(self._running):
            if not receiver.poll():
                continue
            try:
                is_result, message = receiver.recv()
            except (EOFError, OSError):  # or in the middle of one
                is_result, message = False, "ended without a word"
            (self.results if is_result else self.errors).append(message)
            process.join()
            receiver.close()
            self._running.remove((process, receiver))
        return self.results

    def facts(self) -> dict[str, object]:
        """How many parts there were, if any but this process, and what went wrong in them."""
        if not self._works:
            return {}
        failed = {"part_failed": "; ".join(self.errors)} if self.errors else {}
        return {"parts": 1 + len(self._works), **failed}

    def stop(self) -> list[Any]:
        """Tell all to stop, as Ctrl-C would, and wait for what they have; all results."""
        for process, _ in self._running:
            process.terminate()
        until = time.monotonic() + LAST_WORD_SECONDS
        return self.wait(lambda: until - time.monotonic())

    def wait(self, seconds_left: Callable[[], float]) -> list[Any]:
        """Wait until all have ended or no time is left; all results."""
        while self._running and seconds_left() > 0:
            self.look()
            time.sleep(WAIT_SECONDS)
        return self.look()


def threads_of(options: SolveOptions) -> int:
    """Cores that a solve may use: the option's, ``HINDSCHED_THREADS``, or all.

    One in a worker process, whose siblings use the others, where work is counted, and where no
    process can be forked.
    """
    process = multiprocessing.current_process()
    if is_counted() or sys.platform != "linux" or process.daemon:
        return 1
    if options.threads is not None:
        return options.threads
    if multiprocessing.parent_process() is not None:
        return 1
    asked = os.environ.get("HINDSCHED_THREADS", "")
    return max(1, int(asked)) if asked.isdecimal() else len(os.sched_getaffinity(0))


def _run_and_send(work: Work, sender: Connection) -> None:
    """Do a work in a process of its own; send what it returns, or what went wrong."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    end_with(parent.sentinel)
    stop = interrupted()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        message = True, work()
    except Exception as error:
        message = False, f"{type(error).__name__}: {error}"
    with suppress(OSError):  # the parent has ended
        sender.send(message)


def end_with(pipe: int) -> None:
    """Let SIGIO end this process when the other end of a pipe closes, as its holder is killed."""
    import fcntl  # where there are such signals

    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)
    if wait([pipe], timeout=0):  # it was closed before this
        raise SystemExit
