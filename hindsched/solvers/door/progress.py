"""Progress of a solve: what engines call, and a plain printer for when nobody else listens."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from hindsched.solvers.door.answer import Progress

__all__ = ["LineProgress", "Progress"]


class LineProgress:
    """Print bound, objective, gap and the time that is left, at most every few seconds.

    Parameters
    ----------
    stream : TextIO, optional
        Where to; standard error by default, so that standard output stays machine-readable.
    interval : float
        Seconds between lines.
    limit : float, optional
        Seconds that the solve may take; None for any time.
    """

    def __init__(
        self, stream: TextIO | None = None, interval: float = 2.0, limit: float | None = None
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._interval = interval
        self._limit = limit
        self._last = time.perf_counter()

    def __call__(
        self, bound: float | None, objective: float | None, seconds: float, message: str
    ) -> None:
        """Print, unless a line was printed just now."""
        now = time.perf_counter()
        if now - self._last < self._interval:
            return
        self._last = now
        shown = [
            f"{name} {value:.6g}"
            for name, value in (("objective", objective), ("bound", bound))
            if value is not None
        ]
        if bound and objective is not None:
            shown.append(f"gap {abs(bound - objective) / abs(bound):.2%}")
        if self._limit is not None:
            shown.append(f"at most {max(0.0, self._limit - seconds):.0f} s left")
        self._stream.write(f"{seconds:7.1f} s  {', '.join(shown)}  ({message})\n")
        self._stream.flush()
