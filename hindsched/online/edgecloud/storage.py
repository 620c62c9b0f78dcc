"""What the edge servers store as a run goes on: (7b), whatever ends when.

By (7c) a chunk takes its server's storage from the arrival of its job to the job's completion, also
if it is dispatched later than it arrived. A server therefore has room for a chunk if it had room in
every slot since the arrival; from now on it can only become emptier.

Schedulers whose jobs move reserve storage on arrival: a chunk a worker, on servers of short upload
first, until the job has all the workers that it can use. It then runs on no more workers of a
limited server than it has reserved; servers without a limit stay open to it. A job is narrower
where there is room for fewer workers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hindsched.instances.decimals import exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob


class StorageLedger:
    """Stored chunks by server and job.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster; its jobs are not read.
    """

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
        return [
            limit
            if math.isinf(limit)
            else (exactly(limit) - self._peak(s, job, slot)) // exactly(gb)
            for s, limit in enumerate(self._limits)
        ]

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
