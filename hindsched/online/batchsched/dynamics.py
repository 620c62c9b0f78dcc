"""How the cluster and the jobs' progress follow from decisions: one placement a job and slot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import Refused
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.modes import ps_for
from hindsched.online.cluster_state import ClusterState, whole_window
from hindsched.online.dynamics import GangCluster, Placement
from hindsched.online.protocol import Environment, Report, draws
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import (
    BatchschedRow,
    read_row,
    row_progress,
    write_row,
)

MOST_FIXED_WORKERS = 30
"""Fixed gang sizes are drawn from 1..min(30, most workers)."""


class State(ClusterState[BatchschedJob]):
    """Rows of windows, and how much work they leave undone: every job must finish."""

    instance: BatchschedInstance

    def __init__(self, instance: BatchschedInstance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._left = {job.name: Fraction(job.total_minibatches) for job in instance.jobs}
        self._progress: dict[str, tuple[Assignment, Fraction]] = {}

    def relaxed(self, formulation: str) -> str:
        """Jobs may pause, resize and move."""
        return "preemptive"

    def add_row(self, name: str, row: Assignment) -> None:
        """Add a row and count the work that it does."""
        super().add_row(name, row)
        kept = self.rows[name][-1]
        known = self._progress.get(name)
        if known is None or known[0] is not kept:
            read = read_row(self.instance, name, row)
            known = kept, row_progress(self.instance, self.jobs[name], read)
            self._progress[name] = known
        if name in self._left:
            self._left[name] -= (row["to"] - row["from"] + 1) * known[1]
            if self._left[name] <= 0:
                del self._left[name]

    def is_over(self, slot: int) -> bool:
        """Every job has rows that finish it."""
        return not self._left

    def report(self) -> Report:
        """Name the jobs that were never finished."""
        return {"unfinished": list(self._left)}


committed_rows = whole_window


class BatchschedCluster(GangCluster[BatchschedJob]):
    """Each job has its ideal pair of types, and goes to one server if one has room.

    The ideal worker and PS type minimise the time per mini-batch over several servers. N workers
    have ``ceil(N b / B)`` PSs on one host. Placement: the smallest server (by free capacity) that
    takes all; else the PSs on the server with most room for them (the next where the workers then
    have no room), and the workers on the servers with most room for workers. A job that fits
    nowhere so has a single PS when it stands on one server, where (2i) asks for no more.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.instance: BatchschedInstance = environment.cluster  # type: ignore[assignment]
        self._whole = loosened(self.instance.server_capacity, self.instance.server_capacity)
        self._free = self._whole.copy()
        self._total = np.where(self._free.sum(axis=0) > 0, self._free.sum(axis=0), 1.0)
        self._names = self.instance.server_names
        self._index = {name: h for h, name in enumerate(self._names)}
        self._gangs: dict[str, tuple[int, int, int, bool]] = {}
        self._speeds: dict[tuple[str, int], float] = {}
        self._held: dict[str, tuple[Placement, Assignment, Fraction]] = {}

    def gang(self, job: BatchschedJob) -> tuple[int, int, int, bool]:
        """Ideal worker and PS type, most workers of them, and whether with a single PS.

        The types are those with the least time per mini-batch among the pairs that fit at all.
        """
        if job.name not in self._gangs:
            instance = self.instance
            options = sorted(
                (instance.minibatch_time(job, m, p, False, max(2, job.chunks)), m, p)
                for m in range(len(instance.worker_types))
                for p in range(max(1, instance.num_ps_types))
            )
            counts = range(min(job.chunks, instance.most_workers), 0, -1)
            fitting = (
                (m, p, count, few_ps)
                for few_ps in (False, True)
                for _, m, p in options
                for count in counts
                if self._find(self._whole, count, m, p, few_ps) is not None
            )
            found = next(fitting, None)
            if found is None:
                rule = "no pair of types fits the empty cluster"
                raise Refused("(2h)", f"job {job.name}", rule)
            self._gangs[job.name] = found
        return self._gangs[job.name]

    def _num_ps(self, count: int, m: int, p: int) -> int:
        return int(ps_for(count, self.instance.ps_ratio[m, p]))

    def _find(
        self, free: Floats, count: int, m: int, p: int, few_ps: bool
    ) -> tuple[dict[int, int], dict[int, int]] | None:
        """Workers and PSs by server, or None."""
        instance = self.instance
        worker = instance.worker_demand[m]
        num_ps = self._num_ps(count, m, p) if instance.has_ps else 0
        server = instance.ps_demand[p] if instance.has_ps else np.zeros_like(worker)
        beside = min(1, num_ps) if few_ps else num_ps
        alone = np.flatnonzero((count * worker + beside * server <= free).all(axis=1))
        if alone.size:
            size = (free[alone] / self._total).sum(axis=1)
            h = int(alone[np.argmin(size)])
            return {h: count}, ({h: beside} if beside else {})
        if not num_ps:
            found = self._spread(free, count, worker)
            return None if found is None else (found, {})
        room = how_many_left(free, server, num_ps)
        for host in np.argsort(-room, kind="stable"):
            if room[host] < num_ps:
                break
            left = free.copy()
            left[host] -= num_ps * server
            found = self._spread(left, count, worker)
            if found is not None:
                return found, {int(host): num_ps}
        return None

    def _spread(self, free: Floats, count: int, worker: Floats) -> dict[int, int] | None:
        """Put workers on the servers with most room for them."""
        room = how_many_left(free, worker, count)
        if room.sum() < count:
            return None
        workers: dict[int, int] = {}
        for h in np.argsort(-room, kind="stable"):
            take = min(int(room[h]), count)
            if take:
                workers[int(h)] = take
                count -= take
            if not count:
                break
        return workers

    def place(self, job: BatchschedJob, workers: int) -> Placement | None:
        """Book `workers` workers and their PSs."""
        placement = self._place_on(self._free, job, workers)
        if placement is not None:
            self.book(job, placement)
        return placement

    def _place_on(self, free: Floats, job: BatchschedJob, workers: int) -> Placement | None:
        m, p, _, few_ps = self.gang(job)
        found = self._find(free, workers, m, p, few_ps)
        if found is None:
            return None
        by_name = [{self._names[h]: n for h, n in part.items()} for part in found]
        return Placement(by_name[0], by_name[1], {"worker_type": m, "ps_type": p})

    def change(self, placement: Placement, sign: int) -> None:
        """Add `sign` times a placement's resources to what is free."""
        instance = self.instance
        worker = instance.worker_demand[placement.facts["worker_type"]]
        for name, count in placement.workers.items():
            self._free[self._index[name]] += sign * count * worker
        for name, count in placement.ps.items():
            server = instance.ps_demand[placement.facts["ps_type"]]
            self._free[self._index[name]] += sign * count * server

    def fits(self, job: BatchschedJob, placement: Placement) -> bool:
        """Whether a placement fits what is free now."""
        self.change(placement, -1)
        ok = bool((self._free >= 0).all())
        self.change(placement, 1)
        return ok

    def work(self, job: BatchschedJob) -> Fraction:
        """Mini-batches to train."""
        return Fraction(job.total_minibatches)

    def progress(self, job: BatchschedJob, placement: Placement) -> Fraction:
        """Mini-batches that the placement's workers train in one slot."""
        return self._facts(job, placement)[2]

    def _facts(
        self, job: BatchschedJob, placement: Placement
    ) -> tuple[Placement, Assignment, Fraction]:
        """A placement, its row and its progress, kept for as long as the job holds it."""
        known = self._held.get(job.name)
        if known is None or known[0] is not placement:
            read = self._read(placement, 1, 1)
            row = write_row(self.instance, read)
            known = (placement, row, row_progress(self.instance, job, read))
            self._held[job.name] = known
        return known

    def speed(self, job: BatchschedJob, workers: int) -> float:
        """Mini-batches a slot where the empty cluster would place the workers; 0 if it cannot."""
        key = (job.name, workers)
        if key not in self._speeds:
            alone = self._place_on(self._whole, job, workers)
            read = None if alone is None else self._read(alone, 1, 1)
            done = 0 if read is None else row_progress(self.instance, job, read)
            self._speeds[key] = float(done)
        return self._speeds[key]

    def max_workers(self, job: BatchschedJob) -> int:
        """Most workers of the ideal type on the empty cluster."""
        return self.gang(job)[2]

    def drawn_workers(self, job: BatchschedJob) -> int:
        """Requested in the file, else drawn from 1..min(30, most workers) by (seed, job name)."""
        most = self.max_workers(job)
        if job.requested_workers is not None:
            return min(job.requested_workers, most)
        most = min(MOST_FIXED_WORKERS, most)
        return 1 + int(draws(self.environment.seed, job.name, "workers").random() * most)

    def shares(self, job: BatchschedJob, workers: int) -> Floats:
        """Share of each resource's total that the workers and their PSs hold."""
        m, p, _, _ = self.gang(job)
        needed = workers * self.instance.worker_demand[m]
        if self.instance.has_ps:
            needed = needed + self._num_ps(workers, m, p) * self.instance.ps_demand[p]
        found: Floats = needed / self._total
        return found

    def row(self, job: BatchschedJob, placement: Placement, first: int, last: int) -> Assignment:
        """Row of the solution file."""
        return {**self._facts(job, placement)[1], "from": first, "to": last}

    def _read(self, placement: Placement, first: int, last: int) -> BatchschedRow:
        workers = np.zeros(len(self._names), dtype=np.int64)
        ps = np.zeros_like(workers)
        for name, count in placement.workers.items():
            workers[self._index[name]] = count
        for name, count in placement.ps.items():
            ps[self._index[name]] = count
        ps_type = placement.facts["ps_type"] if self.instance.has_ps else -1
        return BatchschedRow(first, last, placement.facts["worker_type"], ps_type, workers, ps)


def build_cluster(environment: Environment) -> BatchschedCluster:
    """Return the cluster as baselines see it."""
    return BatchschedCluster(environment)
