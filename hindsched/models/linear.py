"""Columns and linear expressions of the recorder: arithmetic, comparisons, sums."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints

INFINITY = float("inf")


class Algebra:
    """Arithmetic of columns and linear expressions."""

    __slots__ = ()
    __hash__ = object.__hash__

    @abstractmethod  # without ABC, whose isinstance would cost more than the arithmetic
    def linear(self) -> Linear:
        """The same as a linear expression."""

    def evaluate(self) -> Any:
        """Value at the columns' values; None if one of them has none."""
        return self.linear().evaluate()

    def __add__(self, other: Any) -> Linear:
        one, two = self.linear(), as_linear(other)
        constant = one.constant + two.constant
        columns, factors = one.columns + two.columns, one.factors + two.factors
        return Linear(columns, factors, constant, one.parts + two.parts)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Linear:
        return _difference(self, other)

    def __rsub__(self, other: Any) -> Linear:
        return -1.0 * self + other

    def __neg__(self) -> Any:
        return -1.0 * self

    def __mul__(self, factor: Any) -> Any:
        own = self.linear()
        factors, parts = [factor * a for a in own.factors], _times(factor, own.parts)
        return Linear(own.columns, factors, factor * own.constant, parts)

    def __rmul__(self, factor: Any) -> Any:
        return self * factor

    def __truediv__(self, divisor: Any) -> Any:
        return self * (1.0 / divisor)

    def __le__(self, other: Any) -> Relation:
        if isinstance(other, Algebra):
            return Relation(_difference(self, other), -INFINITY, 0.0)
        return Relation(self.linear(), -INFINITY, other)

    def __ge__(self, other: Any) -> Relation:
        if isinstance(other, Algebra):
            return Relation(_difference(self, other), 0.0, INFINITY)
        return Relation(self.linear(), other, INFINITY)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Algebra):
            return Relation(_difference(self, other), 0.0, 0.0)
        return Relation(self.linear(), other, other)


class Column(Algebra):
    """One variable: as much of Pyomo's as programs and solvers use."""

    __slots__ = ("fixed", "index", "integer", "lb", "local_name", "position", "ub", "value")
    __hash__ = object.__hash__

    def __init__(
        self, integer: bool, lb: float | None, ub: float | None, index: Any, value: Any = None
    ) -> None:
        self.integer, self.lb, self.ub, self.index, self.value = integer, lb, ub, index, value
        self.fixed = False
        self.local_name = ""
        self.position = -1

    @property
    def name(self) -> str:
        """Name with its index."""
        return self.local_name if self.index is None else f"{self.local_name}[{self.index}]"

    def linear(self) -> Linear:
        """The column as an expression."""
        return Linear([self], [1.0], 0.0)

    def __mul__(self, factor: Any) -> Term:
        return Term(self, factor)

    def fix(self, value: Any) -> None:
        """Give it a value for good."""
        self.value, self.fixed = value, True

    def setlb(self, bound: float) -> None:
        """Set the lower bound."""
        self.lb = bound

    def setub(self, bound: float) -> None:
        """Set the upper bound."""
        self.ub = bound

    def set_value(self, value: Any, skip_validation: bool = False) -> None:
        """Set the value."""
        self.value = value

    def is_continuous(self) -> bool:
        """Whether it need not be whole."""
        return not self.integer

    def items(self) -> Iterator[tuple[None, Column]]:
        """Itself, as the only element of a variable without indices."""
        yield None, self

    def values(self) -> tuple[Column]:
        """Itself alone."""
        return (self,)

    @property
    def num_columns(self) -> int:
        """1."""
        return 1

    def declare(self, name: str, first: int) -> None:
        """Take a name and a position in the model."""
        self.local_name, self.position = name, first

    @property
    def first(self) -> int:
        """Its position in the model."""
        return self.position

    @property
    def has_fixed(self) -> bool:
        """Whether it is fixed."""
        return bool(self.fixed)

    @property
    def lower(self) -> Floats:
        """Its lower bound as an array."""
        return np.array([-INFINITY if self.lb is None else self.lb], dtype=float)

    @property
    def upper(self) -> Floats:
        """Its upper bound as an array."""
        return np.array([INFINITY if self.ub is None else self.ub], dtype=float)

    def give(self, element: Ints, values: Floats) -> None:
        """Set its value, if it is among the elements."""
        for value in values.tolist():
            self.value = round(value) if self.integer else value

    def forget(self) -> None:
        """Have no value, unless it is fixed."""
        if not self.fixed:
            self.value = None

    def evaluate(self) -> Any:
        """Its value."""
        return self.value


class Term(Algebra):
    """A coefficient times a column."""

    __slots__ = ("column", "factor")
    __hash__ = object.__hash__

    def __init__(self, column: Column, factor: float) -> None:
        self.column, self.factor = column, factor

    def linear(self) -> Linear:
        """The term as an expression."""
        return Linear([self.column], [self.factor], 0.0)

    def __mul__(self, factor: Any) -> Term:
        return Term(self.column, factor * self.factor)


class Part(NamedTuple):
    """Coefficients times elements of one variable, by arrays.

    Parameters
    ----------
    variable : Var
        A recorded variable with indices.
    element : ndarray of int
        Positions of the elements in the variable's own order.
    factor : ndarray
        The coefficients.
    """

    variable: Any
    element: Ints
    factor: Floats


class Linear(Algebra):
    """Sum of coefficients times columns, one by one and by arrays, and a constant."""

    __slots__ = ("columns", "constant", "factors", "parts")
    __hash__ = object.__hash__

    def __init__(
        self,
        columns: list[Column],
        factors: list[float],
        constant: float,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.columns, self.factors, self.constant, self.parts = columns, factors, constant, parts

    def linear(self) -> Linear:
        """Itself."""
        return self

    @property
    def is_constant(self) -> bool:
        """Whether it has no columns."""
        return not self.columns and not any(part.element.size for part in self.parts)

    def written_out(self) -> Linear:
        """The same with all columns one by one."""
        if not self.parts:
            return self
        columns, factors = list(self.columns), list(self.factors)
        for variable, element, factor in self.parts:
            known = list(variable.values())
            columns += [known[position] for position in element.tolist()]
            factors += factor.tolist()
        return Linear(columns, factors, self.constant)

    def evaluate(self) -> float | None:
        """Value at the columns' values; None if one of them has none."""
        own = self.written_out()
        values = [column.value for column in own.columns]
        if None in values:
            return None
        parts = (a * value for a, value in zip(own.factors, values, strict=True))
        return own.constant + sum(parts)

    def free(self) -> Linear:
        """The columns that are not fixed, and the constant with those that are."""
        if any(part.variable.has_fixed for part in self.parts):
            return self.written_out().free()
        if not any(column.fixed for column in self.columns):
            return self
        pairs = list(zip(self.columns, self.factors, strict=True))
        fixed = sum(a * column.value for column, a in pairs if column.fixed)
        left = [(column, a) for column, a in pairs if not column.fixed]
        columns, factors = [c for c, _ in left], [a for _, a in left]
        return Linear(columns, factors, self.constant + fixed, self.parts)

    def positions(self) -> Ints:
        """Position in the model of every column."""
        one_by_one = np.array([column.position for column in self.columns], dtype=np.int64)
        if not self.parts:
            return one_by_one
        return np.concatenate([one_by_one, *(p.variable.first + p.element for p in self.parts)])

    def coefficients(self) -> Floats:
        """Coefficient of every column, in the order of `positions`."""
        one_by_one = np.array(self.factors, dtype=float)
        if not self.parts:
            return one_by_one
        return np.concatenate([one_by_one, *(part.factor for part in self.parts)])


def _times(factor: float, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(Part(part.variable, part.element, factor * part.factor) for part in parts)


class Relation:
    """``lower <= body <= upper``."""

    __slots__ = ("body", "lower", "upper")

    def __init__(self, body: Linear, lower: Any, upper: Any) -> None:
        self.body, self.lower, self.upper = body, lower, upper


def as_linear(value: Any) -> Linear:
    """A column, expression or number as a linear expression."""
    if isinstance(value, Algebra):
        return value.linear()
    if isinstance(value, Relation):
        raise TypeError("a comparison is no linear expression")
    return Linear([], [], float(value))


def _difference(one: Algebra, other: Any) -> Linear:
    left, right = one.linear(), as_linear(other)
    columns = left.columns + right.columns
    factors = left.factors + [-a for a in right.factors]
    parts = left.parts + _times(-1.0, right.parts)
    return Linear(columns, factors, left.constant - right.constant, parts)


def quicksum(items: Iterable[Any]) -> Any:
    """Sum of columns, expressions and numbers."""
    items = list(items)
    if set(map(type, items)) == {Term}:  # most sums, and the longest
        return Linear([term.column for term in items], [term.factor for term in items], 0.0)
    columns: list[Column] = []
    factors: list[float] = []
    parts: list[Part] = []
    constant = 0.0
    for item in items:
        if isinstance(item, Algebra):
            own = item.linear()
            columns += own.columns
            factors += own.factors
            parts += own.parts
            constant += own.constant
        else:
            constant += item
    return Linear(columns, factors, constant, tuple(parts))


def inequality(lower: Any, body: Any, upper: Any) -> Relation:
    """``lower <= body <= upper``."""
    return Relation(as_linear(body), float(lower), float(upper))
