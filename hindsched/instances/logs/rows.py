"""Rows of a log as columns, gathered chunk by chunk: one row a time that a job held GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.logs.times import MISSING

INTEGERS = ("row", "submit", "start", "end", "duration", "deadline", "thousandths", "paused")
"""Lines, nanoseconds and thousandths of a GPU; `MISSING` where the log has none."""
TEXTS = ("job", "user", "server")
BYTES_A_ROW = 600
"""Memory that a row takes at the worst moment, measured on a CSV file of five million rows."""


@dataclass
class Rows:
    """Rows that a reader has accepted so far.

    ``row`` is the line, ``paused`` the time within a run in which the job stood still, ``failed``
    marks runs that came to nothing; ``weight`` is 1 where there is none.
    """

    _chunks: dict[str, list[NDArray]] = field(default_factory=dict)
    _length: int = 0

    def __len__(self) -> int:
        return self._length

    def add(
        self,
        keep: Bools,
        *,
        job: Sequence[str],
        row: Ints,
        submit: Ints,
        start: Ints,
        end: Ints,
        thousandths: Ints,
        duration: Ints | None = None,
        deadline: Ints | None = None,
        paused: Ints | None = None,
        weight: Floats | None = None,
        failed: Bools | None = None,
        user: Sequence[str] | None = None,
        server: Sequence[str] | None = None,
    ) -> None:
        """Add the rows of a chunk where `keep` is true; all columns have the chunk's length."""
        given: dict[str, NDArray] = {
            "row": row,
            "submit": submit,
            "start": start,
            "end": end,
            "thousandths": thousandths,
            "job": _texts(job),
        }
        optional = {"duration": duration, "deadline": deadline, "paused": paused, "weight": weight}
        given |= {name: values for name, values in optional.items() if values is not None}
        given |= {} if failed is None else {"failed": failed}
        given |= {} if user is None else {"user": _texts(user)}
        given |= {} if server is None else {"server": _texts(server)}
        number = int(keep.sum())
        for name, values in given.items():
            if name not in self._chunks and self._length:  # earlier chunks had no such column
                self._chunks[name] = [_absent(name, self._length)]
            self._chunks.setdefault(name, []).append(
                values if number == len(keep) else values[keep]
            )
        for name in self._chunks.keys() - given.keys():
            self._chunks[name].append(_absent(name, number))
        self._length += number

    def columns(self) -> dict[str, NDArray]:
        """All rows as whole columns; the builder is empty afterwards."""
        names = list(self._chunks)
        return {name: np.concatenate(self._chunks.pop(name)) for name in names}


def _texts(values: Sequence[str]) -> NDArray:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _absent(name: str, number: int) -> NDArray:
    if name in TEXTS:
        return np.full(number, "", dtype=object)
    if name == "failed":
        return np.zeros(number, dtype=bool)
    if name == "paused":
        return np.zeros(number, dtype=np.int64)
    if name == "weight":
        return np.ones(number)
    return np.full(number, MISSING, dtype=np.int64)
