"""What is free at the edge and in the cloud as a run goes on: parameter servers (PSs), storage.

By (7c) a chunk takes its server's storage from the arrival of its job to the job's completion, also
if it is dispatched later than it arrived. A server therefore has room for a chunk if it had room in
every slot since the arrival; from now on it can only become emptier.

Schedulers whose jobs move reserve storage on arrival: a chunk a worker, on servers of short upload
first, until the job has all the workers that it can use. It then runs on no more workers of a
limited server than it has reserved; servers without a limit stay open to it. A job is narrower
where there is room for fewer workers.
"""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from typing import Generic, TypeVar

from hindsched.errors import InputError
from hindsched.instances.decimals import exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.protocol import draws
from hindsched.solutions.base import Assignment

Key = TypeVar("Key", int, str)
"""A job's number or name, whichever the scheduler uses."""
Span = tuple[int, int]


def place_name(cluster: EdgecloudInstance, server: int) -> str:
    """Name of a server by position; their number means the cloud."""
    return cluster.servers[server].name if server < len(cluster.servers) else cluster.cloud.name


class ParameterServers(Generic[Key]):
    """PSs by type and place; a seed draws among free ones at the edge, None takes the first.

    Attributes
    ----------
    held : dict
        Job -> type and server of its PS; the number of servers means the cloud.
    """

    def __init__(self, cluster: EdgecloudInstance, seed: int | None = None) -> None:
        self.cluster, self.seed = cluster, seed
        self.cloud = len(cluster.servers)
        self.held: dict[Key, tuple[str, int]] = {}
        self._free: dict[str, list[int]] = {}
        for s, server in enumerate(cluster.servers):
            for kind in server.ps:
                self._free.setdefault(kind, []).append(s)
        self._on_edge = {kind: len(free) for kind, free in self._free.items()}

    def count(self, kind: str) -> float:
        """PSs of a type anywhere; inf if the cloud's are unlimited."""
        in_cloud = self.cluster.cloud_ps(kind)
        return math.inf if in_cloud is None else self._on_edge.get(kind, 0) + in_cloud

    def cloud_is_free(self, kind: str) -> bool:
        """Whether a PS of a type is free in the cloud."""
        limit = self.cluster.cloud_ps(kind)
        return limit is None or sum(h == (kind, self.cloud) for h in self.held.values()) < limit

    def give_back(self, key: Key) -> None:
        """Free a job's PS."""
        kind, place = self.held.pop(key)
        if place != self.cloud:
            self._free[kind].append(place)

    def take_again(self, key: Key, former: tuple[str, int]) -> bool:
        """Give a job back the PS that it had in the slot before, if that is free."""
        kind, place = former
        if not self.is_free(former):
            return False
        if place != self.cloud:
            self._free[kind].remove(place)
        self.held[key] = former
        return True

    def is_free(self, former: tuple[str, int]) -> bool:
        """Whether a PS that was held before is free."""
        kind, place = former
        return self.cloud_is_free(kind) if place == self.cloud else place in self._free[kind]

    def take(self, key: Key, job: EdgecloudJob, slot: int, together: bool = False) -> int | None:
        """Give a job that starts to run a free PS at the edge, else one in the cloud.

        None if none is free. The PS of a job that is wholly in the cloud, `together`, is there.
        """
        kind = job.ps_type
        free = self._free.get(kind)
        place = self.cloud
        if free and not together:
            place = free.pop(self._choice(job, slot, free))
        elif not self.cloud_is_free(kind):
            return None
        self.held[key] = (kind, place)
        return place

    def _choice(self, job: EdgecloudJob, slot: int, free: list[int]) -> int:
        if self.seed is None:
            return free.index(min(free))
        return int(draws(self.seed, job.name, f"ps {slot}").integers(len(free)))


class StorageLedger:
    """Stored chunks by server and job."""

    def __init__(self, cluster: EdgecloudInstance) -> None:
        self.cluster = cluster
        self._limits = cluster.storage_gb.tolist()
        self.limited = any(math.isfinite(limit) for limit in self._limits)
        self._held: list[dict[str, tuple[int, Fraction]]] = [{} for _ in self._limits]
        self._ends: dict[str, int] = {}

    def room(self, job: EdgecloudJob, slot: int) -> list[float]:
        """Chunks of a job that each server can take in `slot`; inf where nothing limits them."""
        gb = job.chunk_gb
        if not gb:
            return [math.inf] * len(self._limits)
        left = list(self._limits)
        for s, limit in enumerate(self._limits):
            if math.isfinite(limit):
                left[s] = (exactly(limit) - self._peak(s, job, slot)) // exactly(gb)
        return left

    def _peak(self, server: int, job: EdgecloudJob, slot: int) -> Fraction:
        """Most GB stored at once on a server from a job's arrival to `slot`."""
        held = [
            (arrival, self._ends.get(name, math.inf), gb)
            for name, (arrival, gb) in self._held[server].items()
        ]
        rises = {job.arrival} | {arrival for arrival, _, _ in held if job.arrival < arrival <= slot}
        stored = [[gb for begin, end, gb in held if begin <= t <= end] for t in rises]
        return max(sum(sizes, Fraction()) for sizes in stored)

    def store(self, job: EdgecloudJob, server: int, chunks: int = 1) -> None:
        """Put chunks of a job on a server."""
        if job.chunk_gb and math.isfinite(self._limits[server]):
            _, before = self._held[server].get(job.name, (job.arrival, Fraction()))
            more = chunks * exactly(job.chunk_gb)
            self._held[server][job.name] = (job.arrival, before + more)

    def reserve(self, job: EdgecloudJob, slot: int, workers: int) -> tuple[int, dict[int, int]]:
        """Reserve room for a job's workers: how many that leaves, and those by limited server."""
        room = self.room(job, slot)
        qualified = {s: len(members) for s, members in self.cluster.places(job)}
        open_ = sum(n for s, n in qualified.items() if math.isinf(room[s]))
        names = [server.name for server in self.cluster.servers]
        left, reserved = workers, {}
        for s in sorted(qualified, key=lambda s: (job.upload_slots[names[s]], s)):
            if math.isfinite(room[s]):
                reserved[s] = max(0, min(qualified[s], left, int(room[s])))
                left -= reserved[s]
                self.store(job, s, reserved[s])
        return min(workers, open_ + workers - left), reserved

    def end(self, name: str, slot: int) -> None:
        """A job completes in `slot`."""
        self._ends[name] = slot

    def forget_before(self, slot: int) -> None:
        """Drop jobs that ended before `slot`, if no job that came earlier waits any more."""
        for held in self._held:
            for name in [name for name in held if self._ends.get(name, slot) < slot]:
                del held[name]


class CloudSite:
    """Jobs that go to the cloud as a whole, in order of arrival.

    In an unlimited cloud a job runs as soon as it is uploaded. Where workers or parameter servers
    (PSs) are numbered it begins when one of each is free; its chunks then take the workers in turn,
    and it keeps its PS until the last one has ended. Where the cloud has no PS of its type the PS
    is at the edge, and the job works at the rate of zeta = 0.
    `ps` are all PSs, shared with whoever else takes some.

    Attributes
    ----------
    events : set of int
        Slots in which something here may change.
    """

    def __init__(self, cluster: EdgecloudInstance, ps: ParameterServers[str]) -> None:
        self.cluster, self.ps = cluster, ps
        self.events: set[int] = set()
        self._waiting: list[tuple[int, EdgecloudJob]] = []
        self._busy: dict[str, list[int]] = {}  # first free slot of each numbered worker
        self._ends: dict[str, int] = {}  # last slots of the jobs that hold a PS

    def add(self, slot: int, job: EdgecloudJob) -> None:
        """Send a job here; `InputError` if the cloud has no worker for it."""
        if not self.cluster.has_cloud(job):
            rule = f"must have workers of type {job.worker_type} for a job that is sent there"
            raise InputError("cloud.workers", self.cluster.cloud.name, rule)
        ready = max(slot, job.arrival + job.upload_slots[self.cluster.cloud.name])
        self._waiting.append((ready, job))
        self.events.add(ready)

    def holding(self, kind: str) -> int:
        """Jobs here that hold a numbered PS of a type."""
        return sum(self.ps.held[name][0] == kind for name in self._ends)

    def release(self, slot: int) -> None:
        """Give back the PSs of jobs that ended before `slot`."""
        for name in [name for name, last in self._ends.items() if last < slot]:
            self.ps.give_back(name)
            del self._ends[name]

    def start(self, slot: int) -> dict[str, list[Assignment]]:
        """Rows of the jobs that begin in `slot`, or are sure to begin later."""
        self.release(slot)
        rows: dict[str, list[Assignment]] = {}
        left: list[tuple[int, EdgecloudJob]] = []
        for ready, job in self._waiting:
            found = self._begin(slot, ready, job)
            if found is None:
                left.append((ready, job))
            else:
                rows[job.name] = found
        self._waiting = left
        return rows

    def _begin(self, slot: int, ready: int, job: EdgecloudJob) -> list[Assignment] | None:
        cluster = self.cluster
        together = cluster.cloud_ps(job.ps_type) != 0
        work = job.chunk_slots(cluster.slot_seconds, in_cloud=together)
        count = cluster.cloud_workers(job.worker_type)
        unlimited = cluster.cloud_ps(job.ps_type) is None
        if count is None and unlimited:
            spans = [(ready, ready + work - 1)] * job.chunks
            return whole_job_rows(cluster, job, spans, self.ps.cloud)
        free = None
        if count is not None:
            free = self._busy.setdefault(job.worker_type, [0] * count)
        if ready > slot or (free is not None and free[0] > slot):
            return None
        place = self.ps.cloud if unlimited else self.ps.take(job.name, job, slot, together)
        if place is None:
            return None
        spans = (
            [(slot, slot + work - 1)] * job.chunks
            if free is None
            else _in_turn(free, slot, work, job.chunks)
        )
        last = max(end for _, end in spans)
        if not unlimited:
            self._ends[job.name] = last
        self.events |= {last + 1, *(free or ())}
        return whole_job_rows(cluster, job, spans, place)


def _in_turn(free: list[int], first: int, work: int, chunks: int) -> list[Span]:
    """Chunks one after the other on whichever worker is free first; `free` is a heap."""
    spans: list[Span] = []
    for _ in range(chunks):
        begin = max(first, free[0])
        spans.append((begin, begin + work - 1))
        heapq.heapreplace(free, begin + work)
    return spans


def whole_job_rows(
    cluster: EdgecloudInstance, job: EdgecloudJob, spans: list[Span], ps: int
) -> list[Assignment]:
    """Rows of a job whose chunks run in the cloud over `spans`, with its PS on server `ps`."""
    cloud = cluster.cloud.name
    rows: list[Assignment] = [
        {"chunk": chunk, "server": cloud, "from": first, "to": last}
        for chunk, (first, last) in enumerate(spans, 1)
    ]
    first, last = min(spans)[0], max(end for _, end in spans)
    return [*rows, {"ps": place_name(cluster, ps), "from": first, "to": last}]
