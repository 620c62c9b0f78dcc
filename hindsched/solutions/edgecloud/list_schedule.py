"""What is fixed of an edgecloud schedule in the middle of a run, and a list schedule around it."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from fractions import Fraction

from hindsched.instances.decimals import exactly
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
    busy: dict[int, set[int]] = field(default_factory=dict)  # by worker: slots of locked jobs
    cloud_busy: list[tuple[int, int, int]] = field(default_factory=list)  # (job, first, last)
    # (job, server, first, last) of the PSs of locked jobs; the cloud is the last server
    ps_busy: list[tuple[int, int, int, int]] = field(default_factory=list)

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
        for run in self.rows:
            if run.job not in self.open_jobs:
                ends[run.job] = max(ends.get(run.job, 0), run.last)
        return ends

    def stored_by_locked(self, instance: EdgecloudInstance) -> list[tuple[int, int, int]]:
        """(job, server, last slot) of each chunk that a locked job stores on a server."""
        ends, workers = self.locked_ends(), instance.worker_list
        homes = {
            (run.job, run.chunk, workers[run.place][0])
            for run in self.rows
            if run.job in ends and run.place < len(workers)
        }
        return [(j, s, ends[j]) for j, _, s in sorted(homes)]


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
                    past.ps_busy.append((j, ps_place(instance, row, job.name), first, last))
                continue
            place, chunk = worker_place(instance, row, job.name), int(str(row["chunk"]))
            past.rows.append(ChunkRun(j, chunk, place, first, last))
            if not locked:
                if place != cloud:
                    past.on_edge.add(j)
                _, done = past.started.get((j, chunk), (place, 0))
                past.started[j, chunk] = (place, done + last - first + 1)
            elif place == cloud:
                past.cloud_busy.append((j, first, last))
            else:
                slots = range(max(first, past.now), last + 1)
                past.busy.setdefault(place, set()).update(slots)
        if not locked:
            past.open_jobs.append(j)
    return past


class GreedySchedule:
    """Jobs in order of arrival, each chunk where it ends first, never preempting.

    `completion` has the last slot of each open job, or is None if storage or the cloud leave some
    chunk no place; `rows` the runs of the chunks that had not started.
    """

    def __init__(self, instance: EdgecloudInstance, past: Past) -> None:
        self.instance, self.past, now = instance, past, past.now
        self.gb = [exactly(gb) for gb in instance.chunk_gb.tolist()]
        self.free = [
            max([now, *(t + 1 for t in past.busy.get(w, ()))])
            for w in range(len(instance.worker_list))
        ]
        self.cloud_free: dict[str, list[int]] = {}
        for kind, count in (instance.cloud.workers or {}).items():
            taken = [b for b in past.cloud_busy if instance.jobs[b[0]].worker_type == kind]
            self.cloud_free[kind] = [max([now, *(last + 1 for _, _, last in taken)])] * count
        self.stored = [  # (server, completion, GB)
            (s, end, self.gb[j]) for j, s, end in past.stored_by_locked(instance)
        ]
        self.ends: dict[int, int] = {}
        self.rows: list[ChunkRun] = []
        self._go_on()
        order = sorted(past.open_jobs, key=lambda j: (instance.arrivals[j], j))
        placed = all(self._place(j) for j in order)
        self.completion = {j: max(self.ends[j], 1) for j in order} if placed else None

    def _end(self, j: int, slot: int) -> None:
        self.ends[j] = max(self.ends.get(j, 0), slot)

    def _go_on(self) -> None:
        """What has started goes on where it is."""
        for (j, _), (place, done) in self.past.started.items():
            left = max(0, int(self.instance.edge_slots[j]) - done)  # enough for zeta = 1, too
            if place < len(self.free):
                self.free[place] += left
                self._end(j, self.free[place] - 1 if left else self.past.now - 1)
                continue
            self._end(j, self.past.now + left - 1)
            free = self.cloud_free.get(self.instance.jobs[j].worker_type)
            if free is not None:
                heapq.heapreplace(free, max(free[0], self.past.now + left))

    def _place(self, j: int) -> bool:
        """Place what has not started wholly at the edge or wholly in the cloud."""
        begun = {chunk for i, chunk in self.past.started if i == j}
        chunks = [c for c in range(1, self.instance.jobs[j].chunks + 1) if c not in begun]
        at_edge, in_cloud = self._at_edge(j, chunks), self._in_cloud(j, chunks)
        end = max([self.ends.get(j, 0), *(run.last for run in at_edge or ())])
        cloud_end = max([run.last for run in in_cloud or ()], default=0)
        if in_cloud is not None and (at_edge is None or cloud_end <= end):
            self._end(j, cloud_end)
            self.rows += in_cloud
            if free := self.cloud_free.get(self.instance.jobs[j].worker_type):
                for run in in_cloud:
                    heapq.heapreplace(free, run.last + 1)
            return True
        if at_edge is None:
            return False
        self._end(j, end)
        self.rows += at_edge
        for run in at_edge:
            self.free[run.place] = max(self.free[run.place], run.last + 1)
            server = self.instance.worker_list[run.place][0]
            self.stored.append((server, self.ends[j], self.gb[j]))
        return True

    def _at_edge(self, j: int, chunks: list[int]) -> list[ChunkRun] | None:
        """Each chunk on the worker on which it ends first; None if they cannot be stored."""
        instance, slots = self.instance, int(self.instance.edge_slots[j])
        ready = [int(instance.arrivals[j]) + delay for delay in instance.upload[j].tolist()]
        heap = [
            (max(self.free[w], ready[s], self.past.now) + slots, w)
            for s, workers in instance.places(instance.jobs[j])
            for w in workers
        ]
        heapq.heapify(heap)
        room = self._room(j)
        found: list[ChunkRun] = []
        for chunk in chunks:
            while heap and room[instance.worker_list[heap[0][1]][0]] < 1:
                heapq.heappop(heap)
            if not heap:
                return None
            end, w = heap[0]
            found.append(ChunkRun(j, chunk, w, end - slots, end - 1))
            room[instance.worker_list[w][0]] -= 1
            heapq.heapreplace(heap, (end + slots, w))
        return found

    def _in_cloud(self, j: int, chunks: list[int]) -> list[ChunkRun] | None:
        """The chunks in the cloud, as early as its workers are free."""
        instance, job = self.instance, self.instance.jobs[j]
        if instance.cloud_workers(job.worker_type) == 0:
            return None
        ready = max(self.past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
        alone = j not in self.past.on_edge and instance.cloud_ps(job.ps_type) is None
        slots = int((instance.cloud_slots if alone else instance.edge_slots)[j])
        heap = list(self.cloud_free.get(job.worker_type, ()))
        found: list[ChunkRun] = []
        for chunk in chunks:
            first = max([ready, *heap[:1]])
            found.append(ChunkRun(j, chunk, len(self.free), first, first + slots - 1))
            if heap:
                heapq.heapreplace(heap, first + slots)
        return found

    def _room(self, j: int) -> list[float]:
        """How many chunks of a job each server can still store when it arrives."""
        instance, gb = self.instance, self.gb[j]
        if gb == 0:
            return [math.inf] * len(instance.servers)
        limits = instance.storage_gb.tolist()
        left: list[float | Fraction] = [
            limit if math.isinf(limit) else exactly(limit) for limit in limits
        ]
        for s, completion, taken in self.stored:
            if completion >= instance.arrivals[j]:
                left[s] -= taken
        for (i, _), (place, _) in self.past.started.items():
            if place < len(self.free):
                left[instance.worker_list[place][0]] -= self.gb[i]
        return [math.inf if math.isinf(amount) else amount // gb for amount in left]
