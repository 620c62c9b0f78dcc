"""What is known of a solve and why it stopped; what it says while it runs."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, TextIO

from hindsched.arrays import Floats
from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject, Keywords
from hindsched.solutions.base import Solution

if TYPE_CHECKING:
    from hindsched.solvers.certificates.certificate import Certificate

SAME_BOUND = 1e-6
"""Relative difference up to which a certificate is said to prove the bound that is reported."""


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

CertainProgress = Callable[[float, float | None, float | None], None]
"""``on_progress(seconds, objective, bound)``: of a checked schedule, as a certificate proves."""


def shadow_prices(components: Sequence[Any], prices: Sequence[Any]) -> Mapping[Any, Any]:
    """Shadow prices by component, of one with many elements an array.

    A row's is the derivative of the optimal objective, in the model's own sense, by its right side:
    maximising, that of ``body <= b`` is not negative and that of ``body >= b`` not positive,
    minimising the other way round. A reduced cost is the same of a variable's bound. A component
    that occurs twice (a range) gets the sum: at most one side is active.
    """
    from pyomo.common.collections import ComponentMap

    result = ComponentMap()
    for component, price in zip(components, prices, strict=True):
        result[component] = result[component] + price if component in result else price
    kept: Mapping[Any, Any] = result
    return kept


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
    duals: Mapping[Any, Any] | None = None
    reduced_costs: Mapping[Any, Any] | None = None  # the same of the variables' bounds
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


class Reports:
    """A listener of methods: prints `lines`, and hands what is certain on to `listener`.

    Methods say more than that: a solver's own bound, an objective that is still to be checked.
    """

    def __init__(self, lines: Progress | None, listener: CertainProgress) -> None:
        self._lines, self._listener = lines, listener
        self._started = time.perf_counter()
        self._last: tuple[float | None, float | None] = (None, None)

    def __call__(
        self, bound: float | None, objective: float | None, seconds: float, message: str
    ) -> None:
        """Print a line."""
        if self._lines is not None:
            self._lines(bound, objective, seconds, message)

    def tell(self, known: Result) -> None:
        """Hand on the best objective and proven bound so far, if a result betters one of them."""
        best = max if known.instance.sense == "max" else min
        closest = min if best is max else max
        objective, bound = self._last
        certain = (
            best((n for n in (objective, known.objective) if n is not None), default=None),
            closest((n for n in (bound, known.certified_bound) if n is not None), default=None),
        )
        if certain != self._last:
            self._last = certain
            self._listener(time.perf_counter() - self._started, *certain)


@dataclass(frozen=True)
class Result:
    """What is known of an instance's offline optimum after a solve."""

    instance: Instance  # what was solved
    formulation: str  # which of the family's problems
    method: str  # the method that ran; ``auto`` is replaced by the route it took
    status: Status  # what is known
    stopped_by: StoppedBy  # why the solve stopped
    solution: Solution | None = None  # the best one; it passed ``violations()``
    bound: float | None = None  # proven: upper when maximising, lower when minimising
    certificate: Certificate | None = None  # prices from which a bound can be recomputed
    seconds: float = 0.0  # by the wall clock
    backend: str = ""  # solver or engine and its version
    options: Keywords = field(default_factory=dict)  # of the solve
    details: Mapping[str, object] = field(default_factory=dict)  # nodes, iterations, columns, ...
    # of the method ``relaxation``, a `ModelResult`: the fractional solution and its duals
    relaxation: Any = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> JsonObject:
        """All but the fractional solution, whose model stays in the process that built it."""
        return {**self.__dict__, "relaxation": None}

    @property
    def objective(self) -> float | None:
        """Objective of the solution, recomputed from its decisions."""
        return None if self.solution is None else self.solution.objective()

    @property
    def gap(self) -> float | None:
        """``|bound - objective| / |bound|``; 0 when both are 0; None when one is absent."""
        return relative_gap(self.objective, self.bound)

    @property
    def certified_bound(self) -> float | None:
        """The bound that the certificate proves; it may be weaker than `bound`, the solver's."""
        return None if self.certificate is None else self.certificate.bound

    @property
    def proof(self) -> Literal["certificate", "solver", "none"]:
        """How `bound` is proven.

        ``certificate``: anyone can recompute it from prices, without a solver; ``solver``: its
        claim alone; ``none``: there is no bound.
        """
        if self.bound is None:
            return "none"
        proven = self.certified_bound
        if proven is None:
            return "solver"
        same = abs(proven - self.bound) <= SAME_BOUND * abs(self.bound)
        return "certificate" if same else "solver"

    @property
    def prices(self) -> object | None:
        """The dual certificate's prices in the file's form, or None."""
        return None if self.certificate is None else self.certificate.to_dict()["prices"]

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that produced the result."""
        return versions()

    def to_dict(self) -> JsonObject:
        """The line that ``solve --json`` prints."""
        return {
            "family": self.instance.family,
            "instance": self.instance.name,
            "formulation": self.formulation,
            "method": self.method,
            "status": str(self.status),
            "stopped_by": str(self.stopped_by),
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "certified": self.proof == "certificate",
            "certified_bound": self.certified_bound,
            "seconds": self.seconds,
            "backend": self.backend,
            "options": dict(self.options),
            "versions": self.versions,
        }

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        def show(number: float | None) -> str:
            return "none" if number is None else f"{number:.6g}"

        gap = "none" if self.gap is None else f"{self.gap:.3%}"
        return (
            f"{self.instance.name} ({self.formulation}) by {self.method}: {self.status}, "
            f"objective {show(self.objective)}, bound {show(self.bound)}, gap {gap}, "
            f"{self.seconds:.2f} s"
        )


def status_of(solution: Solution | None, otherwise: Status = Status.NO_SOLUTION) -> Status:
    """Status that a method gives: whether a solution is optimal is found at the door."""
    return otherwise if solution is None else Status.FEASIBLE


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """``|bound - objective| / |bound|``; 0 when both are 0; None when one is absent."""
    if objective is None or bound is None:
        return None
    difference = abs(bound - objective)
    if difference == 0:
        return 0.0
    return difference / abs(bound) if bound else float("inf")


PACKAGES = (
    "hindsched", "pyomo", "highspy", "cvxpy", "cvxpy-base", "clarabel", "numpy", "scipy",
    "pandas", "numba", "pydantic",
)  # fmt: skip


@cache
def versions() -> dict[str, str]:
    """Version by package name, and Python's; packages that are not installed are left out.

    Examples
    --------
    >>> import hindsched as hs
    >>> "highspy" in hs.versions()
    True
    """
    result = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result
