"""A_greedy (Algorithms 2-4): where each chunk of an arriving job goes; A_ps: how it is served.

=====================  ==========================================================================
paper                  here
=====================  ==========================================================================
``gamma_jd``           1 / `key`, key = D_j p_j: highest rate first is smallest key first
``Q_jdsw`` (5)         `increment`
``A(t_0)``             the worker's queue carried on to ``t_0 = r_j + Delta_js`` with no arrivals
``alpha_jd``           `Dispatch.alphas`: the Q of each chunk when it was placed
``alpha''``            `Dispatch.corrected_alpha`: with it the dual (6) is feasible
=====================  ==========================================================================

Read with the errata of the family's page: after a chunk is placed only its worker's Q changes, by
exactly ``p / D``, because chunks of one job tie and wait for each other; the cloud's Q is that of
zeta = 1 for the first chunk and of zeta = 0 after an edge chunk; ties go to the edge, then to the
lower worker. Times are real, so that the same code serves whole slots and (1 + epsilon) speed.

A_ps (Algorithm 5, with the free PSs that it forgets): a job keeps its parameter server (PS) while
it runs; one that starts to run gets a random free PS of its type at the edge, else one in the
cloud. Where the cloud's PSs are numbered, a job that finds none free waits for the next slot, and
the workers meanwhile serve the next job of their queues; PSs go to the jobs of highest rate first.
In the cloud nothing is interrupted: chunks begin as planned or, where PSs are numbered, in the
order in which they are ready.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.resources import (
    CloudWorkers,
    ParameterServers,
    no_room,
    run_changes,
)
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.runs import ChunkRun, place_name, row_of
from hindsched.solvers.kernels.edgecloud.preemptive_queue import QueueState, entry_of

Increment = Literal["printed", "marginal"]
DIGITS = 9  # Q is compared after rounding to this many digits, so that ties do not hang on rounding


@dataclass
class Dispatch:
    """Where a job's chunks go."""

    together: bool = False  # zeta: the whole job and its PS are in the cloud
    workers: list[tuple[int, int]] = field(default_factory=list)  # chunk and worker at the edge
    cloud: list[tuple[int, float, float]] = field(default_factory=list)  # chunk, begin, end
    alphas: list[float] = field(default_factory=list)  # Q of each chunk when it was placed
    corrected_alpha: float = np.inf  # alpha'' of each of the job's chunks


@dataclass
class _Offer:
    """What the edge offers an arriving job: its workers, and Q of the next chunk on each."""

    workers: Ints
    servers: list[int]
    ready: Floats
    first: list[float]  # printed: of the first chunk; marginal: of the next
    heap: list[tuple[float, int]]
    room: list[float]
    corrected_alpha: float
    counts: dict[int, int] = field(default_factory=dict)


class Dispatcher:
    """Places arriving jobs on workers that serve by priority.

    `increment` is Q of equation (5), or the exact increase of the planned sum of weighted
    completions. With `escape` a job goes to the cloud as a whole if its planned last chunk would
    end later than there. A_online-E does not `use_cloud` but where the edge has no room at all.
    """

    def __init__(
        self, cluster: EdgecloudInstance, increment: Increment = "printed", escape: bool = False,
        use_cloud: bool = True,
    ) -> None:  # fmt: skip
        self.cluster, self.increment = cluster, increment
        self.escape, self.use_cloud = escape, use_cloud
        self.queues = QueueState(len(cluster.worker_list))
        self._names = [server.name for server in cluster.servers]
        self._workers = {
            kind: np.array(found, dtype=np.int64) for kind, found in cluster.workers_by_type.items()
        }
        self._server = np.array([s for s, _, _ in cluster.worker_list], dtype=np.int64)
        self._cloud = CloudWorkers(cluster)

    def place(
        self,
        index: int, job: EdgecloudJob, edge_work: float, cloud_work: float,
        room: list[float] | None = None, may_be_together: bool = True,
    ) -> Dispatch:  # fmt: skip
        """Place all chunks of a job that arrives now; every queue has been advanced to now.

        `index` is the job's number in queue entries, the works the times of a chunk with zeta = 0
        and 1, `room` the chunks that each server can still store (None if storage is unlimited).
        `Refused` by (7b) if neither edge nor cloud can take some chunk.
        """
        offer = self._offer(job, edge_work, room)
        dispatch = Dispatch(corrected_alpha=offer.corrected_alpha)
        fits = sum(int(min(offer.room[s], job.chunks)) for s in set(offer.servers))
        closed = self.cluster.cloud_workers(job.worker_type) == 0
        if closed or (not self.use_cloud and fits >= job.chunks):
            self._spread(dispatch, job, offer, None, edge_work)
            self._insert(self._entries(index, job, offer, edge_work))
            return dispatch
        ready = float(job.arrival + job.upload_slots[self.cluster.cloud.name])
        dispatch.corrected_alpha = min(dispatch.corrected_alpha, (ready - job.arrival) / job.chunks)
        together = self._cloud.spans(job, job.chunks, ready, cloud_work)
        whole = Dispatch(
            together=True,
            cloud=[(chunk, *span) for chunk, span in enumerate(together, 1)],
            alphas=[(end - job.arrival) / job.chunks for _, end in together],
            corrected_alpha=dispatch.corrected_alpha,
        )
        mean = sum(end for _, end in together) / job.chunks
        q_together = round((mean - job.arrival) / job.chunks, DIGITS)
        if may_be_together and (not offer.heap or q_together < offer.heap[0][0]):
            self._cloud.book(job, together)
            return whole
        mixed = self._cloud.spans(job, job.chunks, ready, edge_work)
        self._spread(dispatch, job, offer, mixed, edge_work, not may_be_together)
        entries = self._entries(index, job, offer, edge_work)
        if self.escape and may_be_together:
            ends = [end for _, _, end in dispatch.cloud]
            ends += [self.queues.planned_end(*each) for each in entries]
            if max(ends) > max(end for _, end in together):
                self._cloud.book(job, together)
                return whole
        self._insert(entries)
        self._cloud.book(job, mixed[: len(dispatch.cloud)])
        return dispatch

    def _offer(self, job: EdgecloudJob, work: float, room: list[float] | None) -> _Offer:
        """Q of a first chunk on every qualified worker of a server with room (5)."""
        D = job.chunks
        workers = self._workers.get(job.worker_type, np.zeros(0, dtype=np.int64))
        servers = self._server[workers].tolist()
        delay = np.array([job.upload_slots[self._names[s]] for s in servers], dtype=float)
        ready = job.arrival + delay
        outlook = self.queues.outlook(workers, ready, D * work)
        corrected = np.inf
        if workers.size:
            waited = (delay + outlook[:, 0]) / D
            corrected = float((waited + work * outlook[:, 2]).min())
        if self.increment == "printed":
            first = (delay + outlook[:, 0] + work) / D + work * outlook[:, 1]
        else:
            pairs = zip(workers.tolist(), ready.tolist(), strict=True)
            first = np.array([self._marginal(w, job, 0, when, work) for w, when in pairs])
        left = [np.inf] * len(self._names) if room is None else list(room)
        heap = [
            (round(q, DIGITS), i) for i, q in enumerate(first.tolist()) if left[servers[i]] >= 1
        ]
        heapq.heapify(heap)
        return _Offer(workers, servers, ready, first.tolist(), heap, left, corrected)

    def _marginal(
        self, worker: int, job: EdgecloudJob, count: int, ready: float, work: float
    ) -> float:
        """Exact increase of the worker's planned sum when chunk number `count` + 1 is added."""
        facts = (job.chunks * work, ready, work, 1.0 / job.chunks)
        before, after = (
            self.queues.weighted_completion(worker, entry_of(-1, n, *facts))
            for n in (count, count + 1)
        )
        return after - before - job.arrival / job.chunks

    def _spread(
        self,
        dispatch: Dispatch, job: EdgecloudJob, offer: _Offer,
        mixed: list[tuple[float, float]] | None, work: float, cloud_first: bool = False,
    ) -> None:  # fmt: skip
        """Each chunk to the smallest Q; then recompute only the worker that took it."""
        heap, room, D = offer.heap, offer.room, job.chunks
        for chunk in range(1, D + 1):
            while heap and room[offer.servers[heap[0][1]]] < 1:
                heapq.heappop(heap)
            in_cloud = np.inf
            if mixed is not None and (chunk > 1 or cloud_first or not heap):
                in_cloud = (mixed[len(dispatch.cloud)][1] - job.arrival) / D
            if heap and heap[0][0] <= round(in_cloud, DIGITS):
                i = heap[0][1]
                count = offer.counts[i] = offer.counts.get(i, 0) + 1
                room[offer.servers[i]] -= 1
                worker = int(offer.workers[i])
                dispatch.workers.append((chunk, worker))
                if self.increment == "printed":
                    dispatch.alphas.append(offer.first[i] + (count - 1) * work / D)
                    after = offer.first[i] + count * work / D
                else:
                    dispatch.alphas.append(offer.first[i])
                    after = self._marginal(worker, job, count, float(offer.ready[i]), work)
                    offer.first[i] = after
                heapq.heapreplace(heap, (round(after, DIGITS), i))
            elif in_cloud < np.inf:
                assert mixed is not None
                dispatch.alphas.append(in_cloud)
                dispatch.cloud.append((chunk, *mixed[len(dispatch.cloud)]))
            else:
                raise no_room(job)

    def _entries(
        self, index: int, job: EdgecloudJob, offer: _Offer, work: float
    ) -> list[tuple[int, Floats]]:
        """Workers, and the entry of the chunks that each gets."""
        facts = [(int(offer.workers[i]), n, float(offer.ready[i])) for i, n in offer.counts.items()]
        key, weight = job.chunks * work, 1.0 / job.chunks
        return [(w, entry_of(index, n, key, ready, work, weight)) for w, n, ready in facts]

    def _insert(self, entries: list[tuple[int, Floats]]) -> None:
        for worker, entry in entries:
            self.queues.insert(worker, entry)


NewRows = dict[int, list[Assignment]]  # rows of a slot's decision by number of the job


@dataclass
class _CloudChunk:
    """A chunk that waits for the cloud."""

    index: int
    chunk: int
    ready: int
    slots: int


class Serving:
    """What runs where, said slot by slot; the dispatcher's queues run as the workers will."""

    def __init__(self, cluster: EdgecloudInstance, queues: QueueState, seed: int) -> None:
        self.cluster, self.queues = cluster, queues
        self._ps = ParameterServers(cluster, seed)
        self._jobs: dict[int, EdgecloudJob] = {}
        self._work: dict[int, tuple[int, int]] = {}
        self._together: set[int] = set()
        self._chunks: dict[tuple[int, int], list[int]] = {}  # (worker, job) -> chunks in order
        self._done: dict[tuple[int, int], int] = {}  # slots of work done on them
        self._current: dict[int, tuple[int, int]] = {}  # worker -> (job, chunk)
        self._waiting: dict[str, list[_CloudChunk]] = {}
        self._in_cloud: list[tuple[int, int]] = []  # (job, last slot) of what runs there

    def may_be_together(self, job: EdgecloudJob) -> bool:
        """Whether a job may go to the cloud as a whole: a PS is free there, nobody waits for it."""
        if self.cluster.cloud_ps(job.ps_type) is None:
            return True
        queue = {one.index for chunks in self._waiting.values() for one in chunks}
        first = queue & self._together - self._ps.held.keys()
        taken = any(self._jobs[index].ps_type == job.ps_type for index in first)
        return self._ps.in_cloud(job.ps_type) > 0 and not taken

    def add(self, index: int, job: EdgecloudJob, found: Dispatch, work: tuple[int, int]) -> None:
        """Queue a job's chunks; `work` is a chunk's slots with zeta = 0 and 1."""
        self._jobs[index], self._work[index] = job, work
        for chunk, worker in found.workers:
            self._chunks.setdefault((worker, index), []).append(chunk)
        if found.together:
            self._together.add(index)
        uploaded = job.arrival + job.upload_slots.get(self.cluster.cloud.name, 0)
        as_planned = self.cluster.cloud_ps(job.ps_type) is None
        waiting = self._waiting.setdefault(job.worker_type, [])
        for chunk, begin, _ in found.cloud:
            ready = int(begin) if as_planned else uploaded
            waiting.append(_CloudChunk(index, chunk, ready, work[found.together]))
        waiting.sort(key=lambda one: one.ready)

    def in_cloud(self, slot: int) -> set[int]:
        """Jobs with chunks in the cloud that have not ended before `slot`."""
        waiting = {one.index for chunks in self._waiting.values() for one in chunks}
        return waiting | {index for index, last in self._in_cloud if last >= slot}

    def step(self, slot: int) -> NewRows:
        """PSs for whoever can run, then what begins, goes on and ends."""
        self._in_cloud = [(i, last) for i, last in self._in_cloud if last >= slot]
        before = dict(self._ps.held)
        starts = self._settle(slot, before)
        rows: NewRows = {}
        for index, held in self._ps.held.items():
            if before.get(index) != held:
                row = {"ps": place_name(self.cluster, held[1]), "from": slot}
                rows.setdefault(index, []).append(row)
        for one in starts:
            last = slot + one.slots - 1
            self._waiting[self._jobs[one.index].worker_type].remove(one)
            self._in_cloud.append((one.index, last))
            run = ChunkRun(one.index, one.chunk, len(self.cluster.worker_list), slot, last)
            rows.setdefault(one.index, []).append(row_of(self.cluster, run))
        self._follow_workers(slot, rows)
        return rows

    def _settle(self, slot: int, before: dict[int, tuple[str, int]]) -> list[_CloudChunk]:
        """Hold back, one after the other, the jobs that find no PS; what begins in the cloud."""
        without: set[int] = set()
        while True:
            starts = self._can_start(slot, without)
            active = set(np.unique(self.queues.running()).tolist()) - {-1}
            active |= {i for i, _ in self._in_cloud} | {one.index for one in starts}
            for index in self._ps.held.keys() - active:
                self._ps.give_back(index)
            failed = []
            new = active - self._ps.held.keys()  # highest average processing rate first
            for i in sorted(new, key=lambda i: (self._jobs[i].chunks * self._work[i][0], i)):
                together, former = i in self._together, before.get(i)
                if self._ps.take(i, self._jobs[i], slot, together, former) is None:
                    failed.append(i)
            if not failed:
                return starts
            without.update(failed)
            for index in failed:
                self.queues.hold_back(index, slot + 1)

    def _can_start(self, slot: int, without: set[int]) -> list[_CloudChunk]:
        """The first chunks of each type that find a worker in the cloud."""
        found: list[_CloudChunk] = []
        for kind, waiting in self._waiting.items():
            ready = [one for one in waiting if one.ready <= slot and one.index not in without]
            limit = self.cluster.cloud_workers(kind)
            if ready and limit is not None:
                busy = sum(self._jobs[i].worker_type == kind for i, _ in self._in_cloud)
                ready = ready[: limit - busy]
            found += ready
        return found

    def _follow_workers(self, slot: int, rows: NewRows) -> None:
        """Ends and begins of runs at the edge."""
        running, now = self.queues.running(), dict[int, tuple[int, int]]()
        for worker in np.flatnonzero(running >= 0).tolist():
            index = int(running[worker])
            done = self._done.get((worker, index), 0)
            self._done[worker, index] = done + 1
            now[worker] = index, self._chunks[worker, index][done // self._work[index][0]]
        for index, new in run_changes(self.cluster, slot, self._current, now).items():
            rows.setdefault(index, []).extend(new)
        self._current = now
