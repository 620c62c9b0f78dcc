"""The rows and columns of a recorded model as arrays."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.models.linear import Linear
from hindsched.models.recorder import RecordedModel, Row, SumRows


class RecordedRows(Sequence[Any]):
    """The rows one by one; those of a `SumRows` are made when they are asked for."""

    def __init__(self) -> None:
        self._parts: list[Row | SumRows] = []
        self._ends: list[int] = []
        self._size = 0

    def append(self, part: Row | SumRows) -> None:
        """Add one row, or many at once."""
        self._size += len(part) if isinstance(part, SumRows) else 1
        self._parts.append(part)
        self._ends.append(self._size)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        at = range(self._size)[place]
        number = bisect_right(self._ends, at)
        part = self._parts[number]
        if isinstance(part, Row):
            return part
        key = part.index[at - (self._ends[number] - len(part))]
        if isinstance(part.index, np.ndarray):
            key = tuple(key.tolist()) if part.index.ndim > 1 else int(key)
        return Row(part.name, key)


class Arrays(NamedTuple):
    """``lower <= A x <= upper`` over a model's columns; A by its entries, some places twice."""

    rows: RecordedRows
    row: Ints
    column: Ints
    factor: Floats
    lower: Floats
    upper: Floats
    constant: list[tuple[str, float, float]]
    """Rows without free columns: name, and the sides between which 0 must lie."""


def arrays_of(model: RecordedModel) -> Arrays:
    """Coefficients and sides of all rows; fixed columns enter with their values."""
    fixed = fixed_values(model)
    rows, constant = RecordedRows(), list[tuple[str, float, float]]()
    entries = _Entries()
    for part in model.rows:
        begin = len(rows)
        if isinstance(part, SumRows):
            size = len(part)
            lower = part.sides if part.kind != "<=" else -np.inf
            upper = part.sides if part.kind != ">=" else np.inf
            for variable, row, element, factor in part.terms:
                if fixed is not None:
                    own = fixed[variable.first : variable.first + len(variable)]
                    (row, element, factor), paid = _without_fixed(own, row, element, factor, size)
                    lower, upper = lower - paid, upper - paid
                entries.add(begin, row, variable.first, element, factor)
            part.place = slice(begin, begin + size)
        else:
            size = 1
            body = part.relation.body if fixed is None else part.relation.body.free()
            lower, upper = part.relation.lower - body.constant, part.relation.upper - body.constant
            if body.is_constant:
                constant.append((part.name, lower, upper))
                continue
            entries.add_row(begin, body)
        rows.append(part)
        entries.sides.append((begin, begin + size, lower, upper))
    return Arrays(rows, *entries.arrays(), *entries.all_sides(len(rows)), constant)


def fixed_values(model: RecordedModel) -> Floats | None:
    """Values of the fixed columns, not a number where they are free; None if all are."""
    variables = model.record.variables
    if not any(variable.has_fixed for variable in variables):
        return None
    found = np.full(model.record.num_columns, np.nan)
    for variable in variables:
        if variable.has_fixed:
            for column in variable.values():
                if column.fixed:
                    found[column.position] = column.value
    return found


class _Entries:
    """Coefficients and sides as they are collected: of many rows at once, and of single rows."""

    def __init__(self) -> None:
        self.sides: list[tuple[int, int, Any, Any]] = []
        self._many: list[tuple[Ints, Ints, Floats]] = []
        self._shift: list[tuple[int, int, int]] = []  # first row, first column, entries
        self._row: list[int] = []
        self._size: list[int] = []
        self._column: list[int] = []
        self._factor: list[float] = []

    def add(
        self, first_row: int, row: Ints, first_column: int, column: Ints, factor: Floats
    ) -> None:
        """Coefficients of a variable in a constraint, both counted from their first."""
        self._many.append((row, column, factor))
        self._shift.append((first_row, first_column, len(row)))

    def add_row(self, row: int, body: Linear) -> None:
        """One row."""
        self._row.append(row)
        self._size.append(len(body.columns))
        self._column += [column.position for column in body.columns]
        self._factor += body.factors
        for variable, element, factor in body.parts:
            here = np.zeros(len(element), dtype=np.int64)
            self.add(row, here, variable.first, element, factor)

    def arrays(self) -> tuple[Ints, Ints, Floats]:
        """Rows, columns and coefficients."""
        first_row, first_column, sizes = np.array(self._shift, np.int64).reshape(-1, 3).T
        rows, columns, factors = zip(*self._many, strict=True) if self._many else ((), (), ())
        single_rows = np.array(self._row, dtype=np.int64).repeat(self._size)
        row = np.concatenate([*rows, single_rows])
        column = np.concatenate([*columns, np.array(self._column, dtype=np.int64)])
        row[: len(row) - len(single_rows)] += first_row.repeat(sizes)
        column[: len(row) - len(single_rows)] += first_column.repeat(sizes)
        return row, column, np.concatenate([*factors, np.array(self._factor, dtype=float)])

    def all_sides(self, count: int) -> tuple[Floats, Floats]:
        """Lower and upper sides of all rows."""
        lower, upper = np.empty(count), np.empty(count)
        for begin, end, low, high in self.sides:
            lower[begin:end], upper[begin:end] = low, high
        return lower, upper


def _without_fixed(
    fixed: Floats, row: Ints, element: Ints, factor: Floats, count: int
) -> tuple[tuple[Ints, Ints, Floats], Floats]:
    """Entries of free columns, and what the fixed ones add up to by row."""
    value = fixed[element]
    free = np.isnan(value)
    paid = np.bincount(row[~free], (value * factor)[~free], count)
    return (row[free], element[free], factor[free]), paid.astype(float)


class RecordedColumns(Sequence[Any]):
    """Some of a model's columns, which are made when they are asked for.

    Parameters
    ----------
    model : RecordedModel
        The model.
    positions : ndarray of int
        Which they are, in order.
    """

    def __init__(self, model: RecordedModel, positions: Ints) -> None:
        self._variables, self._positions = model.record.variables, positions
        self._firsts = [variable.first for variable in self._variables]

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[at] for at in range(len(self))[place]]
        position = int(self._positions[place])
        variable = self._variables[bisect_right(self._firsts, position) - 1]
        return list(variable.values())[position - variable.first]

    def __iter__(self) -> Iterator[Any]:
        for variable, element, _ in self._by_variable():
            own = list(variable.values())
            yield from (own[at] for at in element.tolist())

    def _by_variable(self) -> Iterator[tuple[Any, Ints, slice]]:
        """Each variable, which of its elements are meant, and their places."""
        ends = np.searchsorted(self._positions, self._firsts[1:]).tolist()
        begin = 0
        for variable, end in zip(self._variables, [*ends, len(self)], strict=False):
            if end > begin:
                here = slice(begin, end)
                yield variable, self._positions[here] - variable.first, here
            begin = end

    def give(self, values: Floats) -> None:
        """Set their values."""
        for variable, element, here in self._by_variable():
            variable.give(element, values[here])

    def forget(self) -> None:
        """Have no values but those of fixed columns."""
        for variable in self._variables:
            variable.forget()
