"""A list schedule of edgecloud jobs around what is fixed: from the definitions alone."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

from hindsched.instances.decimals import exactly
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.solutions.edgecloud.frozen_schedule import Past
from hindsched.solutions.edgecloud.runs import ChunkRun


class GreedySchedule:
    """Jobs in order of arrival, each chunk where it ends first, never preempting.

    Attributes
    ----------
    completion : dict
        Last slot of each open job, or None if storage or the cloud leave some chunk no place.
    rows : list of ChunkRun
        Runs of the chunks that had not started.
    """

    def __init__(self, instance: EdgecloudInstance, past: Past) -> None:
        self.instance = instance
        self.gb = [exactly(gb) for gb in instance.chunk_gb.tolist()]
        self.past = past
        now = past.now
        self.free = [
            max([now, *(t + 1 for t in past.busy.get(w, ()))])
            for w in range(len(instance.worker_list))
        ]
        self.cloud_free: dict[str, list[int]] = {}
        for kind, count in (instance.cloud.workers or {}).items():
            taken = [b for b in past.cloud_busy if instance.jobs[b[0]].worker_type == kind]
            last = max([now, *(last + 1 for _, _, last in taken)])
            self.cloud_free[kind] = [last] * count
        self.stored = self._stored_by_locked()  # (server, completion, GB)
        self.ends: dict[int, int] = {}
        self.rows: list[ChunkRun] = []
        self.completion: dict[int, int] | None = self._run()

    def _stored_by_locked(self) -> list[tuple[int, int, Fraction]]:
        """(Server, completion, GB) of the chunks of jobs that are planned for good."""
        rows = [row for row in self.past.rows if row[0] not in set(self.past.open_jobs)]
        ends: dict[int, int] = {}
        for j, *_, last in rows:
            ends[j] = max(ends.get(j, 0), last)
        workers = self.instance.worker_list
        homes = {(j, chunk, place) for j, chunk, place, *_ in rows if place < len(workers)}
        return [(workers[place][0], ends[j], self.gb[j]) for j, _, place in sorted(homes)]

    def _run(self) -> dict[int, int] | None:
        cloud = len(self.instance.worker_list)
        for (j, _), (place, done) in self.past.started.items():
            left = max(0, int(self.instance.edge_slots[j]) - done)  # enough for zeta = 1, too
            if place == cloud:
                self._end(j, self.past.now + left - 1)
                free = self.cloud_free.get(self.instance.jobs[j].worker_type)
                if free is not None:
                    heapq.heapreplace(free, max(free[0], self.past.now + left))
            else:
                self.free[place] += left
                self._end(j, self.free[place] - 1 if left else self.past.now - 1)
        order = sorted(self.past.open_jobs, key=lambda j: (self.instance.arrivals[j], j))
        for j in order:
            if not self._place(j, self.instance.jobs[j]):
                return None
        return {j: max(self.ends[j], 1) for j in order}

    def _end(self, j: int, slot: int) -> None:
        self.ends[j] = max(self.ends.get(j, 0), slot)

    def _place(self, j: int, job: EdgecloudJob) -> bool:
        instance, now = self.instance, self.past.now
        started = sum(1 for i, _ in self.past.started if i == j)
        todo = job.chunks - started
        edge = int(instance.edge_slots[j])
        heap = [
            (max(self.free[w], int(instance.arrivals[j] + instance.upload[j, s]), now) + edge, w)
            for s, workers in instance.places(job)
            for w in workers
        ]
        heapq.heapify(heap)
        room = self._room(j)
        planned: list[tuple[int, int]] = []
        begun = {chunk for i, chunk in self.past.started if i == j}
        unused = [chunk for chunk in range(1, job.chunks + 1) if chunk not in begun]
        numbers = iter(unused)
        rows: list[ChunkRun] = []
        for _ in range(todo):
            while heap and room[instance.worker_list[heap[0][1]][0]] < 1:
                heapq.heappop(heap)
            if not heap:
                break
            end, w = heap[0]
            planned.append((w, end))
            rows.append(ChunkRun(j, next(numbers), w, end - edge, end - 1))
            room[instance.worker_list[w][0]] -= 1
            heapq.heapreplace(heap, (end + edge, w))
        at_edge = max([self.ends.get(j, 0), *(end - 1 for _, end in planned)])
        in_cloud = self._cloud_spans(j, job, todo)
        at_cloud = None if in_cloud is None else max([end for _, end in in_cloud], default=0)
        if at_cloud is not None and (len(planned) < todo or at_cloud <= at_edge):
            assert in_cloud is not None
            self._end(j, at_cloud)
            cloud = len(instance.worker_list)
            spans = zip(unused, in_cloud, strict=True)
            self.rows += [ChunkRun(j, chunk, cloud, *span) for chunk, span in spans]
            free = self.cloud_free.get(job.worker_type)
            for _, end in in_cloud if free is not None else ():
                assert free is not None
                heapq.heapreplace(free, end + 1)
            return True
        if len(planned) < todo:
            return False
        self.rows += rows
        for w, end in planned:
            self.free[w] = max(self.free[w], end)
            self._end(j, end - 1)
        for w, _ in planned:
            self.stored.append((instance.worker_list[w][0], self.ends[j], self.gb[j]))
        return True

    def _cloud_spans(self, j: int, job: EdgecloudJob, todo: int) -> list[tuple[int, int]] | None:
        """First and last slots if all chunks that have not started go to the cloud."""
        instance = self.instance
        if instance.cloud_workers(job.worker_type) == 0:
            return None
        ready = max(self.past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
        alone = j not in self.past.on_edge and instance.cloud_ps(job.ps_type) is None
        slots = int((instance.cloud_slots if alone else instance.edge_slots)[j])
        free = self.cloud_free.get(job.worker_type)
        if free is None:
            return [(ready, ready + slots - 1)] * todo
        heap = list(free)
        spans: list[tuple[int, int]] = []
        for _ in range(todo):
            first = max(ready, heap[0])
            spans.append((first, first + slots - 1))
            heapq.heapreplace(heap, first + slots)
        return spans

    def _room(self, j: int) -> list[float]:
        """How many chunks of a job each server can still store when it arrives."""
        instance = self.instance
        gb = self.gb[j]
        if gb == 0:
            return [math.inf] * len(instance.servers)
        limits = instance.storage_gb.tolist()
        left = [limit if math.isinf(limit) else exactly(limit) for limit in limits]
        for s, completion, taken in self.stored:
            if completion >= instance.arrivals[j]:
                left[s] -= taken
        for (i, _), (place, _) in self.past.started.items():
            if place < len(instance.worker_list):
                left[instance.worker_list[place][0]] -= self.gb[i]
        return [math.inf if math.isinf(amount) else amount // gb for amount in left]
