"""Programs for HiGHS that are put together entry by entry, and what is read of their points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from threading import Event

import highspy
import numpy as np
import scipy.sparse as sp

from hindsched.arrays import Floats
from hindsched.solvers.door.stop import Stop
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
    """Columns, then rows, of a program that maximises; `load` hands it to HiGHS."""

    def __init__(self) -> None:
        self.value: list[float] = []
        self.most: list[float] = []
        self.whole: list[bool] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._entries: list[float] = []

    def column(self, value: float, most: float, *, whole: bool = False) -> int:
        """Add a column between 0 and `most`; return its number."""
        self.value.append(value)
        self.most.append(most)
        self.whole.append(whole)
        return len(self.value) - 1

    def row(self, terms: Terms, low: float, high: float) -> int:
        """Add a row; return its number."""
        for column, entry in terms:
            self._rows.append(len(self.low))
            self._columns.append(column)
            self._entries.append(entry)
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def load(self, interrupted: Event, **options: object) -> LoadedProgram:
        """Give the program to a new solver, which ends where `interrupted` is set."""
        shape = (len(self.low), len(self.value))
        matrix = sp.csc_matrix((self._entries, (self._rows, self._columns)), shape=shape)
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = shape
        program.col_cost_ = -np.array(self.value)
        program.col_lower_ = np.zeros(shape[1])
        program.col_upper_ = np.array(self.most, dtype=float)
        program.row_lower_ = np.array(self.low, dtype=float)
        program.row_upper_ = np.array(self.high, dtype=float)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = matrix.indptr
        program.a_matrix_.index_ = matrix.indices
        program.a_matrix_.value_ = matrix.data
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        if any(self.whole):
            program.integrality_ = [kinds[whole] for whole in self.whole]
        return LoadedProgram(program, interrupted, options)


class LoadedProgram:
    """A program in HiGHS, whose solves end by the package's own clock.

    Parameters
    ----------
    program : HighsLp
        The program; it is minimised.
    interrupted : Event
        Ends a solve.
    options : mapping
        Options of HiGHS.
    """

    def __init__(
        self, program: highspy.HighsLp, interrupted: Event, options: dict[str, object]
    ) -> None:
        self.highs = highspy.Highs()
        self._stop = Stop(interrupted)
        for name, value in {"output_flag": False, "threads": 1, **options}.items():
            self.highs.setOptionValue(name, value)
        self._most_nodes: int = self.highs.getOptionValue("mip_max_nodes")[1]
        self.highs.passModel(program)
        self._stop.listen(self.highs)

    def listen_to(self, interrupted: Event) -> None:
        """End further solves where another event is set."""
        self._stop.listen_to(interrupted)

    def solve(self, seconds: float, enough: tuple[float, float] | None = None) -> bool:
        """Solve for at most so many seconds, or nodes; whether there is a feasible point.

        Also until enough is known: see `Stop.enough`.
        """
        counted = is_counted()
        self._stop.enough = enough
        self._stop.after(seconds)
        units = max(1, units_of(seconds)) if counted and seconds < math.inf else highspy.kHighsIInf
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

    @property
    def is_infeasible(self) -> bool:
        """Whether the last solve found that nothing is feasible."""
        return bool(self.highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible)

    @property
    def nodes(self) -> int:
        """Nodes of the last solve."""
        return max(0, int(self.highs.getInfo().mip_node_count))

    @property
    def objective(self) -> float:
        """Objective of the minimised program."""
        return float(self.highs.getInfo().objective_function_value)

    def values(self) -> Floats:
        """Values of the columns."""
        return np.array(self.highs.getSolution().col_value)

    def duals(self) -> Floats:
        """Duals of the rows of the minimised program."""
        return np.array(self.highs.getSolution().row_dual)
