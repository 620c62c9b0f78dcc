"""A program that is solved again and again: compiled once, and only what changed is touched."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.mutable import MutableMap, NotAffineError
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import ProgramResult, solve_compiled
from hindsched.solvers.door.standard_form import LinearProgram, compile_program
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import now


class PersistentProgram:
    """A model compiled once, re-solved hot after its mutable Params have changed.

    Objective coefficients, right sides and variable bounds may depend on mutable Params and on
    variables that are fixed; the matrix must not. A map from each Param and bound to its places in
    the solver is read off once, so that `update` touches only what changed. HiGHS keeps its basis
    between solves. A change without `update` is noticed, and the solve refused.

    Parameters
    ----------
    model : pyo.ConcreteModel
        The model.
    options : SolveOptions, optional
        As for `solve_program`; the time limit holds for each solve.

    Raises
    ------
    InputError
        As for `solve_program`; also if the solver is not HiGHS, the only one kept hot.
    TriviallyInfeasibleError
        If a constraint without free variables does not hold.
    """

    def __init__(self, model: pyo.ConcreteModel, options: SolveOptions | None = None) -> None:
        self.model = model
        self.options = SolveOptions() if options is None else options
        if self.options.solver != "highs":
            raise InputError("solver", self.options.solver, "must be highs for hot re-solves")
        self.program = compile_program(model)
        self._highs = HighsProgram(self.program, self.options)
        self._by_model = True
        self._map = _map_of(self.program)

    def update(self) -> None:
        """Bring what has changed in the model's Params, bounds and fixed variables to the solver.

        Raises
        ------
        SolveFailed
            If the change reaches the matrix: rows, columns or coefficients differ.
        """
        if self._map is None or not self._by_model or self._map.structure_changed():
            self._compile_again()
        else:
            self._highs.apply(self._map.changes())

    def _compile_again(self) -> None:
        fresh = compile_program(self.model)
        old = self.program
        same = (
            fresh.matrix.shape == old.matrix.shape
            and len(fresh.columns) == len(old.columns)
            and all(a is b for a, b in zip(fresh.columns, old.columns, strict=True))
            and np.array_equal(fresh.matrix.indptr, old.matrix.indptr)
            and np.array_equal(fresh.matrix.indices, old.matrix.indices)
            and np.array_equal(fresh.matrix.data, old.matrix.data)
        )
        if not same:
            raise SolveFailed(f"a Param of {self.model.name} changed the matrix; build it anew")
        self._highs.set_cost(fresh.cost, fresh.offset)
        self._by_model = True
        rows = np.arange(len(fresh.rows))
        self._highs.set_row_bounds(rows, fresh.row_lower, fresh.row_upper)
        self._highs.set_bounds(fresh.lower, fresh.upper)
        self._map = _map_of(self.program)

    def set_cost(self, cost: Floats, offset: float) -> None:
        """Replace the minimised objective by arrays, the model's own aside until `update`.

        Parameters
        ----------
        cost : ndarray, shape (num_columns,)
            In the order of ``program.columns``; negated if the model maximises.
        offset : float
            Constant, likewise.
        """
        self._highs.set_cost(np.asarray(cost, dtype=float), offset)
        self._by_model = False

    def set_sides(self, lower: Floats, upper: Floats) -> None:
        """Replace the sides of all rows by arrays, the model's own aside until `update`."""
        self._highs.set_row_bounds(np.arange(len(lower)), lower, upper)
        self._by_model = False

    def solve(
        self,
        *,
        time_limit: float | None = None,
        start: bool = False,
        want_duals: bool = False,
        on_progress: Progress | None = None,
    ) -> ProgramResult:
        """Solve again; what stands in the model's variables afterwards is as `solve_program`."""
        options = self.options if time_limit is None else self.options.with_time(time_limit)
        started = now()
        if self._by_model and self._map is not None and self._map.is_stale():
            self.program.clear()
            details = {"refused": "the model has changed since update"}
            return ProgramResult(Status.FAILED, StoppedBy.ERROR, details=details)
        return solve_compiled(
            self.program, self._highs, options, started, start, want_duals, on_progress,
            by_model=self._by_model and self._map is None,
        )  # fmt: skip


def _map_of(program: LinearProgram) -> MutableMap | None:
    """Where the Params enter; None where they do so otherwise than linearly."""
    try:
        return MutableMap(program)
    except NotAffineError:
        return None
