"""What Ctrl-C and SIGTERM do where nothing is left to keep."""

from __future__ import annotations

import os
import signal
from types import FrameType

from hindsched.errors import INTERRUPTED, TERMINATED

WORDS = {
    signal.SIGINT: ("interrupted", INTERRUPTED), signal.SIGTERM: ("terminated", TERMINATED),
}  # fmt: skip
"""What Ctrl-C and SIGTERM are called, and their exit codes."""


def leave_at_once(when: str) -> None:
    """Let Ctrl-C and SIGTERM end the process in one line, where there is nothing to keep."""

    def leave(signum: int, frame: FrameType | None) -> None:
        what, code = WORDS[signal.Signals(signum)]
        os.write(2, f"error: {what} {when}\n".encode())
        os._exit(code)

    for number in WORDS:
        signal.signal(number, leave)


def hold_signals() -> None:
    """Let Ctrl-C and SIGTERM do nothing where one line is left to say."""
    for number in WORDS:
        signal.signal(number, signal.SIG_IGN)
