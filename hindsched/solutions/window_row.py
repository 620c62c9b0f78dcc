"""A stretch of slots with one placement: the row of the families whose jobs run in one window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from hindsched.arrays import Ints


@dataclass(frozen=True)
class WindowRow:
    """A stretch of slots in which a job's placement does not change.

    Parameters
    ----------
    first, last : int
        Slots, both inclusive.
    worker_type, ps_type : int
        Positions of the types; `ps_type` is -1 when the row has none.
    workers, ps : ndarray of int, shape (servers,)
        How many stand on each server.
    """

    first: int
    last: int
    worker_type: int
    ps_type: int
    workers: Ints
    ps: Ints

    @property
    def slots(self) -> int:
        """Length of the stretch."""
        return self.last - self.first + 1

    @property
    def num_workers(self) -> int:
        """Workers in all."""
        return int(self.workers.sum())

    @property
    def one_server(self) -> bool:
        """Whether everything stands on one server."""
        return int(((self.workers > 0) | (self.ps > 0)).sum()) == 1

    def same_placement(self, other: Self) -> bool:
        """Whether two rows have the same types and counts on every server."""
        return (
            self.worker_type == other.worker_type
            and self.ps_type == other.ps_type
            and (self.workers is other.workers or np.array_equal(self.workers, other.workers))
            and (self.ps is other.ps or np.array_equal(self.ps, other.ps))
        )

    def continues_as(self, other: Self) -> bool:
        """Whether `other` follows at once and differs in its slots only."""
        return self.last + 1 == other.first and self.same_placement(other)


Row = TypeVar("Row", bound=WindowRow)


def merge_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Sort rows by time and join those that continue each other."""
    merged: list[Row] = []
    for row in sorted(rows, key=lambda row: (row.first, row.last)):
        if merged and merged[-1].continues_as(row):
            merged[-1] = replace(merged[-1], last=row.last)
        else:
            merged.append(row)
    return tuple(merged)
