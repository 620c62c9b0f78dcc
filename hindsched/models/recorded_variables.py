"""Variables of the recorder: arrays of bounds, of which a column is made when one is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats, Ints
from hindsched.models.linear import INFINITY, Column

_WHOLE = (pyo.NonNegativeIntegers, pyo.Binary)
_UNIT = (pyo.UnitInterval, pyo.Binary)


def all_keys(sets: tuple[Any, ...]) -> Sequence[Any] | Ints:
    """Keys of what is indexed by these sets; an array of keys stays one."""
    if len(sets) == 1:
        return sets[0] if isinstance(sets[0], np.ndarray) else list(sets[0])
    found = itertools.product(*sets)
    return [tuple(_flat(key)) for key in found]


def key_parts(key: Any) -> tuple[Any, ...]:
    """A key as the arguments of a rule."""
    return key if isinstance(key, tuple) else () if key is None else (key,)


def _flat(key: tuple[Any, ...]) -> Iterator[Any]:
    for part in key:
        if isinstance(part, tuple):
            yield from part
        else:
            yield part


class Var:
    """An indexed variable; without index sets it is a `Column` itself.

    Rows by arrays need no columns, so none is made before one is asked for; from then on the
    columns say what the bounds and values are.
    """

    def __new__(cls, *sets: Any, **settings: Any) -> Any:
        """Take domain, bounds and value."""
        domain = settings.get("domain", settings.get("within", pyo.Reals))
        integer = any(domain is one for one in _WHOLE)
        lower = -INFINITY if domain is pyo.Reals else 0.0
        upper = 1.0 if any(domain is one for one in _UNIT) else INFINITY
        bounds, value = settings.get("bounds"), settings.get("initialize")
        if not sets:
            low, high = bounds(None) if callable(bounds) else bounds or (None, None)
            low, high = np.fmax(lower, _sides([low])), np.fmin(upper, _sides([high]))
            return Column(integer, _bound(low.item()), _bound(high.item()), None, value)
        made = super().__new__(cls)
        made._keys = all_keys(sets)
        made.integer, made._initial = integer, value
        if callable(bounds):
            pairs = [bounds(None, *key_parts(key)) for key in made]
            bounds = _sides([low for low, _ in pairs]), _sides([high for _, high in pairs])
        low, high = bounds or (None, None)
        made._lower = np.full(made.num_columns, lower)
        made._upper = np.full(made.num_columns, upper)
        if low is not None:
            np.fmax(lower, low, out=made._lower)
        if high is not None:
            np.fmin(upper, high, out=made._upper)
        made._columns = made._values = None
        made.name, made.first = "", -1
        return made

    name: str
    first: int
    """Position of the first column in the model."""
    integer: bool
    _keys: Sequence[Any] | Ints
    _initial: Any
    _lower: Floats
    _upper: Floats
    _values: Floats | None
    _columns: dict[Any, Column] | None

    def declare(self, name: str, first: int) -> None:
        """Take a name and a position in the model."""
        self.name, self.first = name, first

    @property
    def data(self) -> dict[Any, Column]:
        """The columns by key."""
        if self._columns is None:
            size = len(self._keys)
            values = [self._initial] * size if self._values is None else self._values.tolist()
            if self._values is not None and self.integer:
                values = [round(value) for value in values]
            self._columns = {}
            for at, (key, low, high, value) in enumerate(
                zip(self.keys(), self._lower.tolist(), self._upper.tolist(), values, strict=True)
            ):
                column = Column(self.integer, _bound(low), _bound(high), key, value)
                column.declare(self.name, self.first + at)
                self._columns[key] = column
        return self._columns

    @property
    def lower(self) -> Floats:
        """Lower bounds."""
        if self._columns is None:
            return self._lower
        bounds = [column.lb for column in self._columns.values()]
        return np.array([-INFINITY if side is None else side for side in bounds], dtype=float)

    @property
    def upper(self) -> Floats:
        """Upper bounds."""
        if self._columns is None:
            return self._upper
        bounds = [column.ub for column in self._columns.values()]
        return np.array([INFINITY if side is None else side for side in bounds], dtype=float)

    @property
    def has_fixed(self) -> bool:
        """Whether some column is fixed."""
        return self._columns is not None and any(c.fixed for c in self._columns.values())

    def give(self, element: Ints, values: Floats) -> None:
        """Set values of some elements."""
        if self._columns is None and len(element) == len(self):
            self._values = values
            return
        columns = list(self.values())
        for at, value in zip(element.tolist(), values.tolist(), strict=True):
            columns[at].value = round(value) if self.integer else value

    def forget(self) -> None:
        """Have no values but those of fixed columns."""
        self._values = None
        for column in (self._columns or {}).values():
            column.forget()

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[key]
        except TypeError:  # a key with a slice: all columns that have its other parts
            parts = [(i, part) for i, part in enumerate(key) if not isinstance(part, slice)]
            return [
                column
                for own, column in self.data.items()
                if all(own[i] == part for i, part in parts)
            ]

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def num_columns(self) -> int:
        """How many columns it has."""
        return len(self._keys)

    def items(self) -> Any:
        """Keys and columns."""
        return self.data.items()

    def values(self) -> Any:
        """The columns."""
        return self.data.values()

    def keys(self) -> Any:
        """The keys."""
        if isinstance(self._keys, np.ndarray):
            keys = self._keys.tolist()
            self._keys = keys if self._keys.ndim == 1 else list(map(tuple, keys))
        return self._keys


def _sides(values: list[float | None]) -> Floats:
    """Sides as an array; one that is missing is no number, which `fmax` and `fmin` pass over."""
    return np.array(values, dtype=float)


def _bound(side: float) -> float | None:
    return None if abs(side) == INFINITY else side
