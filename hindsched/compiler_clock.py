"""How long numba has compiled in this process: time that counts against no limit and no method."""

from __future__ import annotations

import threading
import time
from typing import Any

from hindsched.kernel_cache import keep_kernels_if_possible


class _Compiler:
    """How long numba has compiled in this process so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._begun = self._total = 0.0

    def __call__(self, event: Any) -> None:
        with self._lock:
            now = time.monotonic()
            if event.is_start:
                self._running += 1
                if self._running == 1:
                    self._begun = now
            elif event.is_end:
                self._running -= 1
                if self._running == 0:
                    self._total += now - self._begun

    def seconds(self) -> float:
        with self._lock:
            now = time.monotonic() - self._begun if self._running else 0.0
            return self._total + now


_compiler = _Compiler()
_watched = threading.Event()


def seconds_of_compiling() -> float:
    """How long numba has compiled in this process since kernels were loaded; no cached ones."""
    return _compiler.seconds()


def load_compiler() -> None:
    """Load what kernels need of numba, and count the time in which it compiles from now on.

    Called where kernels are loaded and before clocks start: numba would read its registries, a
    second's work, when the first kernel is called. Not where a limit begins, which would load numba
    for what needs none.
    """
    if _watched.is_set():
        return
    _watched.set()
    from numba.core import event
    from numba.core.registry import cpu_target

    class Listener(event.Listener):
        def on_start(self, event: object) -> None:
            _compiler(event)

        def on_end(self, event: object) -> None:
            _compiler(event)

    keep_kernels_if_possible()
    event.register("numba:compile", Listener())
    cpu_target.target_context.refresh()
