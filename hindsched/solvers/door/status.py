"""What is known of a solve, why it stopped, and what a solver says while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TextIO

from hindsched.arrays import Floats


class Status(StrEnum):
    """What is known at the end of a solve."""

    OPTIMAL = "optimal"
    """A checked solution whose gap is within the tolerance asked for."""
    FEASIBLE = "feasible"
    """A checked solution, optimality not proven."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NO_SOLUTION = "no_solution"
    """Stopped without a solution; there may be a bound."""
    FAILED = "failed"


class StoppedBy(StrEnum):
    """Why a solve stopped."""

    GAP = "gap"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"
    ITERATION_LIMIT = "iteration_limit"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    CONVERGED = "converged"
    """A bounding method that has no better bound to find."""
    ERROR = "error"


Progress = Callable[[float | None, float | None, float, str], None]
"""``progress(bound, objective, seconds, message)``; bound and objective in the model's sense."""


@dataclass(frozen=True)
class Answer:
    """A backend's own account of one run, in the minimising form of `LinearProgram`.

    Parameters
    ----------
    status : Status
        What the solver claims.
    stopped_by : StoppedBy
        Why it stopped.
    point : ndarray, optional
        Value of each column, given only if the solver's own primal status says feasible.
    bound : float, optional
        Lower bound on the minimum, offset included.
    row_duals, column_duals : ndarray, optional
        Derivative of the minimum with respect to each row's right side and each column's bound;
        None after a mixed-integer program.
    backend : str
        Solver and version.
    details : dict
        Nodes, iterations and the like.
    """

    status: Status
    stopped_by: StoppedBy
    point: Floats | None = None
    bound: float | None = None
    row_duals: Floats | None = None
    column_duals: Floats | None = None
    backend: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


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
