"""A Pyomo model as the arrays of a linear program, a point's check against them, their scaling.

Solvers get the arrays; a point comes back and is believed only after `LinearProgram.residual`,
computed here from the same arrays and independent of any solver's status, is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray
from pyomo.common import errors
from pyomo.core.base.block import TraversalStrategy
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler
from scipy.sparse import csc_array, diags_array

from hindsched.arrays import Bools, Floats
from hindsched.errors import SolveFailed

ROW_TOLERANCE = 1e-6
"""Violation of a row or bound that is rounding, relative to the larger of 1 and the right side."""
INTEGER_TOLERANCE = 1e-5
"""Distance from the nearest integer within which an integer variable is rounded to it."""


class TriviallyInfeasibleError(Exception):
    """A constraint without free variables, or a variable's own bounds, cannot hold."""


@dataclass
class LinearProgram:
    """``min cost.x + offset`` over ``row_lower <= A x <= row_upper`` and bounds on x."""

    cost: Floats  # negated if the model maximises
    offset: float
    matrix: sp.csc_array  # A, (num_rows, num_columns); a range constraint is two rows
    row_lower: Floats  # infinite where there is none
    row_upper: Floats
    lower: Floats
    upper: Floats
    integer: Bools
    columns: Sequence[Any]  # the Pyomo variable of each
    rows: Sequence[Any]  # the Pyomo constraint of each
    idle: list[Any]  # free variables that occur nowhere
    objective: Any  # the Pyomo objective, or None
    sign: int  # 1 or, if the model maximises, -1: model objective = sign x minimised one

    @cached_property
    def is_mixed_integer(self) -> bool:
        """Whether some column is integer."""
        return bool(self.integer.any())

    def residual(self, point: Floats) -> tuple[float, str]:
        """Worst violation of rows, bounds and integrality in units of its tolerance, and where.

        At most 1 if the point is feasible; infinite if it is not finite.
        """
        if not np.all(np.isfinite(point)):
            return np.inf, "a value that is not finite"
        violations = [(0.0, "")]
        if self.columns:
            excess = np.maximum(self.lower - point, point - self.upper)
            if excess.max() > 0:
                scale = ROW_TOLERANCE * np.maximum(1.0, np.abs(point))
                violations.append(_worst_violation(excess / scale, self.columns))
            if self.is_mixed_integer:
                off = np.abs(point - np.rint(point)) * self.integer / INTEGER_TOLERANCE
                violations.append(_worst_violation(off, self.columns))
        if self.rows:
            indices = self.matrix.indices
            parts = self.matrix.data * point.repeat(np.diff(self.matrix.indptr))
            use = np.bincount(indices, parts, len(self.rows))
            below, above = self.row_lower - use, use - self.row_upper
            if max(below.max(), above.max()) > 0:
                rounding = 1e-9 * np.bincount(indices, np.abs(parts), len(self.rows))
                below = (below - rounding) / _row_scale(self.row_lower)
                above = (above - rounding) / _row_scale(self.row_upper)
                violations.append(_worst_violation(np.maximum(below, above), self.rows))
        return max(violations, key=lambda pair: pair[0])

    def rounded(self, point: Floats) -> Floats:
        """The point with integers rounded where they are close, and clipped into the bounds."""
        clean = np.array(point, dtype=float)
        if self.is_mixed_integer:
            nearest = np.rint(clean)
            close = self.integer & (np.abs(clean - nearest) <= INTEGER_TOLERANCE)
            clean[close] = nearest[close]
        clipped = np.minimum(np.maximum(clean, self.lower), self.upper)
        if np.array_equal(clipped, clean):
            return clean
        slack = ROW_TOLERANCE * np.maximum(1.0, np.abs(clean))
        return np.where(np.abs(clipped - clean) <= slack, clipped, clean)

    def load(self, point: Floats) -> None:
        """Set the model's variables; a variable that occurs nowhere gets its value nearest 0."""
        values, integer = point.tolist(), self.integer.tolist()
        for variable, value, whole in zip(self.columns, values, integer, strict=True):
            variable.set_value(round(value) if whole else value, skip_validation=True)
        for variable in self.idle:
            variable.set_value(_nearest_zero(variable), skip_validation=True)

    def clear(self) -> None:
        """Leave no value in the free variables, so that nobody reads a stale one."""
        for variable in (*self.columns, *self.idle):
            if not variable.fixed:  # fixed since the program was compiled
                variable.set_value(None, skip_validation=True)

    def start_values(self) -> tuple[NDArray[np.int32], Floats]:
        """Columns that have a value in the model, and the values."""
        known = [(i, v.value) for i, v in enumerate(self.columns) if v.value is not None]
        index = np.array([i for i, _ in known], dtype=np.int32)
        return index, np.array([value for _, value in known], dtype=float)


def compile_program(model: pyo.ConcreteModel) -> LinearProgram:
    """Compile a Pyomo model; fixed variables and Params enter with their present values."""
    form = _standard_form(model)
    if len(form.objectives) > 1:
        raise SolveFailed(
            f"model {model.name} has {len(form.objectives)} objectives; one is solved"
        )
    num_columns = len(form.columns)
    kind = np.array([row.bound_type for row in form.rows], dtype=int)
    sides = np.asarray(form.rhs, dtype=float)
    objective = form.objectives[0] if form.objectives else None
    cost = form.c.toarray()[0] if form.objectives else np.zeros(num_columns)
    active = {id(variable) for variable in form.columns}
    program = LinearProgram(
        cost=np.asarray(cost, dtype=float),
        offset=float(form.c_offset[0]) if form.objectives else 0.0,
        matrix=sp.csc_array(form.A),
        row_lower=np.where(kind <= 0, sides, -np.inf),
        row_upper=np.where(kind >= 0, sides, np.inf),
        lower=np.array([-np.inf if v.lb is None else v.lb for v in form.columns], dtype=float),
        upper=np.array([np.inf if v.ub is None else v.ub for v in form.columns], dtype=float),
        integer=np.array([not v.is_continuous() for v in form.columns], dtype=bool),
        columns=list(form.columns),
        rows=[row.constraint for row in form.rows],
        idle=[
            variable
            for variable in model.component_data_objects(pyo.Var, active=True)
            if not variable.fixed and id(variable) not in active
        ],
        objective=objective,
        sign=-1 if objective is not None and objective.sense == pyo.maximize else 1,
    )
    for variable in program.idle:
        _nearest_zero(variable)
    return program


def _standard_form(model: pyo.ConcreteModel) -> Any:
    compiler = LinearStandardFormCompiler()
    order: dict[str, Any] = {}
    variables = list(model.component_data_objects(pyo.Var, active=True))
    if all(variable.is_continuous() for variable in variables):
        # Job by job, and what links the jobs last: which of several optimal vertices simplex finds,
        # and in how many steps, depends on the order.
        blocks_first = TraversalStrategy.PostfixDFS
        rows = model.component_data_objects(pyo.Constraint, active=True, descent_order=blocks_first)
        order = {"row_order": list(rows), "column_order": variables}
    try:
        return compiler.write(model, mixed_form=True, set_sense=pyo.minimize, **order)
    except errors.InfeasibleConstraintException:
        pass
    except (errors.InvalidConstraintError, errors.InvalidExpressionError, ValueError) as error:
        raise SolveFailed(f"model {model.name} is no linear program: {error}") from None
    # A row whose variables are all fixed may be off by rounding, which the compiler calls
    # infeasible: such rows are left out if they hold within the tolerance.
    constant = [
        constraint
        for constraint in model.component_data_objects(pyo.Constraint, active=True)
        if constraint.body is None or pyo.is_fixed(constraint.body)
    ]
    for constraint in constant:
        body = pyo.value(constraint.body)
        for side, over in ((constraint.ub, 1), (constraint.lb, -1)):
            if side is not None and over * (body - side) > ROW_TOLERANCE * max(1.0, abs(side)):
                raise TriviallyInfeasibleError(constraint.name)
    try:
        for constraint in constant:
            constraint.deactivate()
        return compiler.write(model, mixed_form=True, set_sense=pyo.minimize, **order)
    except errors.InfeasibleConstraintException as error:
        raise TriviallyInfeasibleError(str(error)) from None
    finally:
        for constraint in constant:
            constraint.activate()


def _nearest_zero(variable: Any) -> float:
    lower = -np.inf if variable.lb is None else variable.lb
    upper = np.inf if variable.ub is None else variable.ub
    if not variable.is_continuous():
        lower, upper = np.ceil(lower - INTEGER_TOLERANCE), np.floor(upper + INTEGER_TOLERANCE)
    if lower > upper:
        raise TriviallyInfeasibleError(variable.name)
    value = float(min(max(0.0, lower), upper))
    return value if variable.is_continuous() else round(value)


def _row_scale(side: Floats) -> Floats:
    """Tolerances of rows by their sides; finite also where there is none."""
    scale: Floats = ROW_TOLERANCE * np.clip(np.abs(side), 1.0, 1e300)
    return scale


def _worst_violation(excess: Floats, components: Sequence[Any]) -> tuple[float, str]:
    index = int(np.argmax(excess))
    worst = float(excess[index])
    return worst, components[index].name if worst > 1 else ""


MODERATE = (2.0**-20, 2.0**20)  # matrices whose coefficients lie between these stay
MODERATE_COSTS = (2.0**-4, 2.0**20)
"""Objectives whose largest coefficient lies between these stay: duals are right to 1e-7."""
LARGEST_COST = 2.0**14  # about what an objective's largest coefficient is scaled to
ROUNDS = 3
"""How often columns and rows are scaled in turn; a row with integer columns by these alone."""


@dataclass(frozen=True)
class Scaling:
    """Powers of two that bring a program's numbers near 1 before a solver with absolute tolerances.

    Where money is of the order of 5e12 HiGHS called a point optimal and stated a bound beyond a
    better one. A power of two changes no digit of a coefficient, bound or dual. Integer columns are
    never scaled, and programs whose numbers are moderate stay as they are.
    """

    rows: Floats  # factor of each row
    columns: Floats  # factor of each column's coefficients: its value is divided by it
    objective: float  # factor of the objective

    @classmethod
    def of(cls, program: LinearProgram) -> Scaling:
        """Scaling of a program: 1 throughout if its numbers are moderate."""
        rows, columns = np.ones(len(program.rows)), np.ones(len(program.columns))
        sizes = np.abs(program.matrix.data[program.matrix.data != 0])
        if sizes.size and not MODERATE[0] <= sizes.min() <= sizes.max() <= MODERATE[1]:
            matrix = abs(csc_array(program.matrix))
            sizes = _largest(matrix[:, program.integer], axis=1)
            free, open_rows = ~program.integer, sizes == 0
            rows = np.where(open_rows, 0.0, to_one(sizes))  # columns go by the others first
            for _ in range(ROUNDS):
                columns[free] = to_one(_largest(diags_array(rows) @ matrix[:, free], axis=0))
                sizes = _largest(matrix @ diags_array(columns), axis=1)
                rows = np.where(open_rows, to_one(sizes), rows)
        return cls(rows, columns, objective_factor(columns * program.cost))


def objective_factor(cost: Floats) -> float:
    """Power of two by which an objective is multiplied for a solver: 1 if it is moderate."""
    largest = np.abs(cost).max(initial=0.0)
    if largest == 0 or MODERATE_COSTS[0] <= largest <= MODERATE_COSTS[1]:
        return 1.0
    return LARGEST_COST * float(to_one(largest))


def _largest(matrix: csc_array, axis: int) -> Floats:
    """Largest coefficient of every row (axis 1) or column (axis 0); 0 for an empty one."""
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[1 - axis])
    coefficients: Floats = matrix.max(axis=axis).toarray().ravel()
    return coefficients


def to_one(sizes: Floats) -> Floats:
    """Powers of two that bring sizes into [1/2, 1); 1 for a size of 0."""
    powers: Floats = np.where(sizes > 0, np.ldexp(1.0, -np.frexp(sizes)[1]), 1.0)
    return powers
