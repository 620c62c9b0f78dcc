"""Small linear programs straight to HiGHS: where stating one takes longer than solving it."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from scipy.sparse import csc_array

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed

TOLERANCE = 1e-6
"""How far a row may be violated, relative to the larger of 1 and its sides."""


@dataclass(frozen=True)
class Inequalities:
    """Minimise ``cost x`` subject to ``matrix x <= right`` and ``x >= lower``.

    Parameters
    ----------
    cost, lower : array (columns,)
        Of the variables; a lower bound may be ``-inf``.
    matrix : array (rows, columns)
        The rows, dense.
    right : array (rows,)
        Their right-hand sides.
    """

    cost: Floats
    matrix: Floats
    right: Floats
    lower: Floats

    def solve(self) -> Floats:
        """The optimum that HiGHS finds by its defaults, checked.

        Raises
        ------
        SolveFailed
            If there is none, or the point breaks a row.
        """
        columns = csc_array(self.matrix)
        model = highspy.HighsModel()
        program = model.lp_
        program.num_row_, program.num_col_ = self.matrix.shape
        program.col_cost_ = self.cost
        program.col_lower_ = self.lower
        program.col_upper_ = np.full(len(self.cost), highspy.kHighsInf)
        program.row_lower_ = np.full(len(self.right), -highspy.kHighsInf)
        program.row_upper_ = self.right
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = columns.indptr
        program.a_matrix_.index_ = columns.indices
        program.a_matrix_.value_ = columns.data
        solver = highspy.Highs()
        solver.setOptionValue("log_to_console", False)
        solver.passModel(model)
        solver.run()
        status = solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolveFailed(
                f"a program of shares: HiGHS says {solver.modelStatusToString(status)}"
            )
        point = np.array(solver.getSolution().col_value)
        left = self.matrix @ point
        scale = np.maximum(1.0, np.maximum(np.abs(left), np.abs(self.right)))
        off = np.max((left - self.right) / scale, initial=0.0)
        if not max(off, np.max(self.lower - point, initial=0.0)) <= TOLERANCE:
            raise SolveFailed(f"a program of shares: HiGHS' point violates a row by {off:.3g}")
        return point
