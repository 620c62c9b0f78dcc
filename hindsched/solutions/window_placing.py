"""Where a job in one window can stand: PS hosts, their workers, and rows that are fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hindsched.instances.base import Instance
from hindsched.instances.modes import units
from hindsched.solutions.base import Assignment
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.window_row import WindowRow

Reals = NDArray[np.float64]
AnyRow = TypeVar("AnyRow", bound=WindowRow)


class WindowCluster(Protocol):
    """What the block must know of a cluster.

    Attributes
    ----------
    server_capacity : ndarray, shape (servers, resources)
        Capacities.
    worker_demand, ps_demand : ndarray, shapes (worker types, resources) and (PS types, resources)
        What one worker and one PS of a type take.
    worker_bandwidth, ps_bandwidth : ndarray, shapes (worker types,) and (PS types,)
        Bandwidths.
    has_ps : bool
        Whether jobs need PSs at all.
    """

    @property
    def server_capacity(self) -> Reals: ...  # noqa: D102
    @property
    def worker_demand(self) -> Reals: ...  # noqa: D102
    @property
    def ps_demand(self) -> Reals: ...  # noqa: D102
    @property
    def worker_bandwidth(self) -> Reals: ...  # noqa: D102
    @property
    def ps_bandwidth(self) -> Reals: ...  # noqa: D102
    @property
    def has_ps(self) -> bool: ...  # noqa: D102


def fixed_rows(
    instance: Instance,
    commitments: Commitments,
    read_row: Callable[[Any, str, Assignment], AnyRow],
) -> dict[str, tuple[AnyRow, ...]]:
    """Rows of the jobs that can no longer change: locked, or begun before `now`.

    Parameters
    ----------
    instance : Instance
        The instance.
    commitments : Commitments
        What was decided.
    read_row : callable
        How the family reads a row of the solution file.
    """
    found: dict[str, tuple[AnyRow, ...]] = {}
    for job in instance.jobs:
        rows = [
            read_row(instance, job.name, row) for row in commitments.assignments.get(job.name, ())
        ]
        begun = any(row.first < commitments.now for row in rows)
        if rows and (begun or job.name in commitments.locked):
            found[job.name] = tuple(sorted(rows, key=lambda row: row.first))
    return found


def num_ps(cluster: WindowCluster, m: int, p: int, elsewhere: int) -> int:
    """Least number of PSs on one host whose bandwidth covers the workers elsewhere, (2i)."""
    ratio = cluster.worker_bandwidth[m] / cluster.ps_bandwidth[p]
    return max(1, int(np.ceil(elsewhere * ratio - 1e-9)))


def hosts(
    cluster: WindowCluster, free: NDArray[np.float64], m: int, p: int, q: int, count: int
) -> list[tuple[int, int]]:
    """(host, workers on it) that fit `free`, shape (servers, resources)."""
    worker = cluster.worker_demand[m]
    room = np.minimum(units(free, worker[None])[:, 0], count)
    slack = 1e-9 * (1 + np.abs(free))
    found: list[tuple[int, int]] = []
    for n in range(len(free)):
        for g in (count,) if q else range(int(min(room[n], count - 1)) + 1):
            need = g * worker
            if cluster.has_ps:
                need = need + num_ps(cluster, m, p, count - g) * cluster.ps_demand[p]
            if np.all(need <= free[n] + slack[n]):
                found.append((n, g))
    return found
