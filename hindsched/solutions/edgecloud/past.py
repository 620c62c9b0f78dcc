"""What is fixed of an edgecloud schedule in the middle of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.edgecloud.runs import ChunkRun, ps_place, worker_place


@dataclass
class Past:
    """What cannot change any more when a program is built in the middle of a run.

    Parameters
    ----------
    now : int
        First slot still open.
    open_jobs : list of int
        Jobs still to be planned, in order.
    started : dict
        (job, chunk) -> (place, slots done) of the open jobs' chunks that ran before `now`.
    rows : list of ChunkRun
        History of open jobs, and all rows of locked jobs.
    on_edge : set of int
        Open jobs that used an edge worker or an edge PS: zeta = 0 for good.
    busy : dict
        worker -> slots from `now` on that locked jobs have taken.
    cloud_busy : list of tuple
        (job, first, last) of locked jobs' runs in the cloud.
    ps_busy : list of tuple
        (job, server, first, last) of the PSs that locked jobs hold; the cloud is the last server.
    """

    now: int = 1
    open_jobs: list[int] = field(default_factory=list)
    started: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    rows: list[ChunkRun] = field(default_factory=list)
    on_edge: set[int] = field(default_factory=set)
    busy: dict[int, set[int]] = field(default_factory=dict)
    cloud_busy: list[tuple[int, int, int]] = field(default_factory=list)
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
