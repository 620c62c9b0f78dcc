"""How the cluster and the jobs' progress follow from decisions: workers and PSs, slot by slot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.decimals import loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.online.cluster_state import OptionalJobsState, this_slot
from hindsched.online.dynamics import Placement, ServerCluster
from hindsched.online.protocol import Environment

State = OptionalJobsState  # rows of workers and PSs; who did not reach its work was given up
committed_rows = this_slot  # workers are elastic


class OasisCluster(ServerCluster):
    """Placement is round-robin over the servers that fit; work is counted in worker-slots."""

    def __init__(self, environment: Environment) -> None:
        self.instance: OasisInstance = environment.cluster
        servers = {"workers": self.instance.worker_servers, "ps": self.instance.ps_servers}
        has = {"workers": self.instance.worker_capacity, "ps": self.instance.ps_capacity}
        names = {role: [server.name for server in own] for role, own in servers.items()}
        free = {role: loosened(own, own) for role, own in has.items()}
        super().__init__(environment, names, free)
        self.total = {role: own.sum(axis=0) for role, own in has.items()}
        self._next = {"workers": 0, "ps": 0}
        self._units: dict[str, dict[str, Floats]] = {}
        self._most: dict[str, int] = {}

    def unit(self, job: OasisJob, role: str) -> Floats:
        """Demand of one worker or PS."""
        if job.name not in self._units:
            self._units[job.name] = dict(
                zip(("workers", "ps"), self.instance.demand_of(job), strict=True)
            )
        return self._units[job.name][role]

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
        ps = self.ps_needed(job, placement.num_workers + more) - sum(placement.ps.values())
        grown = Placement(dict(placement.workers), dict(placement.ps))
        if not self._add(job, "workers", more, grown.workers):
            return None
        if not self._add(job, "ps", ps, grown.ps):
            more_workers = {
                name: count - placement.workers.get(name, 0)
                for name, count in grown.workers.items()
            }
            self.release(job, Placement(more_workers))
            return None
        return grown

    def _add(self, job: OasisJob, role: str, count: int, booked: dict[str, int]) -> bool:
        """Book units round-robin from the server after the last one used, all or none."""
        start = self._next[role]
        places: list[int] = []
        for _ in range(count):
            fits = np.flatnonzero((self.free[role] >= self.unit(job, role)).all(axis=1))
            if fits.size == 0:
                for place in places:
                    self.free[role][place] += self.unit(job, role)
                self._next[role] = start
                return False
            places.append(int(fits[np.searchsorted(fits, self._next[role]) % fits.size]))
            self._next[role] = (places[-1] + 1) % len(self.free[role])
            self.free[role][places[-1]] -= self.unit(job, role)
        for place in places:
            name = self.names[role][place]
            booked[name] = booked.get(name, 0) + 1
        return True

    def best_fit(
        self, job: OasisJob, counts: dict[str, list[int]], groups: dict[str, list[list[int]]]
    ) -> tuple[Placement, int]:
        """Book units by group of servers, on the fullest with room; and how many found none.

        What finds none in its group goes to any server with room.
        """
        placement, missed = Placement({}), 0
        roles = {"workers": placement.workers, "ps": placement.ps}
        for role, own in counts.items():
            left = 0
            for group, count in zip(groups[role], own, strict=True):
                left += self._add_to_fullest(job, role, group, count, roles[role])
            everywhere = list(range(len(self.free[role])))
            missed += self._add_to_fullest(job, role, everywhere, left, roles[role])
        while sum(placement.ps.values()) < self.ps_needed(job, placement.num_workers):
            self._drop_one(job, "workers", placement.workers)
        while sum(placement.ps.values()) > placement.num_workers:
            self._drop_one(job, "ps", placement.ps)
        return placement, missed

    def _add_to_fullest(
        self, job: OasisJob, role: str, servers: list[int], count: int, booked: dict[str, int]
    ) -> int:
        """Book units one by one on the fullest of the servers with room; how many found none."""
        demand, free = self.unit(job, role), self.free[role]
        total = np.maximum(self.total[role], np.finfo(float).tiny)
        among = np.array(servers)
        for k in range(count):
            fits = among[(free[among] >= demand).all(axis=1)]
            if not fits.size:
                return count - k
            place = int(fits[np.argmin((free[fits] / total).sum(axis=1))])
            free[place] -= demand
            name = self.names[role][place]
            booked[name] = booked.get(name, 0) + 1
        return 0

    def _drop_one(self, job: OasisJob, role: str, booked: dict[str, int]) -> None:
        name = next(reversed(booked))
        self.free[role][self.index[role][name]] += self.unit(job, role)
        booked[name] -= 1
        if not booked[name]:
            del booked[name]

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


build_cluster = OasisCluster
