"""Programs for HiGHS that are put together entry by entry, and solved again after changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from threading import Event

import highspy
import numpy as np
import scipy.sparse as sp

from hindsched.arrays import Floats
from hindsched.solvers.door.highs import Stop
from hindsched.solvers.door.work import is_counted, units_of

GAVE_UP = (
    highspy.HighsModelStatus.kNotset,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kUnknown,
)
"""How HiGHS ends where the basis that it began from led it astray; from none it does better."""
Terms = Iterable[tuple[int, float]]
"""Columns with their coefficients."""


class SparseProgram:
    """A program that maximises: first columns and rows, then `load`, then `solve`.

    Attributes
    ----------
    highs : Highs
        The loaded program, which is minimised.
    """

    def __init__(self) -> None:
        self.most: list[float] = []
        self._value: list[float] = []
        self._whole: list[bool] = []
        self._sides: list[tuple[float, float]] = []
        self._entries: list[tuple[int, int, float]] = []
        self.highs = highspy.Highs()

    def column(self, value: float, most: float, *, whole: bool = False) -> int:
        """Add a column between 0 and `most`; return its number."""
        self._value.append(value)
        self.most.append(most)
        self._whole.append(whole)
        return len(self._value) - 1

    def row(self, terms: Terms, low: float, high: float) -> int:
        """Add a row; return its number."""
        number = len(self._sides)
        self._entries += [(number, column, entry) for column, entry in terms]
        self._sides.append((low, high))
        return number

    def load(self, interrupted: Event, **options: object) -> None:
        """Give the program to HiGHS, which ends where `interrupted` is set."""
        rows, columns, entries = zip(*self._entries, strict=True) if self._entries else ((),) * 3
        shape = len(self._sides), len(self._value)
        matrix = sp.csc_matrix((entries, (rows, columns)), shape=shape)
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = shape
        program.col_cost_ = -np.array(self._value)
        program.col_lower_ = np.zeros(shape[1])
        program.col_upper_ = np.array(self.most, dtype=float)
        program.row_lower_ = np.array([low for low, _ in self._sides], dtype=float)
        program.row_upper_ = np.array([high for _, high in self._sides], dtype=float)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = matrix.indptr
        program.a_matrix_.index_ = matrix.indices
        program.a_matrix_.value_ = matrix.data
        if any(self._whole):
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            program.integrality_ = [kinds[whole] for whole in self._whole]
        for name, value in {"output_flag": False, "threads": 1, **options}.items():
            self.highs.setOptionValue(name, value)
        self._most_nodes: int = self.highs.getOptionValue("mip_max_nodes")[1]
        self.highs.passModel(program)
        self._stop = Stop(interrupted)
        self._stop.listen(self.highs)

    def solve(self, seconds: float) -> bool:
        """Solve for at most so many seconds, or nodes; whether there is a feasible point."""
        self._stop.after(seconds)
        counted = is_counted() and seconds < math.inf
        units = max(1, units_of(seconds)) if counted else highspy.kHighsIInf
        self.highs.setOptionValue("mip_max_nodes", min(self._most_nodes, units))
        self.highs.run()
        if self.highs.getModelStatus() in GAVE_UP:
            self.highs.clearSolver()
            self.highs.run()
        status = self.highs.getInfo().primal_solution_status
        return bool(status == highspy.SolutionStatus.kSolutionStatusFeasible)

    @property
    def is_optimal(self) -> bool:
        """Whether the last solve ended with an optimum."""
        return bool(self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def values(self) -> Floats:
        """Values of the columns."""
        return np.array(self.highs.getSolution().col_value)

    def duals(self) -> Floats:
        """Duals of the rows of the minimised program."""
        return np.array(self.highs.getSolution().row_dual)
