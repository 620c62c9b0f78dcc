"""How the cluster and the jobs' progress follow from decisions: workers and PSs, slot by slot."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.decimals import loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.online.baselines.cluster import Placement, ServerCluster
from hindsched.online.protocol import Environment

Units = dict[tuple[str, int], int]
"""Workers and PSs of a job by role and group of servers."""


class OasisCluster(ServerCluster):
    """Placement is round-robin over the servers that fit; work is counted in worker-slots."""

    def __init__(self, environment: Environment) -> None:
        self.instance: OasisInstance = environment.cluster
        servers = {"workers": self.instance.worker_servers, "ps": self.instance.ps_servers}
        has = {"workers": self.instance.worker_capacity, "ps": self.instance.ps_capacity}
        names = {role: [server.name for server in pool] for role, pool in servers.items()}
        free = {role: loosened(pool, pool) for role, pool in has.items()}
        super().__init__(environment, names, free)
        self.total = {role: pool.sum(axis=0) for role, pool in has.items()}
        self._next = {"workers": 0, "ps": 0}
        self._units: dict[str, tuple[Floats, Floats]] = {}
        self._most: dict[str, int] = {}

    def unit(self, job: OasisJob, role: str) -> Floats:
        """Demand of one worker or PS."""
        if job.name not in self._units:
            self._units[job.name] = self.instance.demand_of(job)
        return self._units[job.name][role == "ps"]

    def ps_needed(self, job: OasisJob, workers: int) -> int:
        """PSs that (6) asks for."""
        return self.instance.ps_needed(job, workers)

    def place(self, job: OasisJob, workers: int) -> Placement | None:
        """Book `workers` workers and the parameter servers that (6) needs."""
        return self._grow(job, Placement({}), workers)

    def extend(self, job: OasisJob, placement: Placement | None) -> Placement | None:
        """Book one more worker, and one more parameter server if (6) then needs it."""
        return self._grow(job, placement or Placement({}), 1)

    def _grow(self, job: OasisJob, placement: Placement, more: int) -> Placement | None:
        """Book so many workers more and the PSs that they need, all or none."""
        held = {"workers": placement.workers, "ps": placement.ps}
        grown = {role: dict(counts) for role, counts in held.items()}
        ps = self.ps_needed(job, placement.num_workers + more) - sum(placement.ps.values())
        for role, count in (("workers", more), ("ps", ps)):
            start = self._next[role]
            if self._book_units(job, role, count, grown[role]):
                self._next[role] = start
                added = (
                    {name: count - held[role].get(name, 0) for name, count in counts.items()}
                    for role, counts in grown.items()
                )
                self.release(job, Placement(*added))
                return None
        return Placement(**grown)

    def _book_units(
        self, job: OasisJob, role: str, count: int, booked: dict[str, int],
        fullest_of: Sequence[int] | None = None,
    ) -> int:  # fmt: skip
        """Book units one by one on servers with room; how many found none.

        They go round robin from the server after the last one used, or to the fullest of some.
        """
        demand, free = self.unit(job, role), self.free[role]
        total = np.maximum(self.total[role], np.finfo(float).tiny)
        for k in range(count):
            fits = np.flatnonzero((free >= demand).all(axis=1))
            if fullest_of is not None:
                fits = np.intersect1d(fits, fullest_of, assume_unique=True)
            if not fits.size:
                return count - k
            if fullest_of is None:
                place = int(fits[np.searchsorted(fits, self._next[role]) % fits.size])
                self._next[role] = (place + 1) % len(free)
            else:
                place = int(fits[np.argmin((free[fits] / total).sum(axis=1))])
            free[place] -= demand
            name = self.names[role][place]
            booked[name] = booked.get(name, 0) + 1
        return 0

    def best_fit(
        self, job: OasisJob, units: Units, groups: dict[tuple[str, int], list[int]]
    ) -> tuple[Placement, int]:
        """Book units by group of servers, on the fullest with room; and how many found none.

        What finds none in its group goes to any server with room.
        """
        placement, missed = Placement({}), 0
        for role, booked in (("workers", placement.workers), ("ps", placement.ps)):
            left = sum(
                self._book_units(job, role, count, booked, groups[group_role, g])
                for (group_role, g), count in units.items() if group_role == role
            )  # fmt: skip
            everywhere = range(len(self.free[role]))
            missed += self._book_units(job, role, left, booked, everywhere)
        while sum(placement.ps.values()) < self.ps_needed(job, placement.num_workers):
            self._drop_one(job, "workers", placement.workers)
        while sum(placement.ps.values()) > placement.num_workers:
            self._drop_one(job, "ps", placement.ps)
        return placement, missed

    def _drop_one(self, job: OasisJob, role: str, booked: dict[str, int]) -> None:
        name = next(reversed(booked))
        self.free[role][self.index[role][name]] += self.unit(job, role)
        booked[name] -= 1
        if not booked[name]:
            del booked[name]

    def work(self, job: OasisJob) -> Fraction:
        """Worker-slots that the job needs; a worker does one a slot."""
        return Fraction(self.instance.work_of(job))

    def max_workers(self, job: OasisJob) -> int:
        """Most workers that the empty cluster can run for the job at once."""
        if job.name not in self._most:
            self._most[job.name] = self.instance.most_workers(job)
        return self._most[job.name]
