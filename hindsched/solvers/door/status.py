"""The four questions a solve answers apart: why it stopped, point, bound, duals."""

from __future__ import annotations

from enum import StrEnum


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
