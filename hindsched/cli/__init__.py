"""The command line: thin commands over the library, one file a command."""

from __future__ import annotations

import os
import signal
import warnings
from types import FrameType

from hindsched.errors import INTERRUPTED, TERMINATED


def main() -> None:
    """Entry point of the ``hindsched`` command."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    from hindsched.cli.app import run
    from hindsched.cli.output import say
    from hindsched.solvers.door.work import raise_terminated

    warnings.showwarning = lambda message, *_: say(f"warning: {message}")
    signal.signal(signal.SIGTERM, raise_terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise SystemExit(run())


def _leave(signum: int, frame: FrameType | None) -> None:
    """End at once in one line, while modules are loaded and there is nothing to keep."""
    is_ctrl_c = signum == signal.SIGINT
    what = b"interrupted" if is_ctrl_c else b"terminated"
    os.write(2, b"error: %b before anything began; what was there is as it was\n" % what)
    os._exit(INTERRUPTED if is_ctrl_c else TERMINATED)
