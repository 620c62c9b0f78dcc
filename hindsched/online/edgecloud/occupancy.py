"""What is free at the edge and in the cloud as a run goes on: parameter servers (PSs), storage.

By (7c) a chunk takes its server's storage from its job's arrival to the job's completion, also if
it is dispatched later: a server has room for it if it had room in every slot since the arrival.

Schedulers whose jobs move reserve storage on arrival: a chunk a worker, on servers of short upload
first. A job then runs on no more workers of a limited server than it has reserved there, and is
narrower where there is room for fewer; servers without a limit stay open to it.
"""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from typing import Any

from hindsched.errors import InputError, Refused
from hindsched.instances.decimals import exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.protocol import draws
from hindsched.solutions.base import Assignment
from hindsched.solutions.edgecloud.runs import ChunkRun, file_row

Span = tuple[int, int]
Running = dict[int, tuple[Any, int]]  # job and chunk by edge worker


def no_room(job: EdgecloudJob) -> Refused:
    """What a job meets for which nobody who does not see the future can find a place."""
    detail = "no server has had room since it arrived, and the cloud has no worker for it"
    return Refused("(7b)", f"job {job.name}", detail)


class ParameterServers:
    """PSs by type and place; a seed draws among free ones at the edge, None takes the first."""

    def __init__(self, cluster: EdgecloudInstance, seed: int | None = None) -> None:
        self.cluster, self.seed = cluster, seed
        self.cloud = len(cluster.servers)  # the place that is no server
        self.held: dict[Any, tuple[str, int]] = {}  # job -> type and place
        self._free: dict[str, list[int]] = {}
        for s, server in enumerate(cluster.servers):
            for kind in server.ps:
                self._free.setdefault(kind, []).append(s)

    def in_cloud(self, kind: str) -> float:
        """PSs of a type that are free in the cloud; inf if they are unlimited."""
        limit = self.cluster.cloud_ps(kind)
        taken = sum(held == (kind, self.cloud) for held in self.held.values())
        return math.inf if limit is None else limit - taken

    def count(self, kind: str) -> float:
        """PSs of a type that are free anywhere."""
        return len(self._free.get(kind, ())) + self.in_cloud(kind)

    def give_back(self, key: Any) -> None:
        """Free a job's PS."""
        kind, place = self.held.pop(key)
        if place != self.cloud:
            self._free[kind].append(place)

    def take(
        self, key: Any, job: EdgecloudJob, slot: int, together: bool = False,
        former: tuple[str, int] | None = None,
    ) -> int | None:  # fmt: skip
        """Give a job that starts to run a free PS at the edge, else one in the cloud.

        None if none is free. The PS of a job that is wholly in the cloud, `together`, is there. A
        `former` one, which the job had in the slot before, is taken again if it is free.
        """
        kind, place = job.ps_type, self.cloud
        free = self._free.get(kind, [])
        if former is not None and former[1] in free:
            free.remove(former[1])
            place = former[1]
        elif former == (kind, place) and self.in_cloud(kind) > 0:
            pass
        elif free and not together:
            chosen = free.index(min(free))
            if self.seed is not None:
                chosen = int(draws(self.seed, job.name, f"ps {slot}").integers(len(free)))
            place = free.pop(chosen)
        elif self.in_cloud(kind) <= 0:
            return None
        self.held[key] = (kind, place)
        return place


class StorageLedger:
    """Stored chunks by server and job."""

    def __init__(self, cluster: EdgecloudInstance) -> None:
        self.cluster = cluster
        limits = enumerate(cluster.storage_gb.tolist())
        self._limits = {s: exactly(limit) for s, limit in limits if math.isfinite(limit)}
        self.limited = bool(self._limits)
        self._held: dict[tuple[int, str], tuple[int, Fraction]] = {}  # (server, job): arrival, GB
        self._ends: dict[str, int] = {}

    def room(self, job: EdgecloudJob, slot: int) -> list[float]:
        """Chunks of a job that each server can take in `slot`; inf where nothing limits them."""
        left = [math.inf] * len(self.cluster.servers)
        for s, limit in self._limits.items() if job.chunk_gb else ():
            held = [
                (arrival, self._ends.get(name, math.inf), gb)
                for (server, name), (arrival, gb) in self._held.items() if server == s
            ]  # fmt: skip
            rises = {job.arrival, *(begin for begin, _, _ in held if job.arrival < begin <= slot)}
            stored = [[gb for begin, end, gb in held if begin <= t <= end] for t in rises]
            most = max(sum(sizes, Fraction()) for sizes in stored)
            left[s] = (limit - most) // exactly(job.chunk_gb or 0.0)
        return left

    def store(self, job: EdgecloudJob, server: int, chunks: int = 1) -> None:
        """Put chunks of a job on a server."""
        if job.chunk_gb and server in self._limits:
            _, before = self._held.get((server, job.name), (job.arrival, Fraction()))
            more = chunks * exactly(job.chunk_gb)
            self._held[server, job.name] = (job.arrival, before + more)

    def reserve(self, job: EdgecloudJob, slot: int, workers: int) -> tuple[int, dict[int, int]]:
        """Reserve room for a job's workers: how many that leaves, and those by limited server."""
        room, names = self.room(job, slot), [server.name for server in self.cluster.servers]
        qualified = {s: len(members) for s, members in self.cluster.places(job)}
        left, reserved = workers, {}
        for s in sorted(qualified, key=lambda s: (job.upload_slots[names[s]], s)):
            if math.isfinite(room[s]):
                reserved[s] = max(0, min(qualified[s], left, int(room[s])))
                left -= reserved[s]
                self.store(job, s, reserved[s])
        open_ = sum(n for s, n in qualified.items() if s not in reserved)
        return min(workers, open_ + workers - left), reserved

    def end(self, name: str, slot: int) -> None:
        """A job completes in `slot`."""
        self._ends[name] = slot


class CloudWorkers:
    """When the cloud's workers are free where they are numbered; elsewhere they are at once."""

    def __init__(self, cluster: EdgecloudInstance) -> None:
        self.cluster = cluster
        self._free: dict[str, list[float]] = {}  # first free slot of each worker, by type

    def free(self, kind: str) -> list[float]:
        """First free slot of each worker of a type, as a heap; empty for an unlimited number."""
        return self._free.setdefault(kind, [0] * (self.cluster.cloud_workers(kind) or 0))

    def spans(self, job: EdgecloudJob, chunks: int, ready: Any, work: Any) -> list[tuple[Any, Any]]:
        """(Begin, end) of chunks, one after the other on whichever worker is free first."""
        free, spans = list(self.free(job.worker_type)), []
        for _ in range(chunks):
            begin = max([ready, *free[:1]])
            spans.append((begin, begin + work))
            if free:
                heapq.heapreplace(free, begin + work)
        return spans

    def book(self, job: EdgecloudJob, spans: list[tuple[Any, Any]]) -> None:
        """Take the workers for spans that were offered."""
        free = self.free(job.worker_type)
        for _, end in spans if free else ():
            heapq.heapreplace(free, end)


class CloudSite:
    """Jobs that go to the cloud as a whole, in order of arrival.

    A job begins when it is uploaded and a worker and a PS are free; its chunks take the workers in
    turn, and it keeps its PS until the last one has ended. Where the cloud has no PS of its type
    the PS is at the edge, and the job works at the rate of zeta = 0.
    """

    def __init__(self, cluster: EdgecloudInstance, ps: ParameterServers) -> None:
        self.cluster, self.ps = cluster, ps  # all PSs, shared with whoever else takes some
        self.events: set[int] = set()  # slots in which something here may change
        self._waiting: list[tuple[int, EdgecloudJob]] = []
        self._workers = CloudWorkers(cluster)
        self._ends: dict[str, int] = {}  # last slots of the jobs that hold a PS

    def add(self, slot: int, job: EdgecloudJob) -> None:
        """Send a job here; `InputError` if the cloud has no worker for it."""
        if not self.cluster.has_cloud(job):
            rule = f"must have workers of type {job.worker_type} for a job that is sent there"
            raise InputError("cloud.workers", self.cluster.cloud.name, rule)
        ready = max(slot, job.arrival + job.upload_slots[self.cluster.cloud.name])
        self._waiting.append((ready, job))
        self.events.add(ready)

    def release(self, slot: int) -> None:
        """Give back the PSs of jobs that ended before `slot`."""
        for name in [name for name, last in self._ends.items() if last < slot]:
            self.ps.give_back(name)
            del self._ends[name]

    def start(self, slot: int) -> dict[str, list[Assignment]]:
        """Rows of the jobs that begin in `slot`, or are sure to begin later."""
        self.release(slot)
        started = {job.name: self._begin(slot, ready, job) for ready, job in self._waiting}
        self._waiting = [waiting for waiting in self._waiting if started[waiting[1].name] is None]
        return {name: rows for name, rows in started.items() if rows is not None}

    def _begin(self, slot: int, ready: int, job: EdgecloudJob) -> list[Assignment] | None:
        cluster, count = self.cluster, self.cluster.cloud_workers(job.worker_type)
        together = cluster.cloud_ps(job.ps_type) != 0
        work = job.chunk_slots(cluster.slot_seconds, in_cloud=together)
        unlimited = cluster.cloud_ps(job.ps_type) is None
        if count is None and unlimited:
            spans = [(ready, ready + work - 1)] * job.chunks
            return whole_job_rows(cluster, spans, self.ps.cloud)
        free = self._workers.free(job.worker_type)
        if ready > slot or (free and free[0] > slot):
            return None
        place = self.ps.cloud if unlimited else self.ps.take(job.name, job, slot, together)
        if place is None:
            return None
        chunk_spans = self._workers.spans(job, job.chunks, slot, work)
        self._workers.book(job, chunk_spans)
        spans = [(begin, end - 1) for begin, end in chunk_spans]
        last = max(end for _, end in spans)
        if not unlimited:
            self._ends[job.name] = last
        self.events |= {last + 1, *map(int, free)}
        return whole_job_rows(cluster, spans, place)


def whole_job_rows(cluster: EdgecloudInstance, spans: list[Span], ps: int) -> list[Assignment]:
    """Rows of a job whose chunks run in the cloud over `spans`, with its PS on server `ps`."""
    cloud = len(cluster.worker_list)
    runs = [ChunkRun(0, chunk, cloud, *span) for chunk, span in enumerate(spans, 1)]
    held = ChunkRun(0, 0, ps, min(spans)[0], max(end for _, end in spans))
    return [file_row(cluster, run) for run in (*runs, held)]


def run_changes(
    cluster: EdgecloudInstance, slot: int, before: Running, now: Running
) -> dict[Any, list[Assignment]]:
    """Rows by job of the runs on edge workers that ended before a slot or begin in it."""
    rows: dict[Any, list[Assignment]] = {}
    for worker in sorted(before.keys() | now.keys()):
        was, runs = before.get(worker), now.get(worker)
        if was is not None and was != runs:
            rows.setdefault(was[0], []).append({"chunk": was[1], "to": slot - 1})
        if runs is not None and was != runs:
            row = file_row(cluster, ChunkRun(0, runs[1], worker, slot, slot))
            del row["to"]
            rows.setdefault(runs[0], []).append(row)
    return rows
