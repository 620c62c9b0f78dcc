"""The linking rows of a family's offline problem, as one flat vector with names.

Engines work on flat price vectors; files and people need names. A `RowSet` is a rectangular set of
rows, for example ``worker_capacity`` over (server, resource, slot); `Rows` lays several of them end
to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.solutions.rows import read_span

BYTES_A_SLOT, BYTES_A_ROW = 48, 64
"""What a slot's label takes, and a row in the vectors that an oracle and its engine work on."""
LARGEST_PRICE = 1e100  # prices beyond this would overflow where they are multiplied with capacities


def slot_labels(slots: int, rows_a_slot: int) -> tuple[int, ...]:
    """Labels 1..slots of an axis of time; refused if no memory holds vectors over the rows."""
    rows = slots * rows_a_slot
    check_memory(
        f"prices of {rows} rows over {slots} slots", BYTES_A_SLOT * slots + BYTES_A_ROW * rows
    )
    return tuple(range(1, slots + 1))


AxisLabel = int | str  # what one place of an axis is called: a name or a slot


class PriceRow(TypedDict):
    """Price of a unit of a resource in a slot."""

    slot: int
    resource: str
    price: float


@dataclass(frozen=True)
class RowSet:
    """A rectangular set of linking rows ``use <= capacity``."""

    name: str  # in certificate files
    # names and labels; time is the last axis, ``slot``, its labels consecutive
    axes: tuple[tuple[str, tuple[AxisLabel, ...]], ...]
    capacity: Floats  # right sides b, of the shape that the axes give

    def __post_init__(self) -> None:
        if self.capacity.shape != self.shape:
            raise ValueError(f"{self.name}: capacity {self.capacity.shape} is not {self.shape}")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of labels along each axis."""
        return tuple(len(labels) for _, labels in self.axes)

    @property
    def has_slots(self) -> bool:
        """Whether the last axis is time."""
        return bool(self.axes) and self.axes[-1][0] == "slot"


class Rows:
    """Row sets laid end to end, each in C order."""

    def __init__(self, sets: Sequence[RowSet]) -> None:
        self.sets = tuple(sets)
        self.slices: dict[str, slice] = {}
        start = 0
        for row_set in self.sets:
            self.slices[row_set.name] = slice(start, start + row_set.capacity.size)
            start += row_set.capacity.size
        self.size = start

    @cached_property
    def capacity(self) -> Floats:
        """Right sides b, shape (size,)."""
        return self.pack({row_set.name: row_set.capacity for row_set in self.sets})

    @cached_property
    def scale(self) -> Floats:
        """Size of each row by which engines measure it: its capacity, or 1 where that is 0."""
        size = np.abs(self.capacity)
        return np.where(size > 0, size, 1.0)

    def pack(self, arrays: Mapping[str, Floats]) -> Floats:
        """Lay one array per set end to end; an absent set is 0."""
        flat = np.zeros(self.size)
        for row_set in self.sets:
            if row_set.name in arrays:
                values = np.asarray(arrays[row_set.name], dtype=float)
                flat[self.slices[row_set.name]] = values.reshape(row_set.shape).ravel()
        return flat

    def unpack(self, flat: Floats) -> dict[str, Floats]:
        """Views of a flat vector by set, in each set's own shape."""
        return {
            row_set.name: flat[self.slices[row_set.name]].reshape(row_set.shape)
            for row_set in self.sets
        }

    def to_file(self, flat: Floats) -> dict[str, list[JsonObject]]:
        """Write the non-zero entries as rows with labels, run-length over slots."""
        arrays = self.unpack(flat)
        return {row_set.name: _rows(row_set, arrays[row_set.name]) for row_set in self.sets}

    def from_file(self, prices: object, where: str = "prices") -> Floats:
        """Read `to_file`'s rows back; rows that are not named are 0.

        Refused are unknown sets and labels, slots outside the rows, a row given twice, and prices
        that are negative or no finite numbers.
        """
        if not isinstance(prices, dict):
            raise InputError(where, prices, "must be an object of row sets")
        by_name = {row_set.name: row_set for row_set in self.sets}
        arrays: dict[str, Floats] = {}
        for name, rows in prices.items():
            if name not in by_name:
                raise InputError(f"{where}.{name}", name, f"must be one of {', '.join(by_name)}")
            arrays[name] = _read_rows(by_name[name], rows, f"{where}.{name}")
        return self.pack(arrays)

    def mean_by_slot(self, flat: Floats) -> list[PriceRow]:
        """Mean of a flat vector by slot and resource, weighted by the capacities.

        A set without an axis for resources or types is a resource itself. Sets without slots are
        left out, as is what has no capacity.
        """
        worth: dict[tuple[int, str], float] = {}
        amount: dict[tuple[int, str], float] = {}
        for row_set in self.sets:
            if not row_set.has_slots:
                continue
            prices = flat[self.slices[row_set.name]].reshape(row_set.shape)
            for name, index in _by_resource(row_set):
                capacity = row_set.capacity[index]
                axes = tuple(range(capacity.ndim - 1))
                totals = capacity.sum(axis=axes), (prices[index] * capacity).sum(axis=axes)
                for slot, held, worth_there in zip(row_set.axes[-1][1], *totals, strict=True):
                    key = (int(slot), name)
                    amount[key] = amount.get(key, 0.0) + float(held)
                    worth[key] = worth.get(key, 0.0) + float(worth_there)
        return [
            {"slot": slot, "resource": name, "price": worth[slot, name] / held}
            for (slot, name), held in sorted(amount.items())
            if held > 0
        ]

    def label(self, index: int) -> dict[str, AxisLabel]:
        """Name a flat index: ``{"rows": set, axis: label, ...}``."""
        for row_set in self.sets:
            part = self.slices[row_set.name]
            if part.start <= index < part.stop:
                position = np.unravel_index(index - part.start, row_set.shape)
                labels = {
                    axis: values[int(i)]
                    for (axis, values), i in zip(row_set.axes, position, strict=True)
                }
                return {"rows": row_set.name, **labels}
        raise IndexError(index)


def _by_resource(row_set: RowSet) -> list[tuple[str, tuple[slice | int, ...]]]:
    """Resources of a set with slots, and where their rows are."""
    for place, (axis, labels) in enumerate(row_set.axes[:-1]):
        if axis in ("resource", "type"):
            before = (slice(None),) * place
            return [(str(label), (*before, number)) for number, label in enumerate(labels)]
    return [(row_set.name.removesuffix("_capacity"), ())]


def _rows(row_set: RowSet, values: Floats) -> list[JsonObject]:
    rows: list[JsonObject] = []
    fixed = row_set.axes[:-1] if row_set.has_slots else row_set.axes
    for position in np.ndindex(*(len(labels) for _, labels in fixed)):
        labels = {axis: names[i] for (axis, names), i in zip(fixed, position, strict=True)}
        if not row_set.has_slots:
            if values[position] != 0:
                rows.append({**labels, "price": float(values[position])})
            continue
        series = values[position].tolist()
        if not any(series):
            continue
        slots, first = row_set.axes[-1][1], 0
        for after, price in enumerate(series, 1):
            if after < len(series) and series[after] == price:
                continue
            if price != 0:
                span = {"from": int(slots[first]), "to": int(slots[after - 1])}
                rows.append({**labels, **span, "price": price})
            first = after
    return rows


def priced_rows(rows: object, where: str, keys: set[str]) -> Iterator[tuple[str, Any, float]]:
    """Path, row and price of each row of a list; a row must have exactly these keys."""
    if not isinstance(rows, list):
        raise InputError(where, rows, "must be a list of rows")
    for number, row in enumerate(rows):
        here = f"{where}[{number}]"
        if not isinstance(row, dict) or set(row) != keys:
            raise InputError(here, row, f"must have exactly the keys {', '.join(sorted(keys))}")
        price = row["price"]
        is_number = isinstance(price, int | float) and not isinstance(price, bool)
        if not is_number or not abs(price) <= LARGEST_PRICE:
            rule = f"must be a finite number of at most {LARGEST_PRICE:.0e} in size"
            raise InputError(f"{here}.price", price, rule)
        if price < 0:
            raise InputError(f"{here}.price", price, "must not be negative")
        yield here, row, float(price)


def _read_rows(row_set: RowSet, rows: object, where: str) -> Floats:
    values = np.zeros(row_set.shape)
    taken = np.zeros(row_set.shape, dtype=bool)
    fixed = row_set.axes[:-1] if row_set.has_slots else row_set.axes
    positions = [{label: i for i, label in enumerate(labels)} for _, labels in fixed]
    keys = (
        {axis for axis, _ in fixed} | {"price"} | ({"from", "to"} if row_set.has_slots else set())
    )
    for here, row, price in priced_rows(rows, where, keys):
        index: tuple[int | slice, ...] = ()
        for (axis, _), position in zip(fixed, positions, strict=True):
            if isinstance(row[axis], list | dict) or row[axis] not in position:
                raise InputError(f"{here}.{axis}", row[axis], "must be a label of the instance")
            index += (position[row[axis]],)
        if row_set.has_slots:
            earliest, latest = (int(row_set.axes[-1][1][end]) for end in (0, -1))
            first, last = read_span(here, row, latest, earliest)
            index += (slice(first - earliest, last - earliest + 1),)
        if np.any(taken[index]):
            raise InputError(here, row, "must not price a row twice")
        taken[index] = True
        values[index] = price
    return values
