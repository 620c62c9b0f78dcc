"""How A_online's dispatched chunks are served, and their jobs given parameter servers (PSs).

`PromptServing` is the paper's: the cloud has a PS for everybody, so that a dispatched chunk is
given to its worker for good and the worker's queue does the rest. `QueuedService` is for clouds
whose PSs are numbered, which Algorithm 5 forgets: a job that finds none free waits, the workers
meanwhile serve the next job of their queues, and what runs where is said slot by slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.dispatch import Dispatch
from hindsched.online.edgecloud.ps import ParameterServers, place_name
from hindsched.solutions.base import Assignment
from hindsched.solvers.kernels.edgecloud.preemptive_queue import QueueState

NewRows = dict[int, list[Assignment]]
"""Rows of a slot's decision by number of the job."""


class Serving(Protocol):
    """What A_online asks of whoever serves its chunks."""

    def may_be_together(self, job: EdgecloudJob) -> bool:
        """Whether a job that arrives now may go to the cloud as a whole."""

    def add(self, index: int, job: EdgecloudJob, found: Dispatch, work: tuple[int, int]) -> None:
        """Take over a job's chunks; `work` is a chunk's slots with zeta = 0 and 1."""

    def in_cloud(self, slot: int) -> set[int]:
        """Jobs with chunks in the cloud that have not ended before `slot`."""

    def step(self, slot: int) -> NewRows:
        """Rows of this slot, after the dispatches of all arrivals."""


def worker_row(cluster: EdgecloudInstance, chunk: int, worker: int) -> Assignment:
    """Begin of a row about a chunk on an edge worker."""
    s, number, _ = cluster.worker_list[worker]
    return {"chunk": chunk, "server": cluster.servers[s].name, "worker": number}


class PromptServing:
    """Dispatches are final; a job takes a PS when it starts to run.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster, with a PS in the cloud for everybody.
    queues : QueueState
        The dispatcher's queues, which run as the workers will.
    seed : int
        Seed of the PSs' choice.
    """

    def __init__(self, cluster: EdgecloudInstance, queues: QueueState, seed: int) -> None:
        self.cluster, self.queues = cluster, queues
        self._ps: ParameterServers[int] = ParameterServers(cluster, seed)
        self._jobs: dict[int, EdgecloudJob] = {}
        self._new: NewRows = {}
        self._running: bytes = b""
        self._spans: dict[int, list[tuple[int, int]]] = {}  # jobs partly in the cloud
        self._together: dict[int, int] = {}  # jobs wholly there, and their last slots

    def may_be_together(self, job: EdgecloudJob) -> bool:
        """Always."""
        return True

    def add(self, index: int, job: EdgecloudJob, found: Dispatch, work: tuple[int, int]) -> None:
        """Rows that give the chunks to their workers."""
        self._jobs[index] = job
        rows = [
            {**worker_row(self.cluster, chunk, worker), "priority": job.chunks * work[0]}
            for chunk, worker in found.workers
        ]
        cloud = self.cluster.cloud.name
        spans = [(int(begin), int(end) - 1) for _, begin, end in found.cloud]
        for (chunk, *_), (first, last) in zip(found.cloud, spans, strict=True):
            rows.append({"chunk": chunk, "server": cloud, "from": first, "to": last})
        if found.together:
            self._together[index] = max(last for _, last in spans)
            rows += [{"ps": cloud, "from": a, "to": b} for a, b in joined_spans(spans)]
        elif spans:
            self._spans[index] = joined_spans(spans)
        self._new[index] = rows

    def in_cloud(self, slot: int) -> set[int]:
        """Jobs with chunks in the cloud that have not ended before `slot`."""
        self._together = {i: last for i, last in self._together.items() if last >= slot}
        return {*self._together, *self._spans}

    def step(self, slot: int) -> NewRows:
        """A_ps: PSs for the jobs that start to run in this slot."""
        rows, self._new = self._new, {}
        running = self.queues.running()
        key = running.tobytes()
        if key == self._running and not self._spans:
            return rows
        self._running = key
        for i in [i for i, spans in self._spans.items() if max(b for _, b in spans) < slot]:
            del self._spans[i]
        active = {int(j) for j in set(running.tolist())} - {-1}
        active |= {i for i, spans in self._spans.items() if any(a <= slot <= b for a, b in spans)}
        for index in self._ps.held.keys() - active:
            self._ps.give_back(index)
        for index in sorted(active - self._ps.held.keys()):
            place = self._ps.take(index, self._jobs[index], slot)
            assert place is not None
            row = {"ps": place_name(self.cluster, place), "from": slot}
            rows.setdefault(index, []).append(row)
        return rows


@dataclass
class _CloudChunk:
    """A chunk that waits for the cloud."""

    index: int
    chunk: int
    ready: int
    slots: int


class QueuedService:
    """A job runs only while it holds a PS; one that finds none free waits for the next slot.

    PSs go to the jobs of highest rate first; a job keeps its PS while it runs. In the cloud, where
    nothing is interrupted, chunks of a type begin in the order in which they are ready.

    Parameters
    ----------
    cluster, queues, seed
        As for `PromptServing`; the cloud's PSs may run out.
    """

    def __init__(self, cluster: EdgecloudInstance, queues: QueueState, seed: int) -> None:
        self.cluster, self.queues = cluster, queues
        self._ps: ParameterServers[int] = ParameterServers(cluster, seed)
        self._jobs: dict[int, EdgecloudJob] = {}
        self._work: dict[int, tuple[int, int]] = {}
        self._together: set[int] = set()
        self._chunks: dict[tuple[int, int], list[int]] = {}  # (worker, job) -> chunks in order
        self._done: dict[tuple[int, int], int] = {}  # slots of work done on them
        self._current: dict[int, tuple[int, int]] = {}  # worker -> (job, chunk)
        self._waiting: dict[str, list[_CloudChunk]] = {}
        self._in_cloud: list[tuple[int, int]] = []  # (job, last slot) of what runs there

    def may_be_together(self, job: EdgecloudJob) -> bool:
        """Whether a PS of the cloud is free, and nobody waits for it."""
        queue = {one.index for chunks in self._waiting.values() for one in chunks}
        first = queue & self._together - self._ps.held.keys()
        taken = any(self._jobs[index].ps_type == job.ps_type for index in first)
        return self._ps.cloud_is_free(job.ps_type) and not taken

    def add(self, index: int, job: EdgecloudJob, found: Dispatch, work: tuple[int, int]) -> None:
        """Queue the chunks; what is said of them is said when they run."""
        self._jobs[index], self._work[index] = job, work
        for chunk, worker in found.workers:
            self._chunks.setdefault((worker, index), []).append(chunk)
        if found.together:
            self._together.add(index)
        ready = job.arrival + job.upload_slots.get(self.cluster.cloud.name, 0)
        waiting = self._waiting.setdefault(job.worker_type, [])
        waiting += [
            _CloudChunk(index, chunk, ready, work[found.together]) for chunk, *_ in found.cloud
        ]
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
            row = {"chunk": one.chunk, "server": self.cluster.cloud.name}
            rows.setdefault(one.index, []).append({**row, "from": slot, "to": last})
        self._follow_workers(slot, rows)
        return rows

    def _settle(self, slot: int, before: dict[int, tuple[str, int]]) -> list[_CloudChunk]:
        """Hold back, one after the other, the jobs that find no PS; what begins in the cloud."""
        without: set[int] = set()
        while True:
            starts = self._can_start(slot, without)
            active = {int(j) for j in set(self.queues.running().tolist())} - {-1}
            active |= {i for i, _ in self._in_cloud} | {one.index for one in starts}
            for index in self._ps.held.keys() - active:
                self._ps.give_back(index)
            failed = [
                i
                for i in self._by_rate(active - self._ps.held.keys())
                if not self._take(i, slot, before)
            ]
            if not failed:
                return starts
            without.update(failed)
            for index in failed:
                self.queues.hold_back(index, slot + 1)

    def _by_rate(self, jobs: set[int]) -> list[int]:
        """Highest average processing rate first."""
        return sorted(jobs, key=lambda i: (self._jobs[i].chunks * self._work[i][0], i))

    def _take(self, index: int, slot: int, before: dict[int, tuple[str, int]]) -> bool:
        """Give a job a PS: the one that it had in the slot before, if that is free."""
        together = index in self._together
        former = before.get(index)
        if former is not None and self._ps.take_again(index, former):
            return True
        return self._ps.take(index, self._jobs[index], slot, together) is not None

    def _can_start(self, slot: int, without: set[int]) -> list[_CloudChunk]:
        """The first chunks of each type that find a worker in the cloud."""
        found: list[_CloudChunk] = []
        for kind, waiting in self._waiting.items():
            ready = [one for one in waiting if one.ready <= slot and one.index not in without]
            limit = self.cluster.cloud_workers(kind)
            if limit is not None:
                busy = sum(self._jobs[i].worker_type == kind for i, _ in self._in_cloud)
                ready = ready[: limit - busy]
            found += ready
        return found

    def _follow_workers(self, slot: int, rows: NewRows) -> None:
        """Ends and begins of runs at the edge."""
        for worker, index in enumerate(self.queues.running().tolist()):
            now = None
            if index >= 0:
                done = self._done.get((worker, index), 0)
                self._done[worker, index] = done + 1
                now = (index, self._chunks[worker, index][done // self._work[index][0]])
            was = self._current.get(worker)
            if was == now:
                continue
            if was is not None:
                rows.setdefault(was[0], []).append({"chunk": was[1], "to": slot - 1})
                del self._current[worker]
            if now is not None:
                row = {**worker_row(self.cluster, now[1], worker), "from": slot}
                rows.setdefault(index, []).append(row)
                self._current[worker] = now


def joined_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans (first, last) in order, those that touch or overlap made one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
