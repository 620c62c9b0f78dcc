"""``batchsche`` in an edge-cloud network: the batch algorithm of MobiHoc 2020."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Bools, Ints
from hindsched.instances.base import JobRecord
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.occupancy import StorageLedger, no_room
from hindsched.online.engines import batching
from hindsched.online.protocol import Capabilities, Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.runs import ChunkRun, file_row

Column = tuple[bool, str]  # in the cloud or not, and worker type


@dataclass(frozen=True)
class Window:
    """A job's place in a sub-round."""

    column: Column
    workers: list[tuple[int, int]]  # by position in the column, and the chunks each trains in turn
    work: int  # slots a chunk
    together: bool  # zeta: everything in the cloud


class EdgeCloudRound(batching.BatchRound):
    """A sub-round: empty workers and PSs at the edge, and the cloud.

    It is `slots` long, begins after slot `base` and is planned in slot `slots`, when its interval
    ends. An unlimited cloud has no column: it costs nothing.
    """

    def __init__(
        self, cluster: EdgecloudInstance, base: int, slots: int, storage: StorageLedger,
        price_base: float,
    ) -> None:  # fmt: skip
        self.cluster, self.base, self.slots, self.storage = cluster, base, slots, storage
        counts: dict[Column, int] = {
            (False, kind): len(workers) for kind, workers in cluster.workers_by_type.items()
        }
        counts |= {(True, kind): n for kind, n in (cluster.cloud.workers or {}).items() if n}
        self.columns = list(counts)
        capacity = np.array(list(counts.values()), dtype=float)
        self.ledger = batching.ExponentialLedger(capacity, slots, price_base)
        self.busy = {column: np.zeros((n, slots), dtype=bool) for column, n in counts.items()}
        here = {**cluster.ps_counts}
        for kind, n in (cluster.cloud.ps or {}).items():
            here[len(cluster.servers), kind] = n
        self.ps_free = {key: np.full(slots, n) for key, n in here.items()}
        self.ps: dict[str, int] = {}  # job -> server of its PS

    def offer(self, job: EdgecloudJob, limit: float) -> batching.Offer | None:
        """Cheapest window at the edge or in the cloud."""
        cluster, windows = self.cluster, list[batching.Offer | None]()
        workers = cluster.workers_by_type.get(job.worker_type, ())
        servers = [cluster.servers[cluster.worker_list[w][0]].name for w in workers]
        ready = np.array([self._ready(job, name) for name in servers], dtype=np.int64)
        for size in sorted({-(-job.chunks // waves) for waves in range(1, job.chunks + 1)}):
            if size <= len(workers):
                windows.append(self._cheapest(job, (False, job.worker_type), ready, size, False))
        if cluster.has_cloud(job):
            count = cluster.cloud_workers(job.worker_type)
            count = job.chunks if count is None else count
            begins = np.full(count, self._ready(job, cluster.cloud.name))
            together, size = cluster.cloud_ps(job.ps_type) != 0, min(job.chunks, count)
            windows.append(self._cheapest(job, (True, job.worker_type), begins, size, together))
        offers = [offer for offer in windows if offer is not None and offer.cost < limit]
        return min(offers, key=lambda o: (round(o.cost, 9), o.last, o.plan.column), default=None)

    def _ready(self, job: EdgecloudJob, name: str) -> int:
        """First slot of the sub-round, from 0, in which a chunk sent to `name` is uploaded."""
        return max(0, job.arrival + job.upload_slots[name] - self.base - 1)

    def _cheapest(
        self, job: EdgecloudJob, column: Column, ready: Ints, size: int, together: bool
    ) -> batching.Offer | None:
        """The cheapest window on the numbered workers of a column, the earliest of those."""
        work = job.chunk_slots(self.cluster.slot_seconds, in_cloud=together)
        groups, room = [range(ready.size)], [math.inf]
        if not column[0]:  # by server, and how many chunks each can store
            stored, places = self.storage.room(job, self.slots), self.cluster.places(job)
            room = [max(0.0, stored[s]) for s, _ in places]
            ends = np.cumsum([len(members) for _, members in places]).tolist()
            groups = [range(b, e) for b, e in zip([0, *ends[:-1]], ends, strict=True)]
        waves = _waves(job.chunks, size, [len(group) for group in groups], room)
        if waves is None or waves * work > self.slots:
            return None
        length = waves * work
        busy = self.busy.get(column, np.zeros((ready.size, self.slots), dtype=bool))
        taken = np.cumsum(np.pad(busy, ((0, 0), (1, 0))), axis=1)
        free = taken[:, length:] == taken[:, :-length]
        free &= np.arange(free.shape[1])[None, :] >= ready[:, None]
        holds = np.zeros(free.shape[1])
        for group, chunks in zip(groups, room, strict=True):
            holds += np.minimum(free[list(group)].sum(axis=0) * float(waves), chunks)
        starts = np.flatnonzero((holds >= job.chunks) & self._with_ps(job, length, together))
        if not starts.size:
            return None
        of_column = np.array([other == column for other in self.columns], dtype=float)
        paid = np.concatenate(([0.0], np.cumsum(self.ledger.prices() @ of_column)))
        price = paid[starts + length] - paid[starts]
        best = int(np.argmin(np.round(price, 9)))
        first = int(starts[best])
        open_ = [[w for w in group if free[w, first]] for group in groups]
        chosen = _deal(job.chunks, waves, open_, room)
        plan = Window(column, chosen, work, together)
        cost = len(chosen) * float(price[best])
        return batching.Offer(first + 1, length, len(chosen) * of_column, cost, plan)

    def _with_ps(self, job: EdgecloudJob, length: int, together: bool) -> Bools:
        """Starts, from 0, of the windows in which a PS is free throughout."""
        starts = np.zeros(max(0, self.slots - length + 1), dtype=bool)
        if self.cluster.cloud_ps(job.ps_type) is None:
            return ~starts
        for (s, kind), free in self.ps_free.items():
            if kind == job.ps_type and (not together or s == len(self.cluster.servers)):
                short = np.concatenate(([0], np.cumsum(free < 1)))
                starts |= short[length:] == short[: starts.size]
        return starts

    def book(self, job: EdgecloudJob, offer: batching.Offer) -> None:
        """Take the workers and a PS, and store the chunks until the window ends."""
        self.ledger.book(offer)
        self.ps[job.name] = self._take_ps(job, offer)
        plan: Window = offer.plan
        if plan.column in self.busy:
            workers = [w for w, _ in plan.workers]
            self.busy[plan.column][workers, offer.start - 1 : offer.last] = True
        if not plan.column[0]:
            qualified = self.cluster.workers_by_type[job.worker_type]
            for w, chunks in plan.workers:
                self.storage.store(job, self.cluster.worker_list[qualified[w]][0], chunks)
            self.storage.end(job.name, self.base + offer.last)

    def _take_ps(self, job: EdgecloudJob, offer: batching.Offer) -> int:
        """The first PS that is free throughout, else the unlimited cloud's."""
        window = slice(offer.start - 1, offer.last)
        cloud = len(self.cluster.servers)
        for (s, kind), free in self.ps_free.items():
            fits = kind == job.ps_type and (not offer.plan.together or s == cloud)
            if fits and free[window].min() > 0:
                free[window] -= 1
                return s
        return cloud


def _waves(chunks: int, size: int, workers: list[int], room: list[float]) -> int | None:
    """Fewest chunks in turn a worker: ``ceil(chunks / size)``, more where room is short."""
    if sum(min(chunks, left) for left in room) < chunks:
        return None
    waves = -(-chunks // size)
    while sum(min(waves * n, left) for n, left in zip(workers, room, strict=True)) < chunks:
        waves += 1
    return waves


def _deal(
    chunks: int, waves: int, open_: list[list[int]], room: list[float]
) -> list[tuple[int, int]]:
    """Free workers and how many chunks each takes: all of its waves, as its server has room."""
    shares: list[tuple[int, int]] = []
    for group, left in zip(open_, room, strict=True):
        for worker in group:
            share = int(min(waves, left, chunks))
            left, chunks = left - share, chunks - share
            shares += [(worker, share)] if share else []
    return shares


class EdgecloudBatchsche(batching.GeometricBatches):
    """The batch algorithm of MobiHoc 2020 over edge workers and the cloud.

    Geometric batches with work-conserving sub-rounds. In a sub-round each job takes the cheapest
    window at exponential prices on the edge workers of its type, or the cloud, which is a server of
    infinite capacity and costs nothing; equal costs go by the earlier end, then to the edge. The
    number of workers is part of the window, and each trains whole chunks in turn, so that nothing
    is preempted or moves. Beyond the paper: a cloud whose workers are numbered is priced like the
    edge's; a window needs a parameter server (PS) that is free throughout; and under limited
    storage chunks go where there is room, if need be on more workers or longer than asked.

    Parameters
    ----------
    alpha : int or "per-batch", optional
        Sub-rounds of a batch, see `GeometricBatches`: the printed 4, per batch, or None for
        work-conserving batches.
    """

    card = Capabilities(published="MobiHoc 2020")

    def __init__(self, alpha: batching.Alpha = None) -> None:
        super().__init__(alpha)

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self.cluster: EdgecloudInstance = environment.cluster
        self._storage = StorageLedger(self.cluster)
        self._ps: dict[str, int] = {}

    def weight(self, job: EdgecloudJob) -> float:
        """A job's work at the edge, in slots."""
        return float(job.chunks * job.chunk_slots(self.cluster.slot_seconds, in_cloud=False))

    def base(self, horizon: int) -> float:
        """Lambda, ``2 tau H R F + 1`` with R = 1 (workers) and F = 1 (a job is worth its work)."""
        return 2.0 * horizon * len(self.cluster.servers) + 1.0

    def run_round(self, jobs: list[JobRecord], horizon: int) -> list[batching.Admission]:
        """Ask the jobs in order of arrival; a job is worth its work.

        Refused by (7b) is one that no server has had room for since it arrived, and that the cloud
        cannot take: waiting does not help it (7c).
        """
        for job in jobs:
            room = self._storage.room(job, horizon)
            places = self.cluster.places(job)
            if not self.cluster.has_cloud(job) and sum(room[s] for s, _ in places) < job.chunks:
                raise no_room(job)
        current = EdgeCloudRound(
            self.cluster, self.round_base, horizon, self._storage, self.base(horizon)
        )
        admitted = batching.post_prices(current, jobs, [self.weight(job) for job in jobs])
        self.post(current.ledger, [kind for _, kind in current.columns])
        self._ps |= current.ps
        return admitted

    def rows(self, admission: batching.Admission, base: int) -> list[Assignment]:
        """Chunks dealt out to the workers in turn, one after the other on each."""
        job, offer = admission.job, admission.offer
        plan: Window = offer.plan
        first, cluster = base + offer.start, self.cluster
        cloud, workers = len(cluster.worker_list), cluster.workers_by_type.get(job.worker_type, ())
        begins = sorted(
            (first + number * plan.work, cloud if plan.column[0] else workers[w])
            for w, share in plan.workers for number in range(share)
        )  # fmt: skip
        runs = [
            ChunkRun(0, number, place, begin, begin + plan.work - 1)
            for number, (begin, place) in enumerate(begins, 1)
        ]
        held = ChunkRun(0, 0, self._ps[job.name], first, max(run.last for run in runs))
        return [file_row(cluster, run) for run in (*runs, held)]
