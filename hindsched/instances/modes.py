"""The ways in which a job of a non-preemptive family can run: types, q, workers and duration.

A mode fixes everything about a job but its start and its placement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
NEVER = np.iinfo(np.int32).max
FIT_TOLERANCE = 1e-9
"""Relative slack when a capacity is divided by a demand."""


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

    worker_type: Integers
    ps_type: Integers
    one_server: Integers
    workers: Integers
    duration: Integers

    def __len__(self) -> int:
        return len(self.workers)

    def take(self, which: Any) -> Modes:
        """Choose modes by a mask or by positions."""
        return Modes(
            self.worker_type[which],
            self.ps_type[which],
            self.one_server[which],
            self.workers[which],
            self.duration[which],
        )

    def tuples(self) -> list[tuple[int, int, int, int, int]]:
        """Modes as (worker type, PS type, q, workers, duration)."""
        columns = (self.worker_type, self.ps_type, self.one_server, self.workers, self.duration)
        return list(zip(*(column.tolist() for column in columns), strict=True))


def units(capacity: NDArray[np.float64], demand: NDArray[np.float64]) -> Integers:
    """``min_r floor(capacity / demand)``, shape (servers, types)."""
    room = np.full((capacity.shape[0], demand.shape[0]), NEVER, dtype=np.int64)
    for t, amounts in enumerate(demand):
        for r in np.flatnonzero(amounts > 0):
            fit = np.floor(capacity[:, r] / amounts[r] * (1 + FIT_TOLERANCE) + FIT_TOLERANCE)
            room[:, t] = np.minimum(room[:, t], fit.astype(np.int64))
    return room
