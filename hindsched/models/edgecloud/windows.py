"""How far the edgecloud family's programs must look: what is fixed, and each job's last slot.

Every job must finish, so the programs have no horizon of their own. With a feasible schedule of
objective UB and lower bounds LB_j on each job's time, an optimal schedule gives job j at most
``LB_j + UB - sum_i LB_i``; with an unlimited cloud never more than an all-cloud job takes, because
moving a job that would end later to the cloud only helps.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.models.base import Commitments
from hindsched.solutions.edgecloud.solution import EdgecloudSolution, worker_place


@dataclass
class Past:
    """What cannot change any more when a program is built in the middle of a run.

    Parameters
    ----------
    now : int
        First slot still open.
    started : dict
        (job, chunk) -> (place, slots done) of the open jobs' chunks that ran before `now`.
    rows : list of tuple
        History (job, chunk, place, first, last) of open jobs, and all rows of locked jobs.
    on_edge : set of int
        Open jobs that used an edge worker or an edge PS: zeta = 0 for good.
    busy : dict
        worker -> slots from `now` on that locked jobs have taken.
    cloud_busy : list of tuple
        (job, first, last) of locked jobs' runs in the cloud.
    open_jobs : list of int
        Jobs still to be planned, in order.
    """

    now: int = 1
    started: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    on_edge: set[int] = field(default_factory=set)
    busy: dict[int, set[int]] = field(default_factory=dict)
    cloud_busy: list[tuple[int, int, int]] = field(default_factory=list)
    open_jobs: list[int] = field(default_factory=list)

    def done_on(self, j: int) -> dict[int, list[int]]:
        """Slots done by each started chunk of a job, by place."""
        found: dict[int, list[int]] = {}
        for (job, _), (place, slots) in self.started.items():
            if job == j:
                found.setdefault(place, []).append(slots)
        return found


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
            if "ps" in row:
                if row["ps"] != instance.cloud.name:
                    past.on_edge.add(j)
                continue
            place = worker_place(instance, dict(row), job.name)
            chunk, first, last = (int(str(row[key])) for key in ("chunk", "from", "to"))
            past.rows.append((j, chunk, place, first, last))
            if locked:
                if place == cloud:
                    past.cloud_busy.append((j, first, last))
                else:
                    slots = range(max(first, past.now), last + 1)
                    past.busy.setdefault(place, set()).update(slots)
            else:
                if place != cloud:
                    past.on_edge.add(j)
                _, done = past.started.get((j, chunk), (place, 0))
                past.started[j, chunk] = (place, done + last - first + 1)
        if not locked:
            past.open_jobs.append(j)
    return past


def lone_time(instance: EdgecloudInstance, j: int, formulation: str) -> int:
    """Shortest time of a job that has everything to itself, in slots: a lower bound."""
    job = instance.jobs[j]
    edge, all_cloud = int(instance.edge_slots[j]), int(instance.cloud_slots[j])
    limit = instance.cloud_workers(job.worker_type)
    from_cloud = int(instance.cloud_upload[j])
    workers: Counter[int] = Counter()  # by upload
    for s, members in instance.places(job):
        workers[int(instance.upload[j, s])] += len(members)
    longest = max([*workers, from_cloud])
    if limit != 0:
        workers[from_cloud] += job.chunks if limit is None else min(limit, job.chunks)
    delays = sorted(workers.items())

    def done_in(time: int) -> int:
        """Whole chunks trained within `time`, in ``literal`` chunk-slots."""
        if formulation != "literal":
            return sum(count * (max(0, time - delay) // edge) for delay, count in delays)
        total, at_once = 0, 0
        for (delay, count), until in zip(delays, [d for d, _ in delays[1:]] + [time], strict=True):
            at_once = min(job.chunks, at_once + count)
            total += at_once * max(0, min(until, time) - delay)
        return total

    times: list[int] = []
    if limit != 0:
        at_once = job.chunks if limit is None else min(job.chunks, limit)
        work = job.chunks * all_cloud
        waves = -(-job.chunks // at_once) * all_cloud
        times.append(from_cloud + (-(-work // at_once) if formulation == "literal" else waves))
    if delays:
        need = job.chunks * (edge if formulation == "literal" else 1)
        most = longest + edge * job.chunks
        times.append(_smallest(lambda time: done_in(time) >= need, 1, most))
    return min(times)


def _smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


class GreedySchedule:
    """Jobs in order of arrival, each chunk where it ends first, never preempting.

    Attributes
    ----------
    completion : dict
        Last slot of each open job, or None if storage or the cloud leave some chunk no place.
    rows : list of tuple
        Runs (job, chunk, place, first, last) of the chunks that had not started.
    """

    def __init__(self, instance: EdgecloudInstance, past: Past) -> None:
        self.instance = instance
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
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.completion: dict[int, int] | None = self._run()

    def _stored_by_locked(self) -> list[tuple[int, int, float]]:
        """(Server, completion, GB) of the chunks of jobs that are planned for good."""
        rows = [row for row in self.past.rows if row[0] not in set(self.past.open_jobs)]
        ends: dict[int, int] = {}
        for j, *_, last in rows:
            ends[j] = max(ends.get(j, 0), last)
        workers = self.instance.worker_list
        homes = {(j, chunk, place) for j, chunk, place, *_ in rows if place < len(workers)}
        gb = self.instance.chunk_gb
        return [(workers[place][0], ends[j], float(gb[j])) for j, _, place in sorted(homes)]

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
        rows: list[tuple[int, int, int, int, int]] = []
        for _ in range(todo):
            while heap and room[instance.worker_list[heap[0][1]][0]] < 1:
                heapq.heappop(heap)
            if not heap:
                break
            end, w = heap[0]
            planned.append((w, end))
            rows.append((j, next(numbers), w, end - edge, end - 1))
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
            self.rows += [(j, chunk, cloud, *span) for chunk, span in spans]
            free = self.cloud_free.get(job.worker_type)
            for _, end in in_cloud if free is not None else ():
                assert free is not None
                heapq.heapreplace(free, end + 1)
            return True
        if len(planned) < todo:
            return False
        self.rows += rows
        gb = float(instance.chunk_gb[j])
        for w, end in planned:
            self.free[w] = max(self.free[w], end)
            self._end(j, end - 1)
        for w, _ in planned:
            self.stored.append((instance.worker_list[w][0], self.ends[j], gb))
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
        gb = float(instance.chunk_gb[j])
        if gb == 0:
            return [float("inf")] * len(instance.servers)
        left = instance.storage_gb.tolist()
        for s, completion, taken in self.stored:
            if completion >= instance.arrivals[j]:
                left[s] -= taken
        for (i, _), (place, _) in self.past.started.items():
            if place < len(instance.worker_list):
                left[instance.worker_list[place][0]] -= float(instance.chunk_gb[i])
        return [amount / gb + 1e-9 for amount in left]


def last_slots(
    instance: EdgecloudInstance,
    formulation: str,
    past: Past,
    incumbent: EdgecloudSolution | None = None,
    *,
    edge_ps_only: bool = False,
) -> dict[int, int]:
    """Last slot in which each open job may have to run.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    formulation : str
        Which problem.
    past : Past
        What is fixed.
    incumbent : EdgecloudSolution, optional
        A feasible solution of the whole instance; its objective is used when nothing is fixed.
    edge_ps_only : bool
        Jobs with edge workers need an edge PS, which the list schedule does not look at.
    """
    jobs = past.open_jobs
    arrival = {j: int(instance.arrivals[j]) for j in jobs}
    least = {
        j: max(lone_time(instance, j, formulation), past.now - arrival[j] if past.started else 1)
        for j in jobs
    }
    limits: dict[int, int] = {}
    plan = GreedySchedule(instance, past).completion
    enough_ps = all(instance.cloud_ps(instance.jobs[j].ps_type) is None for j in jobs)
    if plan is not None and enough_ps and not edge_ps_only:
        upper = float(sum(plan[j] - arrival[j] + 1 for j in jobs))
    elif incumbent is not None and not past.rows and past.now == 1:
        upper = incumbent.objective()
    else:
        upper = float("inf")
    if upper == float("inf"):
        total = sum(int(instance.chunks[j] * instance.edge_slots[j]) for j in jobs)
        ready = [
            arrival[j] + int(max([0, *instance.upload[j], instance.cloud_upload[j]])) for j in jobs
        ]
        taken = [t for slots in past.busy.values() for t in slots]
        taken += [last for _, _, last in past.cloud_busy]
        limits = dict.fromkeys(jobs, max([past.now, *ready, *taken]) + total)
    else:
        if incumbent is not None and not past.rows and past.now == 1:
            upper = min(upper, incumbent.objective())
        spare = int(upper + 1e-6) - sum(least.values())
        limits = {j: max(arrival[j] + least[j] + spare - 1, past.now) for j in jobs}
    for j in jobs:
        job = instance.jobs[j]
        fresh = all(i != j for i, _ in past.started)
        free = instance.cloud_workers(job.worker_type) is None
        if fresh and free and instance.cloud_ps(job.ps_type) is None:
            ready_at = max(past.now, arrival[j] + int(instance.cloud_upload[j]))
            limits[j] = min(limits[j], ready_at + int(instance.cloud_slots[j]) - 1)
    return limits
