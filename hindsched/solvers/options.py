"""Options of a solve, in one frozen object; an unknown option is an error."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from hindsched.errors import InputError

SOLVERS = ("highs", "scip", "cbc", "glpk", "gurobi")
"""Solvers behind the door; HiGHS comes with the package, the others are used when installed."""
DEFAULT_GAP = 1e-6


@dataclass(frozen=True)
class SolveOptions:
    """How to solve.

    Parameters
    ----------
    solver : str
        One of `SOLVERS`.
    time_limit : float, optional
        Wall-clock seconds for the whole solve; None for no limit.
    gap : float
        Relative gap ``|bound - objective| / |bound|`` at which a solve counts as optimal.
    threads : int
        Threads of the solver.
    seed : int
        Seed of the solver and of randomised methods.
    progress : bool
        Whether to report bound, incumbent and gap on standard error.
    solver_options : dict
        Options handed to the solver by its own names; one it does not know is an error.
    """

    solver: str = "highs"
    time_limit: float | None = None
    gap: float = DEFAULT_GAP
    threads: int = 1
    seed: int = 0
    progress: bool = False
    solver_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise InputError("solver", self.solver, f"must be one of {', '.join(SOLVERS)}")
        if self.time_limit is not None and not self.time_limit >= 0:
            raise InputError("time_limit", self.time_limit, "must be at least 0 seconds")
        if not 0 <= self.gap < 1:
            raise InputError("gap", self.gap, "must be at least 0 and below 1")
        if self.threads < 1:
            raise InputError("threads", self.threads, "must be at least 1")

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Build from keywords; an unknown one is an `InputError`, not a silent default."""
        known = [item.name for item in fields(cls)]
        for name, value in options.items():
            if name not in known:
                raise InputError(name, value, f"must be an option: {', '.join(known)}")
        return cls(**options)

    def with_time(self, seconds: float | None) -> Self:
        """Return the same options with another time limit."""
        return replace(self, time_limit=None if seconds is None else max(0.0, seconds))

    def to_dict(self) -> dict[str, Any]:
        """Options as JSON data."""
        return {item.name: getattr(self, item.name) for item in fields(self)}
