"""How the cluster and the jobs' progress follow from decisions: one placement a job and slot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import Refused
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.modes import most_workers
from hindsched.online.baselines.cluster import Counts, Gang, GangCluster, fill
from hindsched.online.cluster_state import ClusterState
from hindsched.online.protocol import Environment, Report
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import BatchschedSolution


class BatchschedState(ClusterState[BatchschedJob]):
    """Rows of windows, and how much work they leave undone: every job must finish."""

    instance: BatchschedInstance

    def __init__(self, instance: BatchschedInstance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._left = {job.name: Fraction(job.total_minibatches) for job in instance.jobs}

    def add_row(self, name: str, row: Assignment) -> None:
        """Add a row and count the work that it does."""
        super().add_row(name, row)
        read = BatchschedSolution.read_row(self.instance, name, row)
        progress = BatchschedSolution.row_progress(self.instance, self.jobs[name], read)
        if name in self._left:
            self._left[name] -= (row["to"] - row["from"] + 1) * progress
            if self._left[name] <= 0:
                del self._left[name]

    def is_over(self, slot: int) -> bool:
        """Every job has rows that finish it."""
        return not self._left

    def report(self) -> Report:
        """Name the jobs that were never finished."""
        return {"unfinished": list(self._left)}


class BatchschedCluster(GangCluster):
    """Each job has its ideal pair of types, and goes to one server if one has room.

    The ideal types minimise the time per mini-batch over several servers. N workers have ``ceil(N b
    / B)`` PSs on one host: the smallest server (by free capacity) that takes all; else the PSs are
    on the server with most room for them (the next where the workers then have no room), and the
    workers where most room is for workers. A job that fits nowhere so has a single PS on one
    server, where (2i) asks for no more.
    """

    instance: BatchschedInstance
    always_typed = True

    def __init__(self, environment: Environment) -> None:
        capacity = environment.cluster.server_capacity
        super().__init__(environment, loosened(capacity, capacity))
        self._scale = np.where(self.total["ps"] > 0, self.total["ps"], 1.0)

    def choose_gang(self, job: BatchschedJob) -> Gang:
        """The types with the least time per mini-batch among the pairs that fit at all."""
        instance = self.instance
        options = sorted(
            (instance.exact_time(job, m, p, False, max(2, job.chunks)), m, p)
            for m, p in np.ndindex(instance.ps_ratio.shape)
        )
        for few_ps in (False, True):
            for _, m, p in options:
                for count in range(most_workers(instance, job), 0, -1):
                    gang = Gang(m, p, count, few_ps)
                    if self.find(self.empty, gang, count) is not None:
                        return gang
        raise Refused("(2h)", f"job {job.name}", "no pair of types fits the empty cluster")

    def ps_needed(self, job: BatchschedJob, workers: int) -> int:
        """PSs that (2i) asks for."""
        return self.num_ps(self.gang(job), workers)

    def find(self, free: Floats, gang: Gang, workers: int) -> tuple[Counts, Counts] | None:
        """The smallest server that takes all, else the PSs where most fit and workers around."""
        worker, server = self.demand(gang, "workers"), self.demand(gang, "ps")
        num_ps = self.num_ps(gang, workers)
        beside = min(1, num_ps) if gang.few_ps else num_ps
        alone = np.flatnonzero((workers * worker + beside * server <= free).all(axis=1))
        if alone.size:
            h = int(alone[np.argmin((free[alone] / self._scale).sum(axis=1))])
            return {h: workers}, ({h: beside} if beside else {})
        if not num_ps:
            spread = _spread(free, workers, worker)
            return None if spread is None else (spread, {})
        room = how_many_left(free, server, num_ps)
        for host in np.argsort(-room, kind="stable"):
            if room[host] < num_ps:
                break
            left = free.copy()
            left[host] -= num_ps * server
            spread = _spread(left, workers, worker)
            if spread is not None:
                return spread, {int(host): num_ps}
        return None


def _spread(free: Floats, count: int, worker: Floats) -> Counts | None:
    """Put workers on the servers with most room for them."""
    room = how_many_left(free, worker, count)
    return fill(room, np.argsort(-room, kind="stable"), count) if room.sum() >= count else None
