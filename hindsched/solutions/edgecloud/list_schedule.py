"""What is fixed of an edgecloud schedule in the middle of a run, and a list schedule around it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cached_property

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Commitments
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
        busy: dict[int, set[int]] = {}
        for run in self.locked:
            slots = range(max(run.first, self.now), run.last + 1)
            busy.setdefault(run.place, set()).update(slots)
        return busy

    def done_on(self, j: int) -> dict[int, list[int]]:
        """Slots done by each started chunk of a job, by place."""
        done: dict[int, list[int]] = {}
        for (job, _), (place, slots) in self.started.items():
            if job == j:
                done.setdefault(place, []).append(slots)
        return done

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


def list_schedule(instance: EdgecloudInstance, past: Past) -> tuple[dict[int, int], list[ChunkRun]]:
    """Jobs in order of arrival, each chunk where it ends first, never preempting.

    The last slot of each open job, and runs of the chunks that had not started. What servers can
    store and PSs are left out of account. Units are the edge workers and those of a finite cloud.
    """
    now, cloud = past.now, len(instance.worker_list)
    free, in_cloud = [now] * cloud, dict[str, range]()
    for kind, count in (instance.cloud.workers or {}).items():
        in_cloud[kind] = range(len(free), len(free) + count)
        free += [now] * count
    ends, rows = dict.fromkeys(past.open_jobs, 1), list[ChunkRun]()

    def hold(j: int, place: int, last: int) -> None:
        """A unit is taken up to a slot, in the cloud the one that is free first."""
        units = in_cloud.get(instance.jobs[j].worker_type, ())
        unit = place if place < cloud else min(units, key=free.__getitem__, default=None)
        if unit is not None:
            free[unit] = max(free[unit], last + 1)

    for run in sorted(past.locked, key=lambda run: run.first):
        hold(run.job, run.place, run.last)
    for (j, _), (place, done) in past.started.items():  # goes on where it is
        left = max(0, int(instance.edge_slots[j]) - done)  # enough for zeta = 1, too
        begin = free[place] if place < cloud and left else now
        ends[j] = max(ends[j], begin + left - 1)
        hold(j, place, begin + left - 1)
    for j in sorted(past.open_jobs, key=lambda j: (instance.arrivals[j], j)):
        job, arrival = instance.jobs[j], int(instance.arrivals[j])
        begun = {chunk for i, chunk in past.started if i == j}
        chunks = [c for c in range(1, job.chunks + 1) if c not in begun]
        edge, ways = int(instance.edge_slots[j]), list[list[ChunkRun]]()
        if instance.has_cloud(job):
            alone = j not in past.on_edge and instance.cloud_ps(job.ps_type) is None
            ready = max(now, arrival + int(instance.cloud_upload[j]))
            units = in_cloud.get(job.worker_type)
            starts = (
                [ready] * len(chunks) if units is None else [max(ready, free[u]) for u in units]
            )
            slots = int(instance.cloud_slots[j]) if alone else edge
            ways.append(_dealt(j, chunks, [(start, cloud) for start in starts], slots))
        if places := instance.places(job):
            ready_at = (arrival + instance.upload[j]).tolist()
            workers = [(max(free[w], ready_at[s], now), w) for s, at in places for w in at]
            ways.append(_dealt(j, chunks, workers, edge))
        runs = min(ways, key=lambda way: max((run.last for run in way), default=0))
        rows += runs
        for run in runs:
            ends[j] = max(ends[j], run.last)
            hold(j, run.place, run.last)
    return ends, rows


def _dealt(j: int, chunks: list[int], units: list[tuple[int, int]], slots: int) -> list[ChunkRun]:
    """Each chunk on the unit, by first free slot and place, on which it ends first."""
    heap, runs = sorted(units), list[ChunkRun]()
    for chunk in chunks:
        first, place = heap[0]
        runs.append(ChunkRun(j, chunk, place, first, first + slots - 1))
        heapq.heapreplace(heap, (first + slots, place))
    return runs
