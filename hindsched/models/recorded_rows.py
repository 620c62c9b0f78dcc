"""The rows of a recorded model as arrays."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
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
        return Row(part.name, tuple(key.tolist()) if isinstance(key, np.ndarray) else key)


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
    fixed = np.array([column.fixed for column in model.columns], dtype=bool)
    some_fixed = bool(fixed.any())
    rows, constant = RecordedRows(), list[tuple[str, float, float]]()
    single = _Singles()
    many: list[tuple[Ints, Ints, Floats]] = []
    sides: list[tuple[int, Floats, Floats]] = []
    for part in model.rows:
        begin = len(rows)
        if isinstance(part, SumRows):
            lower, upper = part.lower, part.upper
            for entries in part.entries():
                if some_fixed:
                    entries, paid = _without_fixed(model, fixed, entries, len(part))
                    lower, upper = lower - paid, upper - paid
                many.append((entries[0] + begin, *entries[1:]))
            part.place = slice(begin, begin + len(part))
            rows.append(part)
            sides.append((begin, lower, upper))
            continue
        body = part.relation.body.free() if some_fixed else part.relation.body
        low, high = part.relation.lower - body.constant, part.relation.upper - body.constant
        if body.columns:
            rows.append(part)
            single.add(begin, low, high, body)
        else:
            constant.append((part.name, low, high))
    where = np.repeat(np.array(single.rows, dtype=np.int64), single.sizes)
    lower, upper = np.empty(len(rows)), np.empty(len(rows))
    lower[single.rows], upper[single.rows] = single.lower, single.upper
    for begin, low, high in sides:
        lower[begin : begin + len(low)], upper[begin : begin + len(low)] = low, high
    return Arrays(
        rows,
        np.concatenate([where, *(entries[0] for entries in many)]),
        np.concatenate([np.array(single.columns, np.int64), *(entries[1] for entries in many)]),
        np.concatenate([np.array(single.factors, float), *(entries[2] for entries in many)]),
        lower, upper, constant,
    )  # fmt: skip


class _Singles:
    """Rows that were given one by one."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.sizes: list[int] = []
        self.columns: list[int] = []
        self.factors: list[float] = []

    def add(self, row: int, lower: float, upper: float, body: Any) -> None:
        self.rows.append(row)
        self.lower.append(lower)
        self.upper.append(upper)
        self.sizes.append(len(body.columns))
        self.columns += [column.position for column in body.columns]
        self.factors += body.factors


def _without_fixed(
    model: RecordedModel, fixed: Bools, entries: tuple[Ints, Ints, Floats], count: int
) -> tuple[tuple[Ints, Ints, Floats], Floats]:
    """Entries of free columns, and what the fixed ones add up to by row."""
    row, column, factor = entries
    given = fixed[column]
    values = [float(model.columns[at].value) for at in column[given].tolist()]
    paid = np.bincount(row[given], values * factor[given], count).astype(float)
    return (row[~given], column[~given], factor[~given]), paid
