"""What is known of a solve, why it stopped, and what a solver says while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TextIO

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


class ShadowPrices(Mapping[Any, Any]):
    """Shadow prices by component: it is looked up as the object that it is.

    A row's is the derivative of the optimal objective, in the model's own sense, with respect to
    its right side: maximising, that of ``body <= b`` is not negative and that of ``body >= b`` not
    positive, minimising the other way round. A reduced cost is the same of a variable's bound. A
    component that occurs twice (a range) gets the sum: at most one of its sides is active. One with
    many elements has an array.
    """

    def __init__(self, components: Sequence[object], prices: Sequence[Any]) -> None:
        self._components, self._prices = components, prices

    @cached_property
    def _known(self) -> dict[int, tuple[object, Any]]:
        found: dict[int, tuple[object, Any]] = {}
        for component, price in zip(self._components, self._prices, strict=True):
            other = found.get(id(component))
            found[id(component)] = component, price if other is None else other[1] + price
        return found

    def __getitem__(self, component: object) -> Any:
        return self._known[id(component)][1]

    def __iter__(self) -> Iterator[Any]:
        return (component for component, _ in self._known.values())

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True)
class ProgramResult:
    """What is known of a Pyomo or CVXPY model after a solve; numbers in the model's own sense."""

    status: Status
    stopped_by: StoppedBy
    has_point: bool = False  # whether the variables hold a checked point; else they hold no value
    objective: float | None = None  # the model's own expression at that point
    # on the optimum, as the solver claims; of an optimal linear program its objective
    bound: float | None = None
    # shadow prices, if asked for, of an optimal continuous program
    duals: ShadowPrices | None = None
    reduced_costs: ShadowPrices | None = None  # the same of the variables' bounds
    seconds: float = 0.0  # by the wall clock, compilation included
    backend: str = ""  # solver and version
    # nodes, iterations, `refused`: why a point was not believed; `steps`
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """A backend's own account of one run, in the minimising form of `LinearProgram`."""

    status: Status  # what the solver claims
    stopped_by: StoppedBy  # why it stopped
    # value of each column, given only if the solver's own primal status says feasible
    point: Floats | None = None
    bound: float | None = None  # lower bound on the minimum, offset included
    # derivative of the minimum with respect to each row's right side and each column's bound; None
    # after a mixed-integer program
    row_duals: Floats | None = None
    column_duals: Floats | None = None
    backend: str = ""  # solver and version
    details: Mapping[str, object] = field(default_factory=dict)  # nodes, iterations and the like


class LineProgress:
    """Print bound, objective, gap and the seconds left of `limit`, a line every `interval` seconds.

    On standard error by default, so that standard output stays machine-readable.
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
