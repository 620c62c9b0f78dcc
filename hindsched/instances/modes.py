"""The ways in which a job of a non-preemptive family can run: types, q, workers and duration.

A mode fixes everything about a job but its start and its placement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints

NEVER = np.iinfo(np.int32).max
FIT_TOLERANCE = 1e-9
"""Relative slack when a capacity is divided by a demand."""


class ModeColumns(NamedTuple):
    """The arrays of `Modes`, as compiled kernels take them."""

    worker_type: Ints
    ps_type: Ints
    one_server: Ints
    workers: Ints
    duration: Ints


@dataclass(frozen=True)
class Modes:
    """Modes of one job, in the order that breaks ties: worker type, q = 1 first, PS type, workers.

    Parameters
    ----------
    worker_type, ps_type : ndarray of int, shape (num_modes,)
        Positions of the types; `ps_type` is 0 for Ring-AllReduce.
    one_server : ndarray of int, shape (num_modes,)
        q: 1 if everything stands on one server.
    workers, duration : ndarray of int, shape (num_modes,)
        N and the least L with ``L N rho >= E D K``.
    """

    worker_type: Ints
    ps_type: Ints
    one_server: Ints
    workers: Ints
    duration: Ints

    @classmethod
    def of(cls, *columns: Ints) -> Modes:
        """Modes from arrays of any layout."""
        return cls(*(np.ascontiguousarray(column) for column in columns))

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def columns(self) -> ModeColumns:
        """The arrays."""
        return ModeColumns(
            self.worker_type, self.ps_type, self.one_server, self.workers, self.duration
        )

    def take(self, which: Any) -> Modes:
        """Choose modes by a mask or by positions."""
        return Modes(*(column[which] for column in self.columns))

    def tuples(self) -> list[tuple[int, int, int, int, int]]:
        """Modes as (worker type, PS type, q, workers, duration)."""
        return list(zip(*(column.tolist() for column in self.columns), strict=True))


def units(capacity: Floats, demand: Floats) -> Ints:
    """``min_r floor(capacity / demand)``, shape (servers, types)."""
    room = np.full((capacity.shape[0], demand.shape[0]), NEVER, dtype=np.int64)
    for t, amounts in enumerate(demand):
        for r in np.flatnonzero(amounts > 0):
            fit = np.floor(capacity[:, r] / amounts[r] * (1 + FIT_TOLERANCE) + FIT_TOLERANCE)
            room[:, t] = np.minimum(room[:, t], fit.astype(np.int64))
    return room
