"""Linking rows of gang: GPUs in use over intervals of slots that the prices bring along.

A price per GPU-second holds for every slot of an interval, so the row of an interval says that the
GPU-seconds used in it are at most GPUs x its length. Any cutting of time gives valid rows, and
a certificate names its own: ``{"gpus": [{"from", "to", "price"}, ...]}``, slots inclusive, what is
not named costs nothing.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.gang.instance import MOST_SLOTS, GangInstance
from hindsched.json_types import JsonObject
from hindsched.solvers.oracles.rows import LARGEST_PRICE, AxisLabel, Rows, RowSet

ROW_SET = "gpus"
KEYS = {"from", "to", "price"}


class IntervalRows(Rows):
    """One row an interval.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    cut : ndarray of int, shape (intervals + 1,)
        Ends of the intervals, rising: interval k is slots ``cut[k] + 1 .. cut[k + 1]``.
    """

    def __init__(self, instance: GangInstance, cut: Ints) -> None:
        self.cut = cut
        capacity = instance.total_gpus * float(instance.slot_seconds) * np.diff(cut)
        labels = tuple(f"{first + 1}-{last}" for first, last in pairwise(cut))
        super().__init__([RowSet(ROW_SET, (("interval", labels),), capacity)])

    def to_file(self, flat: Floats) -> dict[str, list[JsonObject]]:
        """Write the prices above 0, neighbours of one price together."""
        rows: list[JsonObject] = []
        for first, last, price in zip(
            self.cut[:-1].tolist(), self.cut[1:].tolist(), flat.tolist(), strict=True
        ):
            if price and rows and rows[-1]["to"] == first and rows[-1]["price"] == price:
                rows[-1]["to"] = last
            elif price:
                rows.append({"from": first + 1, "to": last, "price": price})
        return {ROW_SET: rows}

    def from_file(self, prices: object, where: str = "prices") -> Floats:
        """Read `to_file`'s rows; every interval of these rows has one price."""
        flat = np.zeros(self.size)
        for first, last, price in read_prices(prices, where) if prices != {} else ():
            low, high = np.searchsorted(self.cut, [first - 1, last])
            if high >= self.cut.size or self.cut[low] != first - 1 or self.cut[high] != last:
                rule = "must begin and end where intervals do"
                raise InputError(f"{where}.{ROW_SET}", f"{first}-{last}", rule)
            flat[low:high] = price
        return flat

    def label(self, index: int) -> dict[str, AxisLabel]:
        """Name a row: its first slot, and the interval."""
        first, last = int(self.cut[index]) + 1, int(self.cut[index + 1])
        return {"rows": ROW_SET, "interval": f"{first}-{last}", "slot": first}


def cuts_of(prices: object, where: str = "prices") -> Ints:
    """Ends of the intervals that a file's prices, or those of a tree's leaves, name, from 0 on."""
    ends = [0]
    leaves = [prices]
    if isinstance(prices, list):
        leaves = [leaf.get("prices") for leaf in prices if isinstance(leaf, dict)]
    for each in leaves:
        for first, last, _ in read_prices(each, where) if each != {} else ():
            ends += [first - 1, last]
    return np.unique(np.array(ends, dtype=np.int64))


def read_prices(prices: object, where: str = "prices") -> list[tuple[int, int, float]]:
    """Rows (first slot, last slot, price) of a file, in order of time.

    Raises
    ------
    InputError
        For a row that is none, overlaps the one before or has a negative price.
    """
    if not isinstance(prices, dict) or set(prices) != {ROW_SET}:
        raise InputError(where, prices, f"must be an object with the rows {ROW_SET}")
    rows = prices[ROW_SET]
    if not isinstance(rows, list):
        raise InputError(f"{where}.{ROW_SET}", rows, "must be a list of rows")
    found: list[tuple[int, int, float]] = []
    for number, row in enumerate(rows):
        here = f"{where}.{ROW_SET}[{number}]"
        if not isinstance(row, dict) or set(row) != KEYS:
            raise InputError(here, row, f"must have exactly the keys {', '.join(sorted(KEYS))}")
        first, last, price = row["from"], row["to"], row["price"]
        for key, slot in (("from", first), ("to", last)):
            if type(slot) is not int or not 1 <= slot <= MOST_SLOTS:
                rule = f"must be a slot, an integer in 1..{MOST_SLOTS}"
                raise InputError(f"{here}.{key}", slot, rule)
        if first > last:
            raise InputError(f"{here}.to", last, f"must not precede from = {first}")
        if found and first <= found[-1][1]:
            raise InputError(f"{here}.from", first, f"must follow slot {found[-1][1]}")
        if isinstance(price, bool) or not isinstance(price, int | float):
            raise InputError(f"{here}.price", price, "must be a number")
        if not 0 <= price <= LARGEST_PRICE:
            rule = f"must not be negative and at most {LARGEST_PRICE:.0e}"
            raise InputError(f"{here}.price", price, rule)
        found.append((first, last, float(price)))
    return found
