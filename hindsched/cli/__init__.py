"""The command line: thin commands over the library, one file per group."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Entry point of the ``hindsched`` command."""
    signal.signal(signal.SIGINT, _leave)  # while modules are loaded there is nothing to keep
    from hindsched.cli.app import run
    from hindsched.solvers.interrupt import raise_terminated

    signal.signal(signal.SIGTERM, raise_terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run()
    signal.signal(signal.SIGINT, _leave)
    raise SystemExit(code)


def _leave(signum: int, frame: FrameType | None) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)
