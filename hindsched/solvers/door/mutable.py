"""Where each mutable Param, variable bound and right side of a model enters the solver's arrays.

Objective coefficients and right sides are affine in the Params of every program here, so that

    cost = cost_0 + D p,   offset = offset_0 + d . p,   sides = sides_0 + R p

with sparse D and R, read off once. A change of some Params then reaches exactly the entries that
contain them, and the model is not read again. What is not of this form is told, and compiled anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.core.expr.visitor import identify_mutable_parameters, replace_expressions
from pyomo.repn import generate_standard_repn

from hindsched.arrays import Floats, Ints
from hindsched.solvers.door.standard_form import LinearProgram


class NotAffineError(Exception):
    """A Param enters otherwise than linearly, or in a coefficient of the matrix."""


@dataclass(frozen=True)
class Changes:
    """Entries of the arrays that changed, with their new values.

    Parameters
    ----------
    columns, cost : ndarray
        Positions and objective coefficients, in the minimised form.
    offset : float
        Constant of the minimised form.
    rows, row_lower, row_upper : ndarray
        Positions and sides.
    bounded, lower, upper : ndarray
        Positions and bounds of columns.
    """

    columns: Ints
    cost: Floats
    offset: float
    rows: Ints
    row_lower: Floats
    row_upper: Floats
    bounded: Ints
    lower: Floats
    upper: Floats


class MutableMap:
    """The map of a compiled model.

    Parameters
    ----------
    program : LinearProgram
        The compiled model; its arrays hold the Params' present values.

    Raises
    ------
    NotAffineError
        If a Param enters otherwise.
    """

    def __init__(self, program: LinearProgram) -> None:
        self.program = program
        self._position: dict[int, int] = {}
        self.params: list[Any] = []
        self._column = {id(variable): i for i, variable in enumerate(program.columns)}
        self._stand_in = pyo.ConcreteModel()
        self._stand_in.p = pyo.Var(pyo.Any, dense=False)
        self._read_objective()
        self._read_rows()
        self._values = self._now()
        self._bounds = [(v._lb, v._ub) for v in program.columns]
        self._expressions = [constraint.expr for constraint in program.rows]
        bounds = [_is_mutable(low) or _is_mutable(high) for low, high in self._bounds]
        self._by_expression = np.flatnonzero(bounds).tolist()
        self._fixed = _fixed_variables(program)
        self._fixed_values = [v.value for v in self._fixed]

    def _now(self) -> Floats:
        return np.array([param._value for param in self.params], dtype=float)

    def _param(self, param: Any) -> int:
        position = self._position.get(id(param))
        if position is None:
            position = self._position[id(param)] = len(self.params)
            self.params.append(param)
            self._stand_in.p.add(position)
        return position

    def _split(
        self, expression: Any
    ) -> tuple[float, dict[int, float], list[tuple[int, int, float]]]:
        """Constant, coefficients of Params, and (column, Param, coefficient) of the products."""
        params = list(identify_mutable_parameters(expression))
        if not params:
            raise ValueError("an expression without Params")
        own = {id(self._stand_in.p[self._param(param)]): self._param(param) for param in params}
        substitutes = {id(param): self._stand_in.p[self._param(param)] for param in params}
        read = generate_standard_repn(
            replace_expressions(expression, substitutes), quadratic=True, compute_values=True
        )
        if read.nonlinear_expr is not None:
            raise NotAffineError
        alone = {
            own[id(variable)]: float(coefficient)
            for variable, coefficient in zip(read.linear_vars, read.linear_coefs, strict=True)
            if id(variable) in own
        }
        products = []
        for pair, coefficient in zip(read.quadratic_vars, read.quadratic_coefs, strict=True):
            one, other = pair if id(pair[0]) in own else pair[::-1]
            if id(one) not in own or id(other) not in self._column:
                raise NotAffineError
            products.append((self._column[id(other)], own[id(one)], float(coefficient)))
        return float(read.constant), alone, products

    def _read_objective(self) -> None:
        program = self.program
        alone: dict[int, float] = {}
        products: list[tuple[int, int, float]] = []
        expression = None if program.objective is None else program.objective.expr
        if _is_mutable(expression):
            _, alone, products = self._split(expression)
        size = len(program.columns)
        sign = program.sign
        self._cost_by = self._matrix([(c, p, sign * value) for c, p, value in products], size)
        self._offset_by = np.zeros(len(self.params))
        for position, coefficient in alone.items():
            self._offset_by[position] = sign * coefficient

    def _read_rows(self) -> None:
        """Right sides: upper (or lower) bound of the constraint less the body's constant."""
        entries: dict[str, list[tuple[int, int, float]]] = {"lower": [], "upper": []}
        for i, constraint in enumerate(self.program.rows):
            if not _is_mutable(constraint.expr):
                continue
            low, body, high = constraint.to_bounded_expression()
            for side, bound, finite in (
                ("lower", low, np.isfinite(self.program.row_lower[i])),
                ("upper", high, np.isfinite(self.program.row_upper[i])),
            ):
                if not finite:
                    continue
                _, alone, products = self._split(bound - body + 0.0)
                if products:
                    raise NotAffineError
                entries[side] += [(i, p, coefficient) for p, coefficient in alone.items()]
        size = len(self.program.rows)
        self._lower_by = self._matrix(entries["lower"], size)
        self._upper_by = self._matrix(entries["upper"], size)
        self._cost_by = _widened(self._cost_by, len(self.params))
        self._offset_by = np.append(
            self._offset_by, np.zeros(len(self.params) - self._offset_by.size)
        )

    def _matrix(self, entries: Sequence[tuple[int, int, float]], size: int) -> sp.csc_array:
        """Matrix by Param from (row, Param, coefficient)."""
        rows, columns = [item[0] for item in entries], [item[1] for item in entries]
        data = np.array([item[2] for item in entries], dtype=float)
        return sp.csc_array((data, (rows, columns)), shape=(size, len(self.params)))

    def is_stale(self) -> bool:
        """Whether a Param, a bound or a fixed variable has changed since `changes` was called."""
        if not np.array_equal(self._now(), self._values) or self.structure_changed():
            return True
        return bool(self._changed_bounds(quick=True))

    def structure_changed(self) -> bool:
        """Whether a variable was fixed or freed, or a constraint's expression replaced."""
        return (
            any(v._fixed for v in self.program.columns)
            or not all(v._fixed for v in self._fixed)
            or [v.value for v in self._fixed] != self._fixed_values
            or any(
                constraint.expr is not expression
                for constraint, expression in zip(self.program.rows, self._expressions, strict=True)
            )
        )

    def _changed_bounds(self, quick: bool = False) -> list[int]:
        found = [
            i
            for i, (variable, (low, high)) in enumerate(
                zip(self.program.columns, self._bounds, strict=True)
            )
            if variable._lb is not low or variable._ub is not high
        ]
        if found and quick:
            return found
        program = self.program
        for i in self._by_expression:
            low, high = _bounds_of(program.columns[i])
            if (low, high) != (program.lower[i], program.upper[i]):
                found.append(i)
        return sorted(set(found))

    def changes(self) -> Changes:
        """What has changed since the last call, as entries of the solver's arrays."""
        program = self.program
        now = self._now()
        step = now - self._values
        columns, cost = _moved(self._cost_by, step, program.cost)
        offset = program.offset + float(self._offset_by @ step)
        low_rows, low = _moved(self._lower_by, step, program.row_lower)
        high_rows, high = _moved(self._upper_by, step, program.row_upper)
        rows = np.array(sorted({*low_rows.tolist(), *high_rows.tolist()}), dtype=np.int64)
        row_lower, row_upper = program.row_lower[rows], program.row_upper[rows]
        row_lower[np.searchsorted(rows, low_rows)] = low
        row_upper[np.searchsorted(rows, high_rows)] = high
        bounded = self._changed_bounds()
        for i in bounded:
            variable = program.columns[i]
            self._bounds[i] = (variable._lb, variable._ub)
        pairs = [_bounds_of(program.columns[i]) for i in bounded]
        self._values = now
        return Changes(
            columns, cost, offset, rows, row_lower, row_upper,
            np.array(bounded, dtype=np.int64),
            np.array([low for low, _ in pairs], dtype=float),
            np.array([high for _, high in pairs], dtype=float),
        )  # fmt: skip


def _is_mutable(expression: Any) -> bool:
    if expression is None or type(expression) in (int, float):
        return False
    if not hasattr(expression, "is_expression_type"):
        return False
    return next(iter(identify_mutable_parameters(expression)), None) is not None


def _bounds_of(variable: Any) -> tuple[float, float]:
    low, high = variable.bounds
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)


def _fixed_variables(program: LinearProgram) -> list[Any]:
    """Fixed variables of the model that the program's components belong to."""
    component = next(iter([*program.rows, *program.columns]), None)
    if component is None:
        return []
    variables = component.model().component_data_objects(pyo.Var, active=True)
    return [variable for variable in variables if variable.fixed]


def _widened(matrix: sp.csc_array, columns: int) -> sp.csc_array:
    return sp.csc_array(
        sp.hstack([matrix, sp.csc_array((matrix.shape[0], columns - matrix.shape[1]))])
    )


def _moved(matrix: sp.csc_array, step: Floats, values: Floats) -> tuple[Ints, Floats]:
    """Entries of ``values + matrix step`` that differ, and what they become."""
    difference = matrix @ step
    touched = np.flatnonzero(difference)
    return touched, values[touched] + difference[touched]
