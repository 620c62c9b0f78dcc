"""Ending a program with everything that it has started, wherever that has gone."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

VARIABLE = "HINDSCHED_SCHEDULER"
"""Environment variable by which what a program starts is known; children inherit it."""
MOST_ROUNDS = 10
_PROCESSES = Path("/proc")


class Mark:
    """What a program and everything that it starts carry, also what leaves its session.

    Linux alone tells other processes' environment; elsewhere `kill_all` finds nothing.
    """

    def __init__(self) -> None:
        self._word = uuid4().hex

    def environment(self) -> dict[str, str]:
        """Our environment with the mark: what to start the program with."""
        return {**os.environ, VARIABLE: self._word}

    def kill_all(self) -> None:
        """Kill what carries the mark, until nothing new has been started meanwhile."""
        for _ in range(MOST_ROUNDS):
            found = self._carriers()
            for process in found:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            if not found:
                break

    def _carriers(self) -> list[int]:
        entry = f"{VARIABLE}={self._word}".encode()
        found = []
        for folder in _PROCESSES.glob("[0-9]*"):
            with suppress(OSError):  # ended meanwhile, or another user's; the dead have none
                if entry in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found
