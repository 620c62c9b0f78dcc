"""Whole jobs in the cloud, as the edge-cloud baselines send them there."""

from __future__ import annotations

import heapq

from hindsched.errors import InputError
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.ps import ParameterServers, place_name
from hindsched.solutions.base import Assignment

Span = tuple[int, int]


class CloudSite:
    """Jobs that go to the cloud as a whole, in order of arrival.

    In an unlimited cloud a job runs as soon as it is uploaded. Where workers or parameter servers
    (PSs) are numbered it begins when one of each is free; its chunks then take the workers in turn,
    and it keeps its PS until the last one has ended. Where the cloud has no PS of its type the PS
    is at the edge, and the job works at the rate of zeta = 0.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster.
    ps : ParameterServers
        All PSs, shared with whoever else takes some.

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
    """Rows of a job whose chunks run in the cloud over `spans`.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster.
    job : EdgecloudJob
        The job.
    spans : list of (int, int)
        First and last slot of each chunk.
    ps : int
        Server of its PS; the number of servers means the cloud.
    """
    cloud = cluster.cloud.name
    rows: list[Assignment] = [
        {"chunk": chunk, "server": cloud, "from": first, "to": last}
        for chunk, (first, last) in enumerate(spans, 1)
    ]
    first, last = min(spans)[0], max(end for _, end in spans)
    return [*rows, {"ps": place_name(cluster, ps), "from": first, "to": last}]
