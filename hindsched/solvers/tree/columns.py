"""What master programs consist of: schedules of blocks as columns, and the basis of an optimum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hindsched.arrays import Bools, Floats
from hindsched.solvers.oracles.base import Response


@dataclass
class Column:
    """A schedule of a block as a column of the master.

    Parameters
    ----------
    block : int
        Position of the block.
    objective : float
        Objective of the schedule.
    rows : ndarray of int
        Linking rows that it uses, without duplicates.
    amounts : ndarray of float
        Its use of each.
    """

    block: int
    objective: float
    rows: np.ndarray
    amounts: Floats
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, block: int, response: Response) -> Column:
        """Read a best response."""
        order = np.argsort(response.rows, kind="stable")
        rows, amounts = response.rows[order], response.amounts[order]
        if rows.size and (rows[1:] == rows[:-1]).any():
            rows, inverse = np.unique(rows, return_inverse=True)
            summed = np.bincount(inverse, weights=amounts, minlength=rows.size)
            amounts = np.asarray(summed, dtype=float)
        key = rows.tobytes() + amounts.round(9).tobytes()
        return cls(block, response.objective, rows, amounts, key)

    def without(self, implied: Bools | None) -> tuple[np.ndarray, Floats]:
        """Rows and amounts, without rows that other rows imply."""
        if implied is None:
            return self.rows, self.amounts
        kept = ~implied[self.rows]
        return self.rows[kept], self.amounts[kept]


@dataclass(frozen=True)
class Basis:
    """Where the simplex method of a `Master` ended.

    Parameters
    ----------
    columns : set
        Blocks and keys of the basic columns.
    bought, rows : list
        Status of every column that buys off, and of every row.
    """

    columns: set[tuple[int, bytes]] = field(repr=False)
    bought: list[Any] = field(repr=False)
    rows: list[Any] = field(repr=False)
