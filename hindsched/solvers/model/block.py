"""One job's block as a model that a user holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hindsched.errors import InputError
from hindsched.json_types import Keywords
from hindsched.models.base import Prices, Subproblem
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.model.face import HeldPyomo
from hindsched.solvers.model.result import ModelResult, with_point


class SubproblemModel(HeldPyomo[Subproblem]):
    """One job's best schedule at given prices, which are changed and solved for again.

    Parameters
    ----------
    program : Subproblem
        The declarative program.

    Examples
    --------
    >>> import hindsched as hs
    >>> sub = hs.model(hs.generate("oasis", jobs=2, horizon=6)).subproblem(0)
    >>> sub.solve().objective is not None
    True
    """

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left of the capacities, by row set of the family's oracle.

        Raises
        ------
        InputError
            If a row set is missing, or has too few rows or slots.
        """
        try:
            self.program.set(prices, room)
        except (KeyError, IndexError) as error:
            rule = f"must have the row sets of the family's oracle in their shapes ({error})"
            given = {name: np.shape(array) for name, array in {**(room or {}), **prices}.items()}
            raise InputError("prices", given, rule) from None

    def solve(
        self, options: SolveOptions | Keywords | None = None, **option_keywords: object
    ) -> ModelResult:
        """Solve at the present prices; `ModelResult.solution` has the job's schedule alone."""
        given = options if isinstance(options, SolveOptions) else {"gap": 1e-9, **(options or {})}
        chosen = SolveOptions.of(given, **option_keywords)
        result = with_point(self.program, solve_program(self.program.model, chosen))
        solution = self.program.extract() if result.program.has_point else None
        return replace(result, solution=solution)
