"""A family's convex programs, in CVXPY, as objects that a user holds and solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.models.convex import ConvexProgram
from hindsched.solvers.backends.convex import ConvexResult, solve_convex
from hindsched.solvers.numbers import Numbers
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.status import Status


@dataclass(frozen=True)
class ConvexModelResult:
    """What is known of a convex program after a solve.

    Parameters
    ----------
    program : ConvexProgram
        What was solved.
    result : ConvexResult
        What the chain of solvers says; each step stands in it.
    point : mapping
        Values by the variables' CVXPY numbers.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.model(hs.generate("mlbroker", preset="small")).slot(2).solve()
    >>> found.values["server"].groupby("job").sum().round(6).unique().tolist()
    [1.0]
    """

    program: ConvexProgram
    result: ConvexResult
    point: Mapping[int, NDArray[np.float64]]

    @property
    def status(self) -> Status:
        """What is known of the program's optimum."""
        return self.result.status

    @property
    def objective(self) -> float | None:
        """The objective at the point."""
        return self.result.objective

    @property
    def values(self) -> Numbers:
        """Values of the variables by name."""
        if not self.result.has_point:
            raise SolveFailed(f"{self.program.title}: {self.status}, there is no point")
        names = [part.name for part in self.program.components("variable")]
        return Numbers(names, lambda name: self.program.table(name, self._value))

    @property
    def duals(self) -> Numbers:
        """Shadow prices of the equations and inequalities by name: d objective / d right side."""
        names = [part.name for part in self.program.components("constraint")]
        return Numbers(names, lambda name: self.program.table(name, self.result.dual))

    def _value(self, variable: cp.Variable) -> NDArray[np.float64] | None:
        return self.point.get(variable.id)

    def __str__(self) -> str:
        value = "none" if self.objective is None else f"{self.objective:.6g}"
        return (
            f"{self.program.title}: {self.status}, objective {value}, {self.result.backend}, "
            f"{self.result.seconds:.2f} s"
        )

    def __repr__(self) -> str:
        return f"<{self}>"


class ConvexModel:
    """A convex program, as `Model.slot` and `Model.fractional` return it.

    Parameters
    ----------
    program : ConvexProgram
        The declarative program.

    Examples
    --------
    >>> import hindsched as hs
    >>> slot = hs.model(hs.generate("mlbroker", preset="small")).slot(2)
    >>> slot.set(epsilon=1.0)
    >>> slot.solve().status
    <Status.OPTIMAL: 'optimal'>
    """

    def __init__(self, program: ConvexProgram) -> None:
        self.program = program

    @property
    def instance(self) -> Instance:
        """What the model is about."""
        return self.program.instance

    @property
    def cvxpy(self) -> cp.Problem:
        """The CVXPY problem: read it, or make one of your own from its parts."""
        return self.program.cvxpy

    def set(self, *given: Any, **values: Any) -> None:
        """Set the Parameters, as the family's program names them."""
        self.program.set(*given, **values)

    def solve(
        self, options: SolveOptions | Mapping[str, Any] | None = None, **option_keywords: Any
    ) -> ConvexModelResult:
        """Solve at the Parameters' present values, through the stated chain of solvers."""
        given = options.to_dict() if isinstance(options, SolveOptions) else options or {}
        chosen = SolveOptions.of(**{**given, **option_keywords})
        # with many Parameters CVXPY takes far longer to compile once than for these values alone
        found = solve_convex(self.program.problem, options=chosen, ignore_dpp=True)
        variables = self.program.problem.variables() if found.has_point else []
        point = {each.id: np.array(each.value, dtype=float) for each in variables}
        return ConvexModelResult(self.program, found, point)

    def to_dict(self) -> dict[str, Any]:
        """Equations and sizes as JSON data."""
        return self.program.to_dict()

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return repr(self.program)
