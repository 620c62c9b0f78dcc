"""Powers of two that bring a program's numbers near 1 before a solver with absolute tolerances.

HiGHS' tolerances are absolute: where money is of the order of 5e12 it called a point optimal and
stated a bound beyond a better one. An objective goes further up, or what is a millionth of its
largest coefficient would still be lost in them. A power of two changes no digit of a coefficient,
bound or dual. Integer columns are never scaled, and programs whose numbers are moderate are left as
they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, diags_array

from hindsched.arrays import Floats
from hindsched.solvers.door.standard_form import ByColumns, LinearProgram

MODERATE = (2.0**-20, 2.0**20)
"""Matrices whose coefficients lie between these stay."""
MODERATE_COSTS = (2.0**-4, 2.0**20)
"""Objectives whose largest coefficient lies between these stay: duals are right to 1e-7."""
LARGEST_COST = 2.0**14
"""About what an objective's largest coefficient is scaled to."""
ROUNDS = 3
"""How often columns and rows are scaled in turn; a row with integer columns by these alone."""


@dataclass(frozen=True)
class Scaling:
    """A program's rows, columns and objective are multiplied by these powers of two.

    Parameters
    ----------
    rows, columns : ndarray
        Factor of each row and of each column's coefficients: a column's value is divided by it.
    objective : float
        Factor of the objective.
    """

    rows: Floats
    columns: Floats
    objective: float

    @classmethod
    def of(cls, program: LinearProgram) -> Scaling:
        """Scaling of a program: 1 throughout if its numbers are moderate."""
        rows, columns = np.ones(len(program.rows)), np.ones(len(program.columns))
        sizes = np.abs(program.entries.data)
        if sizes.any() and not _is_moderate(sizes[sizes > 0]):
            matrix = abs(csc_array(program.matrix))
            rows = _to_one(_largest(matrix[:, program.integer], axis=1))
            free, open_rows = ~program.integer, matrix[:, program.integer].sum(axis=1) == 0
            for _ in range(ROUNDS):
                columns[free] = _to_one(_largest(diags_array(rows) @ matrix[:, free], axis=0))
                sizes = _largest(matrix @ diags_array(columns), axis=1)
                rows = np.where(open_rows, _to_one(sizes), rows)
        return cls(rows, columns, objective_factor(columns * program.cost))

    def objective_for(self, cost: Floats) -> float:
        """Factor of another objective of the same columns."""
        return objective_factor(self.columns * cost)

    def matrix(self, matrix: csc_array) -> csc_array:
        """Coefficients of the rows and columns."""
        return csc_array(diags_array(self.rows) @ matrix @ diags_array(self.columns))

    @cached_property
    def is_one(self) -> bool:
        """Whether rows and columns stay as they are."""
        return bool((self.rows == 1).all() and (self.columns == 1).all())

    def entries(self, program: LinearProgram) -> ByColumns:
        """The program's own coefficients, scaled."""
        if self.is_one:
            return program.entries
        return ByColumns.of(self.matrix(program.matrix))

    def costs(self, cost: Floats, columns: Any = slice(None)) -> Floats:
        """Coefficients of the objective, of some columns."""
        scaled: Floats = cost * self.columns[columns] * self.objective
        return scaled

    def row_duals(self, duals: Any) -> Floats:
        """Duals of the rows as they were, from those of the scaled program."""
        found: Floats = np.asarray(duals, dtype=float) * self.rows / self.objective
        return found

    def column_duals(self, duals: Any) -> Floats:
        """Reduced costs of the columns as they were, from those of the scaled program."""
        found: Floats = np.asarray(duals, dtype=float) / self.columns / self.objective
        return found


def objective_factor(cost: Floats) -> float:
    """Power of two by which an objective is multiplied for a solver: 1 if it is moderate."""
    largest = np.abs(cost).max(initial=0.0)
    if largest == 0 or MODERATE_COSTS[0] <= largest <= MODERATE_COSTS[1]:
        return 1.0
    return LARGEST_COST * float(_to_one(largest))


def _is_moderate(sizes: Floats) -> bool:
    return bool(sizes.min() >= MODERATE[0] and sizes.max() <= MODERATE[1])


def _largest(matrix: csc_array, axis: int) -> Floats:
    """Largest coefficient of every row (axis 1) or column (axis 0); 0 for an empty one."""
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[1 - axis])
    found: Floats = matrix.max(axis=axis).toarray().ravel()
    return found


def _to_one(sizes: Floats) -> Floats:
    """Powers of two that bring sizes into [1/2, 1); 1 for a size of 0."""
    found: Floats = np.where(sizes > 0, np.ldexp(1.0, -np.frexp(sizes)[1]), 1.0)
    return found
