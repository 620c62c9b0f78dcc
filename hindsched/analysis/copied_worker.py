"""Worker processes that begin as copies of this one, with everything that it has loaded.

A fresh process takes two seconds to load numba, Pyomo and CVXPY; a copy has them. Only a process
with one thread is copied, and only on Linux: elsewhere, and where a pool starts a worker anew while
its own threads run, workers are fresh ones, as loky starts them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextvars import Context

import numpy as np
from joblib.externals.loky.backend.context import LokyContext
from joblib.externals.loky.backend.process import LokyProcess
from threadpoolctl import threadpool_limits


def can_be_copied() -> bool:
    """Whether this process can be copied: no other thread holds a lock that a copy would keep."""
    return sys.platform == "linux" and threading.active_count() == 1


class CopiedWorker(LokyProcess):
    """A copy of this process if it can be copied, else a fresh one."""

    is_copy = False

    @staticmethod
    def _Popen(process: CopiedWorker) -> object:
        if not can_be_copied():
            return LokyProcess._Popen(process)
        from multiprocessing.popen_fork import Popen

        process.is_copy = True
        return Popen(process)

    def run(self) -> None:
        """Work; a copy forgets what its parent was in the middle of, and draws for itself."""
        if not self.is_copy:
            super().run()
            return
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        os.environ.update(self.env)
        np.random.seed()  # noqa: NPY002 - of algorithms that draw from numpy's own state
        with threadpool_limits(1):
            Context().run(super().run)


class Copying(LokyContext):
    """A context of loky's whose processes are `CopiedWorker`."""

    Process = CopiedWorker


__all__ = ["CopiedWorker", "Copying", "can_be_copied"]
