"""Where a job in one window can stand: PS hosts, their workers, and rows that are fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import Instance
from hindsched.instances.decimals import NEAR, how_many_left, loosened
from hindsched.instances.modes import ps_for, units
from hindsched.solutions.base import Assignment
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.window_row import WindowRow

AnyRow = TypeVar("AnyRow", bound=WindowRow)


class WindowCluster(Protocol):
    """What the block must know of a cluster.

    Attributes
    ----------
    server_capacity : ndarray, shape (servers, resources)
        Capacities.
    worker_demand, ps_demand : ndarray, shapes (worker types, resources) and (PS types, resources)
        What one worker and one PS of a type take.
    ps_ratio : ndarray, shape (worker types, PS types)
        Bandwidth of a worker over that of a PS, as `ps_for` takes it.
    has_ps : bool
        Whether jobs need PSs at all.
    """

    @property
    def server_capacity(self) -> Floats: ...  # noqa: D102
    @property
    def worker_demand(self) -> Floats: ...  # noqa: D102
    @property
    def ps_demand(self) -> Floats: ...  # noqa: D102
    @property
    def ps_ratio(self) -> Floats: ...  # noqa: D102
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
    return max(1, math.ceil(elsewhere * cluster.ps_ratio[m, p] - NEAR))


def hosts(
    cluster: WindowCluster, free: Floats, m: int, p: int, q: int, count: int
) -> list[tuple[int, int]]:
    """(host, workers on it) that fit `free`, shape (servers, resources), which is `loosened`."""
    worker = cluster.worker_demand[m]
    room = how_many_left(free, worker, count)
    on_host = np.array([count]) if q else np.arange(min(int(room.max(initial=0)), count - 1) + 1)
    need = on_host[:, None] * worker
    if cluster.has_ps:
        num = ps_for(count - on_host, cluster.ps_ratio[m, p])
        need = need + num[:, None] * cluster.ps_demand[p]
    fits = (need <= free[:, None]).all(axis=-1)
    if not q:
        fits &= on_host <= room[:, None]
    n, which = np.nonzero(fits)
    return list(zip(n.tolist(), on_host[which].tolist(), strict=True))


class EmptyCluster:
    """Where a mode can stand while nothing runs: the same for all jobs of a cluster.

    Parameters
    ----------
    cluster : WindowCluster
        The cluster, kept as long as this is; `of` keeps its arrays alone.
    """

    def __init__(self, cluster: WindowCluster) -> None:
        self._cluster = cluster
        self._free = loosened(cluster.server_capacity, cluster.server_capacity)
        self._hosts: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
        self.room = units(cluster.server_capacity, cluster.worker_demand).T.tolist()
        """Workers that fit, by type and server."""
        self.most_workers = [sum(servers) for servers in self.room]
        """Workers that fit in all, by type."""

    @staticmethod
    def of(cluster: WindowCluster) -> EmptyCluster:
        """That of a cluster; made once for all with equal arrays, the last few of which stay."""
        return _empty_cluster(
            _Arrays(
                cluster.server_capacity, cluster.worker_demand, cluster.ps_demand,
                cluster.ps_ratio, cluster.has_ps,
            )
        )  # fmt: skip

    def hosts(self, m: int, p: int, q: int, count: int) -> list[tuple[int, int]]:
        """(host, workers on it) of a mode; not to be changed."""
        key = m, p, q, count
        if key not in self._hosts:
            self._hosts[key] = hosts(self._cluster, self._free, m, p, q, count)
        return self._hosts[key]


@dataclass(frozen=True, eq=False)
class _Arrays:
    """A `WindowCluster` without its jobs, equal to those with equal arrays."""

    server_capacity: Floats
    worker_demand: Floats
    ps_demand: Floats
    ps_ratio: Floats
    has_ps: bool

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        arrays = self.server_capacity, self.worker_demand, self.ps_demand, self.ps_ratio
        return self.has_ps, *((array.shape, array.tobytes()) for array in arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrays) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=8)
def _empty_cluster(arrays: _Arrays) -> EmptyCluster:
    return EmptyCluster(deepcopy(arrays))  # whose own nobody else changes
