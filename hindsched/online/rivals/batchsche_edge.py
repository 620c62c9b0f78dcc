"""``batchsche`` in an edge-cloud network: the batch algorithm of MobiHoc 2020 as the paper uses it.

Geometric batches with work-conserving sub-rounds (`online/batching.py`). In a sub-round each job
takes the cheapest window at exponential prices on the edge workers of its type, or the cloud, which
is a server of infinite capacity and costs nothing; equal costs go by the earlier end, then to the
edge. A job asks for ``min(chunks, requested workers)`` workers at once, each of which trains whole
chunks one after the other, so that nothing is preempted and nothing moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.edgecloud import EdgecloudInstance, EdgecloudJob
from hindsched.online.batching import (
    Admission,
    BatchRound,
    ExponentialLedger,
    GeometricBatches,
    Offer,
    post_prices,
)
from hindsched.online.protocol import Environment
from hindsched.online.rivals.gang import all_cloud_rows
from hindsched.solutions.base import Assignment

PRICE_BASE = 2.0
"""The price of a full type is 1: a worker-slot is then worth what it earns."""


class EdgeCloudRound(BatchRound):
    """A sub-round: empty workers and PSs at the edge, and the cloud.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster.
    base : int
        Last slot before the sub-round.
    slots : int
        Its length.
    """

    def __init__(self, cluster: EdgecloudInstance, base: int, slots: int) -> None:
        self.cluster, self.base, self.slots = cluster, base, slots
        self.kinds = list(cluster.workers_by_type)
        counts = [len(cluster.workers_by_type[kind]) for kind in self.kinds]
        self.ledger = ExponentialLedger(np.array(counts, dtype=float), slots, PRICE_BASE)
        self.busy = np.zeros((len(cluster.worker_list), slots), dtype=bool)
        self.ps_free = {key: np.full(slots, n) for key, n in cluster.ps_counts.items()}

    def offer(self, job: EdgecloudJob, limit: float) -> Offer | None:
        """Cheapest window; the cloud's costs nothing."""
        found = [o for o in (self._at_edge(job), self._in_cloud(job)) if o is not None]
        found = [o for o in found if o.cost < limit]
        return min(found, key=lambda o: (o.cost, o.last, o.plan is None), default=None)

    def _in_cloud(self, job: EdgecloudJob) -> Offer | None:
        unlimited = (
            self.cluster.cloud_workers(job.worker_type),
            self.cluster.cloud_ps(job.ps_type),
        )
        if unlimited != (None, None):
            return None
        ready = job.arrival + job.upload_slots[self.cluster.cloud.name]
        start = max(1, ready - self.base)
        length = job.chunk_slots(self.cluster.slot_seconds, in_cloud=True)
        if start + length - 1 > self.slots:
            return None
        return Offer(start, length, np.zeros(len(self.kinds)), 0.0)

    def _at_edge(self, job: EdgecloudJob) -> Offer | None:
        workers = list(self.cluster.workers_by_type.get(job.worker_type, ()))
        if not workers:
            return None
        size = min(job.chunks, job.requested_workers or job.chunks, len(workers))
        waves = -(-job.chunks // size)
        length = waves * job.chunk_slots(self.cluster.slot_seconds, in_cloud=False)
        if length > self.slots:
            return None
        taken = np.cumsum(np.pad(self.busy[workers], ((0, 0), (1, 0))), axis=1)
        free = taken[:, length:] == taken[:, :-length]
        names = [self.cluster.servers[self.cluster.worker_list[w][0]].name for w in workers]
        ready = np.array([job.arrival + job.upload_slots[name] - self.base for name in names])
        free &= np.arange(1, free.shape[1] + 1)[None, :] >= ready[:, None]
        starts = np.flatnonzero(free.sum(axis=0) >= size)
        if not starts.size:
            return None
        kind = self.kinds.index(job.worker_type)
        paid = np.concatenate(([0.0], np.cumsum(self.ledger.prices()[:, kind])))
        cost = size * (paid[starts + length] - paid[starts])
        best = int(starts[np.argmin(np.round(cost, 9))])
        chosen = [workers[i] for i in np.flatnonzero(free[:, best])[:size]]
        demand = np.zeros(len(self.kinds))
        demand[kind] = size
        return Offer(best + 1, length, demand, float(cost.min()), chosen)

    def book(self, job: EdgecloudJob, offer: Offer) -> None:
        """Take the workers."""
        self.ledger.book(offer)
        if offer.plan is not None:
            self.busy[offer.plan, offer.start - 1 : offer.last] = True

    def take_ps(self, job: EdgecloudJob, offer: Offer) -> str:
        """The first PS that is free throughout, else the cloud's."""
        window = slice(offer.start - 1, offer.last)
        for (s, kind), free in self.ps_free.items():
            if kind == job.ps_type and free[window].min() > 0:
                free[window] -= 1
                return self.cluster.servers[s].name
        if self.cluster.cloud_ps(job.ps_type) is not None:
            raise InputError("cloud.ps", job.ps_type, "must be unlimited for batchsche")
        return self.cluster.cloud.name


class BatchSche(GeometricBatches):
    """Batches over edge workers and the cloud.

    Parameters
    ----------
    first_horizon : int
        tau_1, the end of the first batch.
    """

    def __init__(self, first_horizon: int = 1) -> None:
        super().__init__(None, first_horizon)

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        assert isinstance(environment.cluster, EdgecloudInstance)
        self.cluster = environment.cluster
        self._ps: dict[str, str] = {}

    def run_round(self, jobs: list[Any], horizon: int) -> list[Admission]:
        """Ask the jobs in order of arrival; a job is worth its work."""
        current = EdgeCloudRound(self.cluster, self.round_base, horizon)
        seconds = self.cluster.slot_seconds
        values = [float(j.chunks * j.chunk_slots(seconds, in_cloud=False)) for j in jobs]
        admitted = post_prices(current, jobs, values)
        for one in admitted:
            if one.offer.plan is not None:
                self._ps[one.job.name] = current.take_ps(one.job, one.offer)
        return admitted

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Chunks dealt out to the workers in turn, one after the other on each."""
        job, offer = admission.job, admission.offer
        if offer.plan is None:
            return all_cloud_rows(self.cluster, job, base + offer.start)
        work = job.chunk_slots(self.cluster.slot_seconds, in_cloud=False)
        rows: list[Assignment] = []
        for number in range(job.chunks):
            s, position, _ = self.cluster.worker_list[offer.plan[number % len(offer.plan)]]
            first = base + offer.start + number // len(offer.plan) * work
            where = {"server": self.cluster.servers[s].name, "worker": position}
            rows.append({"chunk": number + 1, **where, "from": first, "to": first + work - 1})
        first, last = base + offer.start, base + offer.last
        return [*rows, {"ps": self._ps[job.name], "from": first, "to": last}]
