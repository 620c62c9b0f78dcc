"""How the cluster and the jobs' progress follow from decisions: workers and PSs, slot by slot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.decimals import loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.online.cluster_state import OptionalJobsState, this_slot
from hindsched.online.dynamics import Cluster, Placement
from hindsched.online.protocol import Environment, draws
from hindsched.solutions.base import Assignment

MOST_FIXED_WORKERS = 30
"""Fixed gang sizes are drawn from 1..min(30, most workers)."""


class State(OptionalJobsState[OasisJob]):
    """Rows of workers and PSs; jobs that did not reach their work were given up."""


committed_rows = this_slot  # workers are elastic


class OasisCluster(Cluster[OasisJob]):
    """Placement is round-robin over the servers that fit; work is counted in worker-slots."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.instance: OasisInstance = environment.cluster  # type: ignore[assignment]
        self._names = {
            "workers": [server.name for server in self.instance.worker_servers],
            "ps": [server.name for server in self.instance.ps_servers],
        }
        self._index = {
            role: {name: i for i, name in enumerate(names)} for role, names in self._names.items()
        }
        capacities = {"workers": self.instance.worker_capacity, "ps": self.instance.ps_capacity}
        self._free = {role: loosened(free, free) for role, free in capacities.items()}
        self._total = {role: capacity.sum(axis=0) for role, capacity in capacities.items()}
        self._next = {"workers": 0, "ps": 0}
        self._demands: dict[str, dict[str, Floats]] = {}
        self._most: dict[str, int] = {}

    def place(self, job: OasisJob, workers: int) -> Placement | None:
        """Book `workers` workers and the parameter servers that (6) needs."""
        return self._grow(job, Placement({}), workers)

    def extend(self, job: OasisJob, placement: Placement | None) -> Placement | None:
        """Book one more worker, and one more parameter server if (6) then needs it."""
        return self._grow(job, placement or Placement({}), 1)

    def _grow(self, job: OasisJob, placement: Placement, more: int) -> Placement | None:
        target = placement.num_workers + more
        more_ps = self.instance.ps_needed(job, target) - sum(placement.ps.values())
        new_workers = self._book_units(job, "workers", more)
        if new_workers is None:
            return None
        new_ps = self._book_units(job, "ps", more_ps)
        if new_ps is None:
            self._give_back(job, "workers", new_workers)
            return None
        return Placement(_added(placement.workers, new_workers), _added(placement.ps, new_ps))

    def _book_units(self, job: OasisJob, role: str, count: int) -> dict[str, int] | None:
        """Round-robin from the server after the last one used; None (nothing booked) if no room."""
        demand = self._demand(job)[role]
        free = self._free[role]
        booked: dict[str, int] = {}
        start = self._next[role]
        for _ in range(count):
            fits = np.flatnonzero((free >= demand).all(axis=1))
            if fits.size == 0:
                self._give_back(job, role, booked)
                self._next[role] = start
                return None
            place = fits[np.searchsorted(fits, self._next[role]) % fits.size]
            free[place] -= demand
            self._next[role] = (int(place) + 1) % len(free)
            name = self._names[role][place]
            booked[name] = booked.get(name, 0) + 1
        return booked

    def server_name(self, role: str, server: int) -> str:
        """Name of a server by its position."""
        return self._names[role][server]

    def best_fit(
        self, job: OasisJob, counts: dict[str, list[int]], groups: dict[str, list[list[int]]]
    ) -> tuple[Placement, int]:
        """Book units by group of servers, on the fullest with room; and how many found none.

        What finds none in its group goes to any server with room.
        """
        booked: dict[str, dict[str, int]] = {"workers": {}, "ps": {}}
        missed = 0
        for role, own in counts.items():
            everywhere = list(range(len(self._free[role])))
            left = 0
            for group, count in zip(groups[role], own, strict=True):
                left += self._book_best(job, role, group, count, booked[role])
            missed += self._book_best(job, role, everywhere, left, booked[role])
        workers, ps = booked["workers"], booked["ps"]
        while sum(ps.values()) < self.instance.ps_needed(job, sum(workers.values())):
            self._drop_one(job, "workers", workers)
        while sum(ps.values()) > sum(workers.values()):
            self._drop_one(job, "ps", ps)
        return Placement(workers, ps), missed

    def _book_best(
        self, job: OasisJob, role: str, servers: list[int], count: int, booked: dict[str, int]
    ) -> int:
        """Book units one by one on the fullest of the servers with room; how many found none."""
        demand, free = self._demand(job)[role], self._free[role]
        total = np.maximum(self._total[role], np.finfo(float).tiny)
        among = np.array(servers)
        for k in range(count):
            fits = among[(free[among] >= demand).all(axis=1)]
            if not fits.size:
                return count - k
            place = int(fits[np.argmin((free[fits] / total).sum(axis=1))])
            free[place] -= demand
            name = self._names[role][place]
            booked[name] = booked.get(name, 0) + 1
        return 0

    def _drop_one(self, job: OasisJob, role: str, booked: dict[str, int]) -> None:
        name = next(reversed(booked))
        self._give_back(job, role, {name: 1})
        booked[name] -= 1
        if not booked[name]:
            del booked[name]

    def _give_back(self, job: OasisJob, role: str, booked: dict[str, int]) -> None:
        demand = self._demand(job)[role]
        for name, count in booked.items():
            self._free[role][self._index[role][name]] += count * demand

    def book(self, job: OasisJob, placement: Placement) -> None:
        """Book a placement that is known to fit."""
        for role, counts in (("workers", placement.workers), ("ps", placement.ps)):
            demand = self._demand(job)[role]
            for name, count in counts.items():
                self._free[role][self._index[role][name]] -= count * demand

    def release(self, job: OasisJob, placement: Placement) -> None:
        """Give a placement back."""
        self._give_back(job, "workers", placement.workers)
        self._give_back(job, "ps", placement.ps)

    def fits(self, job: OasisJob, placement: Placement) -> bool:
        """Whether a placement fits what is free now."""
        return all(
            (self._free[role][self._index[role][name]] >= count * self._demand(job)[role]).all()
            for role, counts in (("workers", placement.workers), ("ps", placement.ps))
            for name, count in counts.items()
        )

    def work(self, job: OasisJob) -> Fraction:
        """Worker-slots that the job needs."""
        return Fraction(self.instance.work_of(job))

    def progress(self, job: OasisJob, placement: Placement) -> Fraction:
        """Each worker does one worker-slot a slot."""
        return Fraction(placement.num_workers)

    def speed(self, job: OasisJob, workers: int) -> float:
        """Each worker does one worker-slot a slot."""
        return float(workers)

    def max_workers(self, job: OasisJob) -> int:
        """Most workers that the empty cluster can run for the job at once."""
        if job.name not in self._most:
            self._most[job.name] = self.instance.most_workers(job)
        return self._most[job.name]

    def drawn_workers(self, job: OasisJob) -> int:
        """Draw from 1..min(30, most workers) by (seed, job name)."""
        most = min(MOST_FIXED_WORKERS, self.max_workers(job))
        return 1 + int(draws(self.environment.seed, job.name, "workers").random() * most)

    def shares(self, job: OasisJob, workers: int) -> Floats:
        """Share of each resource's total over the worker servers, then over the PS servers."""
        counts = {"workers": workers, "ps": self.instance.ps_needed(job, workers)}
        parts = []
        for role, count in counts.items():
            total, needed = self._total[role], self._demand(job)[role] * count
            parts.append(np.divide(needed, total, where=total > 0, out=np.zeros(len(total))))
        return np.concatenate(parts)

    def row(self, job: OasisJob, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file."""
        return {"from": first, "to": last, "workers": placement.workers, "ps": placement.ps}

    def _demand(self, job: OasisJob) -> dict[str, Floats]:
        if job.name not in self._demands:
            worker, ps = self.instance.demand_of(job)
            self._demands[job.name] = {"workers": worker, "ps": ps}
        return self._demands[job.name]


def build_cluster(environment: Environment) -> OasisCluster:
    """Return the cluster as baselines see it."""
    return OasisCluster(environment)


def _added(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
