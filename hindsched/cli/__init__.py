"""The command line: thin commands over the library, one file a command."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from types import FrameType

from hindsched.errors import INTERRUPTED, TERMINATED

WORDS = {
    signal.SIGINT: ("interrupted", INTERRUPTED), signal.SIGTERM: ("terminated", TERMINATED),
}  # fmt: skip
"""What Ctrl-C and SIGTERM are called, and their exit codes."""


def main() -> None:
    """Entry point of the ``hindsched`` command."""
    leave_at_once("before anything began; what was there is as it was")  # modules are loaded
    from hindsched.cli.app import run
    from hindsched.solvers.door.interrupt import Terminated, raise_terminated

    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    signal.signal(signal.SIGTERM, raise_terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run(is_process=True)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            leave_at_once("after everything was done")
    except KeyboardInterrupt as stopped:
        hold_signals()
        what, code = WORDS[signal.SIGTERM if isinstance(stopped, Terminated) else signal.SIGINT]
        os.write(2, f"error: {what}\n".encode())
    gc.freeze()  # the interpreter's last collections would go through everything for nothing
    raise SystemExit(code)


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
