"""Columns and linear expressions of the recorder: arithmetic, comparisons, sums."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

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
        return Linear(one.columns + two.columns, one.factors + two.factors, constant)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Linear:
        return _difference(self, other)

    def __rsub__(self, other: Any) -> Linear:
        return -1.0 * self + other

    def __neg__(self) -> Any:
        return -1.0 * self

    def __mul__(self, factor: Any) -> Any:
        own = self.linear()
        return Linear(own.columns, [factor * a for a in own.factors], factor * own.constant)

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


class Linear(Algebra):
    """Sum of coefficients times columns, and a constant."""

    __slots__ = ("columns", "constant", "factors")
    __hash__ = object.__hash__

    def __init__(self, columns: list[Column], factors: list[float], constant: float) -> None:
        self.columns, self.factors, self.constant = columns, factors, constant

    def linear(self) -> Linear:
        """Itself."""
        return self

    def evaluate(self) -> float | None:
        """Value at the columns' values; None if one of them has none."""
        values = [column.value for column in self.columns]
        if None in values:
            return None
        parts = (a * value for a, value in zip(self.factors, values, strict=True))
        return self.constant + sum(parts)

    def free(self) -> Linear:
        """The columns that are not fixed, and the constant with those that are."""
        if not any(column.fixed for column in self.columns):
            return self
        pairs = list(zip(self.columns, self.factors, strict=True))
        fixed = sum(a * column.value for column, a in pairs if column.fixed)
        left = [(column, a) for column, a in pairs if not column.fixed]
        return Linear([c for c, _ in left], [a for _, a in left], self.constant + fixed)


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
    factors = left.factors + [-a for a in right.factors]
    return Linear(left.columns + right.columns, factors, left.constant - right.constant)


def quicksum(items: Iterable[Any]) -> Any:
    """Sum of columns, expressions and numbers."""
    items = list(items)
    if set(map(type, items)) == {Term}:  # most sums, and the longest
        return Linear([term.column for term in items], [term.factor for term in items], 0.0)
    columns: list[Column] = []
    factors: list[float] = []
    constant = 0.0
    for item in items:
        if isinstance(item, Algebra):
            own = item.linear()
            columns += own.columns
            factors += own.factors
            constant += own.constant
        else:
            constant += item
    return Linear(columns, factors, constant)


def inequality(lower: Any, body: Any, upper: Any) -> Relation:
    """``lower <= body <= upper``."""
    return Relation(as_linear(body), float(lower), float(upper))
