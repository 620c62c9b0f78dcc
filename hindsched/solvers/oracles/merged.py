"""Jobs on all servers merged into one: what each may do, end to end, and what a window uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.solvers.kernels.super_server import undominated


class EndToEnd(NamedTuple):
    """What each job may do, one job's choices behind the other's, as the compiled kernels read it.

    Parameters
    ----------
    first : ndarray of int, shape (jobs + 1,)
        Where each job's choices begin, and the end.
    number : ndarray, shape (choices,)
        Duration of a mode, or rate of a way to run in a slot.
    demand : ndarray, shape (choices, resources)
        What it takes of the merged server.
    """

    first: Ints
    number: NDArray[Any]
    demand: Floats

    @classmethod
    def of(
        cls, choices: Sequence[tuple[NDArray[Any], Floats]], width: int, kind: DTypeLike = float
    ) -> Self:
        """Lay them end to end: numbers of a kind and demands of `width` resources, job by job."""
        first = np.cumsum([0, *(len(number) for number, _ in choices)], dtype=np.int64)
        numbers = [*(number for number, _ in choices), np.zeros(0, dtype=kind)]
        demands = [*(demand for _, demand in choices), np.zeros((0, width))]
        return cls(first, np.concatenate(numbers), np.concatenate(demands))

    def of_job(self, job: int) -> tuple[NDArray[Any], Floats]:
        """Numbers and demands of one job's choices."""
        own = slice(self.first[job], self.first[job + 1])
        return self.number[own], self.demand[own]

    def some(self, kept: Ints) -> Self:
        """The same of some of the jobs."""
        choices = [self.of_job(job) for job in kept]
        return self.of(choices, self.demand.shape[1], self.number.dtype)


def undominated_modes(duration: Ints, demand: Floats) -> tuple[Ints, Floats]:
    """Modes by rising duration, without those that another is as short as and no larger than."""
    order = np.lexsort((demand.sum(axis=1), duration))
    duration, demand = duration[order], demand[order]
    keep = undominated(duration, demand)
    return np.ascontiguousarray(duration[keep]), np.ascontiguousarray(demand[keep])


def prefix_sums(prices: Floats) -> Floats:
    """Prices of all slots before each, shape (slots + 1, resources), from (slots, resources)."""
    prefix = np.zeros((len(prices) + 1, prices.shape[1]))
    np.cumsum(prices, axis=0, out=prefix[1:])
    return prefix


def window_use(demand: Floats, slots: Ints, rows: int) -> tuple[Ints, Floats]:
    """Flat rows that a window uses, and how much of each.

    Parameters
    ----------
    demand : ndarray, shape (resources,)
        In each of its slots.
    slots : ndarray of int
        Which row of a resource each slot belongs to.
    rows : int
        Rows a resource.
    """
    used = np.zeros((len(demand), rows))
    for row, amount in enumerate(demand.tolist()):
        np.add.at(used[row], slots, amount)
    found = np.flatnonzero(used)
    return found, used.ravel()[found]


def refuse_residual(residual: Floats | None) -> None:
    """Refuse what is left of servers: only full capacity is known of the merged one."""
    if residual is not None:
        raise InputError("rows", "cluster", "schedules that fit need the layout servers")
