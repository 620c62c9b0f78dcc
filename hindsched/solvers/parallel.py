"""Works side by side: each in a process of its own, which sends what it found once.

The searches hold the interpreter's lock for half of their time, so threads would gain little; a
forked process begins with everything that its parent has built. Each works until its own deadline;
those that are late are killed when the block ends. Where processes cannot be forked safely (other
systems than Linux) a solve uses one core.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Self

from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.work import interrupted, is_counted

WAIT_SECONDS = 0.02  # how often whoever waits looks for what was found
LAST_WORD_SECONDS = 3.0  # that works have to say what they found, once they are told to stop
Work = Callable[[], Any]
"""What a process does; it sees what its parent had when it began. What it returns is sent."""


class SideBySide:
    """Works that run while the block runs, each in a process of its own.

    `found` is what those that have ended returned, in the order in which it came; `errors` says why
    others ended without.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self.found: list[Any] = []
        self.errors: list[str] = []
        self._works = works
        self._running: list[tuple[Any, Connection]] = []

    def __enter__(self) -> Self:
        fork = multiprocessing.get_context("fork") if self._works else None
        for work in self._works:
            assert fork is not None
            mine, theirs = fork.Pipe(duplex=False)
            process = fork.Process(target=_run, args=(work, theirs), daemon=True)
            try:
                process.start()
            except OSError as error:  # no room for one more: fewer do it
                self.errors.append(f"not begun: {error}")
                break
            theirs.close()
            self._running.append((process, mine))
        return self

    def __exit__(self, *error: object) -> None:
        for process, line in self._running:
            process.kill()
            process.join()
            line.close()
        self._running = []

    def look(self) -> list[Any]:
        """Take in what has come; all that was found so far."""
        for process, line in list(self._running):
            if not line.poll():
                continue
            try:
                is_found, sent = line.recv()
            except (EOFError, OSError):  # or in the middle of one
                is_found, sent = False, "ended without a word"
            (self.found if is_found else self.errors).append(sent)
            process.join()
            line.close()
            self._running.remove((process, line))
        return self.found

    def facts(self) -> dict[str, object]:
        """How many parts there were, if any but this process, and what went wrong in them."""
        if not self._works:
            return {}
        failed = {"part_failed": "; ".join(self.errors)} if self.errors else {}
        return {"parts": 1 + len(self._works), **failed}

    def stop(self) -> list[Any]:
        """Tell all to stop, as Ctrl-C would, and wait for what they have; all that was found."""
        for process, _ in self._running:
            process.terminate()
        until = time.monotonic() + LAST_WORD_SECONDS
        return self.wait(lambda: until - time.monotonic())

    def wait(self, seconds_left: Callable[[], float]) -> list[Any]:
        """Wait until all have ended or no time is left; all that was found."""
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


def _run(work: Work, line: Connection) -> None:
    """Do a work in a process of its own, and say what went wrong; end where the parent ends."""
    Thread(target=_end_with_parent, daemon=True).start()
    stop = interrupted()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        sent = True, work()
    except Exception as error:
        sent = False, f"{type(error).__name__}: {error}"
    with suppress(OSError):  # the parent has ended
        line.send(sent)


def _end_with_parent() -> None:
    """End at once where the parent was killed: nobody is left to hear of it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
