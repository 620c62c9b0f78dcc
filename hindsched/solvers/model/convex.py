"""A family's convex programs, in CVXPY, as objects that a user holds and solves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.json_types import Keywords
from hindsched.models.convex import ConvexProgram
from hindsched.solvers.door.convex import ConvexResult, solve_convex
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import Status
from hindsched.solvers.model.held import Held
from hindsched.solvers.model.result import LabelledResult

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class ConvexModelResult(LabelledResult):
    """What is known of a convex program after a solve.

    Parameters
    ----------
    declared : ConvexProgram
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

    declared: ConvexProgram
    result: ConvexResult
    point: Mapping[int, Floats]

    @property
    def status(self) -> Status:
        """What is known of the program's optimum."""
        return self.result.status

    @property
    def has_point(self) -> bool:
        """Whether there is a believed point."""
        return self.result.has_point

    @property
    def objective(self) -> float | None:
        """The objective at the point."""
        return self.result.objective

    def _value_table(self, name: str) -> pd.Series[float]:
        return self.declared.table(name, lambda variable: self.point.get(variable.id))

    def _dual_table(self) -> Callable[[str], pd.Series[float]]:
        return lambda name: self.declared.table(name, self.result.dual)

    def __str__(self) -> str:
        value = "none" if self.objective is None else f"{self.objective:.6g}"
        return (
            f"{self.declared.title}: {self.status}, objective {value}, {self.result.backend}, "
            f"{self.result.seconds:.2f} s"
        )


class ConvexModel(Held[ConvexProgram]):
    """A convex program, as `Model.slot` returns it.

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

    @property
    def cvxpy(self) -> cp.Problem:
        """The CVXPY problem: read it, or make one of your own from its parts."""
        return self.program.cvxpy

    def set(self, *given: object, **values: object) -> None:
        """Set the Parameters, as the family's program names them."""
        self.program.set(*given, **values)

    def solve(
        self, options: SolveOptions | Keywords | None = None, **option_keywords: object
    ) -> ConvexModelResult:
        """Solve at the Parameters' present values, through the stated chain of solvers."""
        chosen = SolveOptions.of(options, **option_keywords)
        # with many Parameters CVXPY takes far longer to compile once than for these values alone
        found = solve_convex(self.program.problem, options=chosen, ignore_dpp=True)
        variables = self.program.problem.variables() if found.has_point else []
        point = {each.id: np.array(each.value, dtype=float) for each in variables}
        return ConvexModelResult(self.program, found, point)
