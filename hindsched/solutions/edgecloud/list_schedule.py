"""What is fixed of an edgecloud schedule in the middle of a run, and a list schedule around it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cached_property

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.edgecloud.runs import ChunkRun, ps_place, worker_place


@dataclass
class Past:
    """What cannot change any more when a program is built in the middle of a run."""

    now: int = 1  # first slot still open
    open_jobs: list[int] = field(default_factory=list)  # still to be planned, in order
    # (job, chunk) -> (place, slots done), of chunks of open jobs that ran before `now`
    started: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    rows: list[ChunkRun] = field(default_factory=list)  # history, and all of locked jobs
    on_edge: set[int] = field(default_factory=set)  # open jobs with zeta = 0 for good
    holds: list[ChunkRun] = field(default_factory=list)  # PSs of locked jobs

    @cached_property
    def locked(self) -> list[ChunkRun]:
        """Runs of locked jobs."""
        open_jobs = set(self.open_jobs)
        return [run for run in self.rows if run.job not in open_jobs]

    @cached_property
    def busy(self) -> dict[int, set[int]]:
        """Slots from `now` on in which locked jobs run, by place."""
        found: dict[int, set[int]] = {}
        for run in self.locked:
            slots = range(max(run.first, self.now), run.last + 1)
            found.setdefault(run.place, set()).update(slots)
        return found

    def done_on(self, j: int) -> dict[int, list[int]]:
        """Slots done by each started chunk of a job, by place."""
        found: dict[int, list[int]] = {}
        for (job, _), (place, slots) in self.started.items():
            if job == j:
                found.setdefault(place, []).append(slots)
        return found

    def locked_ends(self) -> dict[int, int]:
        """Last slot of each locked job."""
        ends: dict[int, int] = {}
        for run in self.locked:
            ends[run.job] = max(ends.get(run.job, 0), run.last)
        return ends


def read_past(instance: EdgecloudInstance, commitments: Commitments | None) -> Past:
    """Read commitments; None means that nothing has happened yet."""
    if commitments is None:
        return Past(open_jobs=list(range(len(instance.jobs))))
    past = Past(now=commitments.now)
    cloud = len(instance.worker_list)
    for j, job in enumerate(instance.jobs):
        if job.name in commitments.rejected:
            continue
        locked = job.name in commitments.locked
        rows = commitments.assignments.get(job.name, ()) if locked else ()
        for row in rows or commitments.history(job.name):
            first, last = int(str(row["from"])), int(str(row["to"]))
            if "ps" in row:
                if row["ps"] != instance.cloud.name:
                    past.on_edge.add(j)
                if locked:
                    place = ps_place(instance, row, job.name)
                    past.holds.append(ChunkRun(j, 0, place, first, last))
                continue
            place, chunk = worker_place(instance, row, job.name), int(str(row["chunk"]))
            past.rows.append(ChunkRun(j, chunk, place, first, last))
            if not locked:
                if place != cloud:
                    past.on_edge.add(j)
                _, done = past.started.get((j, chunk), (place, 0))
                past.started[j, chunk] = (place, done + last - first + 1)
        if not locked:
            past.open_jobs.append(j)
    return past


class GreedySchedule:
    """Jobs in order of arrival, each chunk where it ends first, never preempting.

    `completion` has the last slot of each open job; `rows` the runs of the chunks that had not
    started. What servers can store and PSs are left out of account.
    """

    def __init__(self, instance: EdgecloudInstance, past: Past) -> None:
        self.instance, self.past = instance, past
        self.free = [
            max([past.now, *(t + 1 for t in past.busy.get(w, ()))])
            for w in range(len(instance.worker_list))
        ]
        self.cloud_free: dict[str, list[int]] = {}
        for kind, count in (instance.cloud.workers or {}).items():
            workers = [past.now] * count
            for run in sorted(past.locked, key=lambda run: run.first):
                there = run.place == len(self.free)
                if there and instance.jobs[run.job].worker_type == kind:
                    heapq.heapreplace(workers, max(run.last + 1, past.now))
            self.cloud_free[kind] = workers
        self.completion = dict.fromkeys(past.open_jobs, 1)
        self.rows: list[ChunkRun] = []
        self._go_on()
        for j in sorted(past.open_jobs, key=lambda j: (instance.arrivals[j], j)):
            self._place(j)

    def _end(self, j: int, slot: int) -> None:
        self.completion[j] = max(self.completion[j], slot)

    def _go_on(self) -> None:
        """What has started goes on where it is."""
        for (j, _), (place, done) in self.past.started.items():
            left = max(0, int(self.instance.edge_slots[j]) - done)  # enough for zeta = 1, too
            if place < len(self.free):
                self.free[place] += left
                self._end(j, self.free[place] - 1 if left else self.past.now - 1)
                continue
            self._end(j, self.past.now + left - 1)
            if free := self.cloud_free.get(self.instance.jobs[j].worker_type):
                heapq.heapreplace(free, max(free[0], self.past.now + left))

    def _place(self, j: int) -> None:
        """Place what has not started wholly at the edge or wholly in the cloud."""
        instance, job, now = self.instance, self.instance.jobs[j], self.past.now
        begun = {chunk for i, chunk in self.past.started if i == j}
        chunks = [c for c in range(1, job.chunks + 1) if c not in begun]
        ready = [int(instance.arrivals[j]) + delay for delay in instance.upload[j].tolist()]
        workers = [
            (max(self.free[w], ready[s], now), w) for s, own in instance.places(job) for w in own
        ]
        ways = [self._dealt(j, chunks, workers, int(instance.edge_slots[j]))] if workers else []
        if instance.has_cloud(job):
            alone = j not in self.past.on_edge and instance.cloud_ps(job.ps_type) is None
            slots = int((instance.cloud_slots if alone else instance.edge_slots)[j])
            uploaded = max(now, int(instance.arrivals[j] + instance.cloud_upload[j]))
            free = self.cloud_free.get(job.worker_type, [now] * len(chunks))
            cloud = [(max(uploaded, begin), len(self.free)) for begin in free]
            ways.insert(0, self._dealt(j, chunks, cloud, slots))
        runs = min(ways, key=lambda way: max((run.last for run in way), default=0))
        self.rows += runs
        for run in runs:
            self._end(j, run.last)
            if run.place < len(self.free):
                self.free[run.place] = max(self.free[run.place], run.last + 1)
            elif job.worker_type in self.cloud_free:
                heapq.heapreplace(self.cloud_free[job.worker_type], run.last + 1)

    def _dealt(
        self, j: int, chunks: list[int], workers: list[tuple[int, int]], slots: int
    ) -> list[ChunkRun]:
        """Each chunk on the worker, by first free slot and place, on which it ends first."""
        heap, found = sorted(workers), list[ChunkRun]()
        for chunk in chunks:
            first, place = heap[0]
            found.append(ChunkRun(j, chunk, place, first, first + slots - 1))
            heapq.heapreplace(heap, (first + slots, place))
        return found
