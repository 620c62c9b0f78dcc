"""Run-length arrays of the edgecloud family: runs of chunks, holds of PSs, and their load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Ints


class ChunkRun(NamedTuple):
    """One chunk on one place without interruption.

    Parameters
    ----------
    job : int
        Position of the job.
    chunk : int
        Number of the chunk, from 1.
    place : int
        Position of the worker in `EdgecloudInstance.worker_list`; their number means the cloud.
    first, last : int
        First and last slot.
    """

    job: int
    chunk: int
    place: int
    first: int
    last: int


@dataclass(frozen=True)
class Runs:
    """Runs of chunks, an array a field of `ChunkRun`, sorted by (job, chunk, first slot)."""

    job: Ints
    chunk: Ints
    place: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, rows: Sequence[ChunkRun] | Ints) -> Self:
        """Build from runs in any order, or an array of their fields; touching runs are merged."""
        return cls(*_merge(np.array(rows, dtype=np.int64).reshape(-1, 5)).T)

    def rows(self) -> Iterator[ChunkRun]:
        """The runs one by one."""
        columns = (column.tolist() for column in vars(self).values())
        return map(ChunkRun._make, zip(*columns, strict=True))


@dataclass(frozen=True)
class Holds:
    """Holds of PSs, one entry a hold, sorted by (job, first slot).

    Parameters
    ----------
    job : ndarray of int
        Position of the job.
    place : ndarray of int
        Position of the server; the number of servers means the cloud.
    first, last : ndarray of int
        First and last slot.
    """

    job: Ints
    place: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int]]) -> Self:
        """Build from (job, place, first, last), in any order; touching holds are merged."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        merged = _merge(np.insert(table, 1, 0, axis=1))
        return cls(*np.delete(merged, 1, axis=1).T)

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """The holds one by one."""
        return zip(*(column.tolist() for column in vars(self).values()), strict=True)


def _merge(table: Ints) -> Ints:
    """Sort rows (job, chunk, place, first, last) and join those of a place that touch."""
    table = table[np.lexsort((table[:, 3], table[:, 1], table[:, 0]))]
    if len(table) < 2:
        return table
    same = np.all(table[1:, :3] == table[:-1, :3], axis=1)
    joins = same & (table[1:, 3] == table[:-1, 4] + 1)
    starts = np.flatnonzero(np.concatenate(([True], ~joins)))
    ends = np.append(starts[1:], len(table)) - 1
    merged = table[starts]
    merged[:, 4] = table[ends, 4]
    return merged


def loads(row: Ints, first: Ints, last: Ints, num_rows: int, slots: Ints) -> NDArray[np.int32]:
    """How many intervals of each row cover some slots, shape (num_rows, slots).

    `slots` are increasing and hold every interval's begin and the slot behind its end: between two
    of those nothing changes, so that ten million slots cost as much as ten.
    """
    steps = np.zeros((num_rows, slots.size), dtype=np.int32)
    np.add.at(steps, (row, np.searchsorted(slots, first)), 1)
    np.add.at(steps, (row, np.searchsorted(slots, last + 1)), -1)
    np.cumsum(steps, axis=1, out=steps)
    return steps
