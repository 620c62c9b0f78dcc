"""The command line: thin commands over the library, one file a command."""

from __future__ import annotations

import gc
import os
import signal
import warnings

from hindsched.cli.signals import WORDS, hold_signals, leave_at_once


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
