"""Options of a solve, in one frozen object; an unknown option is an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Self

from hindsched.errors import InputError
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Solution

SOLVERS = ("highs", "scip", "gurobi")
"""Solvers behind the door; HiGHS comes with the package, the others are used when installed."""
DEFAULT_GAP = 1e-6
MOST_THREADS = 1024  # more than this is a mistake that would only exhaust the machine


@dataclass(frozen=True)
class SolveOptions:
    """How to solve."""

    solver: str = "highs"  # one of `SOLVERS`
    time_limit: float | None = None  # seconds for the whole solve, building included
    # units of work in place of a time limit (`door.work`): no clock decides, so two runs give the
    # same bytes, on one core and with HiGHS
    work_limit: int | None = None
    gap: float = DEFAULT_GAP  # ``|bound - objective| / |bound|`` that counts as optimal
    # cores that ``auto`` uses, its parts side by side, and threads of a solver that runs alone; by
    # default all cores, and one thread of a solver; one core in a worker process
    threads: int | None = None
    seed: int = 0  # of the solver and of randomised methods
    progress: bool = False  # whether to report bound, incumbent and gap on standard error
    # handed to the solver by its own names; one it does not know is an error
    solver_options: JsonObject = field(default_factory=dict)
    # a checked schedule to begin from, which `solve` sets; no option by name
    start: Solution | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        limit, work, threads = self.time_limit, self.work_limit, self.threads
        rules = (
            ("solver", self.solver in SOLVERS, f"must be one of {', '.join(SOLVERS)}"),
            ("time_limit", limit is None or (_is_number(limit) and 0 <= limit < float("inf")),
             "must be a number of seconds, at least 0"),
            ("work_limit", work is None or (_is_integer(work) and work >= 0),
             "must be an integer of at least 0"),
            ("work_limit", work is None or limit is None,
             "must be alone: with time_limit the clock decides"),
            ("work_limit", work is None or self.solver == "highs",
             f"is for highs; {self.solver} looks at the clock"),
            ("gap", _is_number(self.gap) and 0 <= self.gap < 1, "must be at least 0 and below 1"),
            ("threads", threads is None or (_is_integer(threads) and 1 <= threads <= MOST_THREADS),
             f"must be an integer in 1..{MOST_THREADS}"),
            ("seed", _is_integer(self.seed) and self.seed >= 0,
             "must be an integer of at least 0"),
            ("progress", isinstance(self.progress, bool), "must be true or false"),
            ("solver_options", isinstance(self.solver_options, dict), "must be names and values"),
        )  # fmt: skip
        for name, holds, rule in rules:
            if not holds:
                raise InputError(name, getattr(self, name), rule)

    @classmethod
    def of(cls, given: Self | Mapping[str, object] | None = None, **options: object) -> Self:
        """Build from options and keywords, which win; an unknown one is an `InputError`."""
        known = [*cls().to_dict()]
        before = given.to_dict() if isinstance(given, SolveOptions) else given or {}
        chosen: dict[str, Any] = {**before, **options}
        for name, value in chosen.items():
            if name not in known:
                raise InputError(name, value, f"must be an option: {', '.join(known)}")
        return cls(**chosen)

    def with_time(self, seconds: float | None) -> Self:
        """Return the same options with another time limit."""
        limit = None if seconds is None else max(0.0, seconds)
        return self if limit == self.time_limit else replace(self, time_limit=limit)

    def without(self, gone: float) -> Self:
        """Return the same options with what is left of the time after so many seconds."""
        return self if self.time_limit is None else self.with_time(self.time_limit - gone)

    @property
    def solver_threads(self) -> int:
        """Threads of a solver that runs alone."""
        return 1 if self.threads is None else self.threads

    def to_dict(self) -> JsonObject:
        """Options as JSON data, without the schedule to begin from."""
        names = [item.name for item in fields(self) if item.name != "start"]
        return {name: getattr(self, name) for name in names}


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
