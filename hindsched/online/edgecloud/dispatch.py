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
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud import occupancy
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.runs import ChunkRun, file_row, place_name
from hindsched.solvers.kernels.edgecloud.preemptive_queue import LEFT, QueueState, entry_of

Increment = Literal["printed", "marginal"]
Span = tuple[float, float]
DIGITS = 9  # Q is compared after rounding to this many digits, so that ties do not hang on rounding


@dataclass
class Dispatch:
    """Where a job's chunks go."""

    together: bool = False  # zeta: the whole job and its PS are in the cloud
    workers: list[tuple[int, int]] = field(default_factory=list)  # chunk and worker at the edge
    cloud: list[tuple[int, float, float]] = field(default_factory=list)  # chunk, begin, end
    alphas: list[float] = field(default_factory=list)  # Q of each chunk when it was placed
    corrected_alpha: float = np.inf  # alpha'' of each of the job's chunks


class _Edge:
    """What the edge offers an arriving job: Q of the next chunk on each worker with room (5)."""

    def __init__(
        self, dispatcher: Dispatcher, index: int, job: EdgecloudJob, work: float,
        room: list[float] | None,
    ) -> None:  # fmt: skip
        cluster, D = dispatcher.cluster, job.chunks
        self.queues, self.job, self.work = dispatcher.queues, job, work
        self.is_printed = dispatcher.increment == "printed"
        self.workers = cluster.workers_by_type.get(job.worker_type, ())
        self.servers = [cluster.worker_list[w][0] for w in self.workers]
        names = (cluster.servers[s].name for s in self.servers)
        delay = np.array([job.upload_slots[name] for name in names], dtype=float)
        ready = job.arrival + delay
        # the job's chunks so far on each worker, none at first
        self.entries = [entry_of(index, 0, D * work, when, work, 1.0 / D) for when in ready]
        outlook = self.queues.outlook(np.array(self.workers, dtype=np.int64), ready, D * work)
        waited = (delay + outlook[:, 0]) / D
        self.corrected_alpha = float((waited + work * outlook[:, 2]).min(initial=np.inf))
        if self.is_printed:
            self.q = (waited + work / D + work * outlook[:, 1]).tolist()
        else:
            self.q = [self._marginal(i) for i in range(len(self.workers))]
        self.room = [np.inf] * len(cluster.servers) if room is None else list(room)
        self.heap = [(round(q, DIGITS), i) for i, q in enumerate(self.q)]
        heapq.heapify(self.heap)

    def _marginal(self, i: int) -> float:
        """Exact increase of a worker's planned sum of weighted completions by one more chunk."""
        more = self.entries[i].copy()
        more[LEFT] += self.work
        before, after = (
            self.queues.weighted_completion(self.workers[i], entry)
            for entry in (self.entries[i], more)
        )
        return after - before - self.job.arrival / self.job.chunks

    def best(self) -> float:
        """Smallest Q of a worker on a server with room; inf if there is none."""
        while self.heap and self.room[self.servers[self.heap[0][1]]] < 1:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else np.inf

    def take(self) -> tuple[int, float]:
        """The worker of the smallest Q takes a chunk; then only its Q is computed anew."""
        i = self.heap[0][1]
        self.entries[i][LEFT] += self.work
        self.room[self.servers[i]] -= 1
        alpha = self.q[i]
        self.q[i] = alpha + self.work / self.job.chunks if self.is_printed else self._marginal(i)
        heapq.heapreplace(self.heap, (round(self.q[i], DIGITS), i))
        return self.workers[i], alpha

    def taken(self) -> list[tuple[int, Floats]]:
        """Workers that took chunks, and their entries."""
        pairs = zip(self.workers, self.entries, strict=True)
        return [(worker, entry) for worker, entry in pairs if entry[LEFT] > 0]


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
        self._cloud = occupancy.CloudWorkers(cluster)

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
        D, r = job.chunks, job.arrival
        edge = _Edge(self, index, job, edge_work, room)
        dispatch = Dispatch(corrected_alpha=edge.corrected_alpha)
        fits = sum(int(min(edge.room[s], D)) for s in set(edge.servers))
        closed = self.cluster.cloud_workers(job.worker_type) == 0
        together, mixed = list[Span](), list[Span]()
        if not closed and (self.use_cloud or fits < D):
            ready = float(r + job.upload_slots[self.cluster.cloud.name])
            dispatch.corrected_alpha = min(dispatch.corrected_alpha, (ready - r) / D)
            together = self._cloud.spans(job, D, ready, cloud_work) if may_be_together else []
            mixed = self._cloud.spans(job, D, ready, edge_work)
        whole = Dispatch(
            together=True,
            cloud=[(chunk, *span) for chunk, span in enumerate(together, 1)],
            alphas=[(end - r) / D for _, end in together],
            corrected_alpha=dispatch.corrected_alpha,
        )
        if together and round(sum(whole.alphas) / D, DIGITS) < edge.best():
            self._cloud.book(job, together)
            return whole
        for chunk in range(1, D + 1):
            in_cloud = np.inf  # the first chunk goes there only with all others, if it may
            if mixed and (chunk > 1 or not together):
                in_cloud = (mixed[len(dispatch.cloud)][1] - r) / D
            if edge.best() <= round(in_cloud, DIGITS) and edge.heap:
                worker, alpha = edge.take()
                dispatch.workers.append((chunk, worker))
            elif in_cloud < np.inf:
                alpha = in_cloud
                dispatch.cloud.append((chunk, *mixed[len(dispatch.cloud)]))
            else:
                raise occupancy.no_room(job)
            dispatch.alphas.append(alpha)
        if self.escape and together:
            ends = [end for _, _, end in dispatch.cloud]
            ends += [self.queues.planned_end(*each) for each in edge.taken()]
            if max(ends) > max(end for _, end in together):
                self._cloud.book(job, together)
                return whole
        for worker, entry in edge.taken():
            self.queues.insert(worker, entry)
        self._cloud.book(job, mixed[: len(dispatch.cloud)])
        return dispatch


NewRows = dict[int, list[Assignment]]  # rows of a slot's decision by number of the job


class _CloudChunk(NamedTuple):
    """A chunk that waits for the cloud; those that are ready first come first."""

    ready: int
    job: int
    chunk: int
    slots: int


class Serving:
    """What runs where, said slot by slot; the dispatcher's queues run as the workers will."""

    def __init__(self, cluster: EdgecloudInstance, queues: QueueState, seed: int) -> None:
        self.cluster, self.queues = cluster, queues
        self._ps = occupancy.ParameterServers(cluster, seed)
        self._jobs: dict[int, EdgecloudJob] = {}
        self._work: dict[int, tuple[int, int]] = {}
        self._together: set[int] = set()
        self._chunks: dict[tuple[int, int], list[int]] = {}  # (worker, job) -> chunks in order
        self._done = Counter[tuple[int, int]]()  # slots of work done on them, but for what runs
        self._current: dict[int, tuple[int, int]] = {}  # worker -> (job, chunk)
        self._running, self._begun, self._until = np.full((3, len(queues.size)), -1)  # by worker
        self._waiting: list[_CloudChunk] = []
        self._in_cloud = Counter[tuple[int, int]]()  # chunks that run there, by job and last slot

    def may_be_together(self, job: EdgecloudJob) -> bool:
        """Whether a job may go to the cloud as a whole: a PS is free there, nobody waits for it."""
        if self.cluster.cloud_ps(job.ps_type) is None:
            return True
        first = {waiting.job for waiting in self._waiting} & self._together - self._ps.held.keys()
        taken = any(self._jobs[index].ps_type == job.ps_type for index in first)
        return self._ps.in_cloud(job.ps_type) > 0 and not taken

    def add(self, index: int, job: EdgecloudJob, dispatch: Dispatch, work: tuple[int, int]) -> None:
        """Queue a job's chunks; `work` is a chunk's slots with zeta = 0 and 1."""
        self._jobs[index], self._work[index] = job, work
        for chunk, worker in dispatch.workers:
            self._chunks.setdefault((worker, index), []).append(chunk)
        if dispatch.together:
            self._together.add(index)
        uploaded = job.arrival + job.upload_slots.get(self.cluster.cloud.name, 0)
        as_planned = self.cluster.cloud_ps(job.ps_type) is None
        for chunk, begin, _ in dispatch.cloud:
            ready = int(begin) if as_planned else uploaded
            self._waiting.append(_CloudChunk(ready, index, chunk, work[dispatch.together]))
        self._waiting.sort()

    def in_cloud(self, slot: int) -> set[int]:
        """Jobs with chunks in the cloud that have not ended before `slot`."""
        running = {index for index, last in self._in_cloud if last >= slot}
        return running | {waiting.job for waiting in self._waiting}

    def step(self, slot: int) -> NewRows:
        """PSs for whoever can run, then what begins, goes on and ends."""
        for ended in [each for each in self._in_cloud if each[1] < slot]:
            del self._in_cloud[ended]
        before = dict(self._ps.held)
        starts = self._settle(slot, before)
        rows: NewRows = {}
        for index, held in self._ps.held.items():
            if before.get(index) != held:
                row = {"ps": place_name(self.cluster, held[1]), "from": slot}
                rows.setdefault(index, []).append(row)
        for chunk in starts:
            last = slot + chunk.slots - 1
            self._in_cloud[chunk.job, last] += 1
            run = ChunkRun(chunk.job, chunk.chunk, len(self.cluster.worker_list), slot, last)
            rows.setdefault(chunk.job, []).append(file_row(self.cluster, run))
        begun = set(starts)
        self._waiting = [chunk for chunk in self._waiting if chunk not in begun]
        self._follow_workers(slot, rows)
        return rows

    def _settle(self, slot: int, before: dict[int, tuple[str, int]]) -> list[_CloudChunk]:
        """Hold back, one after the other, the jobs that find no PS; what begins in the cloud."""
        without: set[int] = set()
        while True:
            starts = self._can_start(slot, without)
            active = set(np.unique(self.queues.running()).tolist()) - {-1}
            active |= {i for i, _ in self._in_cloud} | {chunk.job for chunk in starts}
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
        ready = [each for each in self._waiting if each.ready <= slot and each.job not in without]
        busy, starts = Counter[str](), list[_CloudChunk]()
        for (index, _), chunks in self._in_cloud.items() if ready else ():
            busy[self._jobs[index].worker_type] += chunks
        for chunk in ready:
            kind = self._jobs[chunk.job].worker_type
            limit = self.cluster.cloud_workers(kind)
            if limit is None or busy[kind] < limit:
                busy[kind] += 1
                starts.append(chunk)
        return starts

    def _follow_workers(self, slot: int, rows: NewRows) -> None:
        """Ends and begins of runs at the edge; workers that go on are not looked at."""
        running, before, now = self.queues.running(), occupancy.Running(), occupancy.Running()
        changes = (running != self._running) | (self._until == slot)
        for worker in np.flatnonzero(changes).tolist():
            if worker in self._current:
                was = before[worker] = self._current.pop(worker)
                self._done[worker, was[0]] += slot - int(self._begun[worker])
            index = int(running[worker])
            if index >= 0:
                work = self._work[index][0]
                chunk, part = divmod(self._done[worker, index], work)
                now[worker] = index, self._chunks[worker, index][chunk]
                self._begun[worker], self._until[worker] = slot, slot + work - part
        for index, new in occupancy.run_changes(self.cluster, slot, before, now).items():
            rows.setdefault(index, []).extend(new)
        self._current |= now
        self._running = running
