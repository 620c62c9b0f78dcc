"""How A_online's dispatched chunks are served, and their jobs given parameter servers (PSs).

A_ps (Algorithm 5, with the free PSs that it forgets): a job keeps its PS while it runs; one that
starts to run gets a random free PS of its type at the edge, else one in the cloud. Where the
cloud's PSs are numbered, a job that finds none free waits for the next slot, and the workers
meanwhile serve the next job of their queues; PSs go to the jobs of highest rate first. In the
cloud nothing is interrupted: chunks begin as planned or, where PSs are numbered, in the order in
which they are ready.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.dispatch import Dispatch
from hindsched.online.edgecloud.resources import ParameterServers, place_name, run_changes
from hindsched.solutions.base import Assignment
from hindsched.solvers.kernels.edgecloud.preemptive_queue import QueueState

NewRows = dict[int, list[Assignment]]
"""Rows of a slot's decision by number of the job."""


@dataclass
class _CloudChunk:
    """A chunk that waits for the cloud."""

    index: int
    chunk: int
    ready: int
    slots: int


class Serving:
    """What runs where, said slot by slot.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster.
    queues : QueueState
        The dispatcher's queues, which run as the workers will.
    seed : int
        Seed of the PSs' choice.
    """

    def __init__(self, cluster: EdgecloudInstance, queues: QueueState, seed: int) -> None:
        self.cluster, self.queues = cluster, queues
        self._ps = ParameterServers(cluster, seed)
        self._jobs: dict[int, EdgecloudJob] = {}
        self._work: dict[int, tuple[int, int]] = {}
        self._together: set[int] = set()
        self._chunks: dict[tuple[int, int], list[int]] = {}  # (worker, job) -> chunks in order
        self._done: dict[tuple[int, int], int] = {}  # slots of work done on them
        self._current: dict[int, tuple[int, int]] = {}  # worker -> (job, chunk)
        self._waiting: dict[str, list[_CloudChunk]] = {}
        self._in_cloud: list[tuple[int, int]] = []  # (job, last slot) of what runs there

    def may_be_together(self, job: EdgecloudJob) -> bool:
        """Whether a job may go to the cloud as a whole: a PS is free there, nobody waits for it."""
        if self.cluster.cloud_ps(job.ps_type) is None:
            return True
        queue = {one.index for chunks in self._waiting.values() for one in chunks}
        first = queue & self._together - self._ps.held.keys()
        taken = any(self._jobs[index].ps_type == job.ps_type for index in first)
        return self._ps.cloud_is_free(job.ps_type) and not taken

    def add(self, index: int, job: EdgecloudJob, found: Dispatch, work: tuple[int, int]) -> None:
        """Queue a job's chunks; `work` is a chunk's slots with zeta = 0 and 1."""
        self._jobs[index], self._work[index] = job, work
        for chunk, worker in found.workers:
            self._chunks.setdefault((worker, index), []).append(chunk)
        if found.together:
            self._together.add(index)
        uploaded = job.arrival + job.upload_slots.get(self.cluster.cloud.name, 0)
        as_planned = self.cluster.cloud_ps(job.ps_type) is None
        waiting = self._waiting.setdefault(job.worker_type, [])
        for chunk, begin, _ in found.cloud:
            ready = int(begin) if as_planned else uploaded
            waiting.append(_CloudChunk(index, chunk, ready, work[found.together]))
        waiting.sort(key=lambda one: one.ready)

    def in_cloud(self, slot: int) -> set[int]:
        """Jobs with chunks in the cloud that have not ended before `slot`."""
        waiting = {one.index for chunks in self._waiting.values() for one in chunks}
        return waiting | {index for index, last in self._in_cloud if last >= slot}

    def step(self, slot: int) -> NewRows:
        """PSs for whoever can run, then what begins, goes on and ends."""
        self._in_cloud = [(i, last) for i, last in self._in_cloud if last >= slot]
        before = dict(self._ps.held)
        starts = self._settle(slot, before)
        rows: NewRows = {}
        for index, held in self._ps.held.items():
            if before.get(index) != held:
                row = {"ps": place_name(self.cluster, held[1]), "from": slot}
                rows.setdefault(index, []).append(row)
        for one in starts:
            last = slot + one.slots - 1
            self._waiting[self._jobs[one.index].worker_type].remove(one)
            self._in_cloud.append((one.index, last))
            row = {"chunk": one.chunk, "server": self.cluster.cloud.name}
            rows.setdefault(one.index, []).append({**row, "from": slot, "to": last})
        self._follow_workers(slot, rows)
        return rows

    def _settle(self, slot: int, before: dict[int, tuple[str, int]]) -> list[_CloudChunk]:
        """Hold back, one after the other, the jobs that find no PS; what begins in the cloud."""
        without: set[int] = set()
        while True:
            starts = self._can_start(slot, without)
            active = set(np.unique(self.queues.running()).tolist()) - {-1}
            active |= {i for i, _ in self._in_cloud} | {one.index for one in starts}
            for index in self._ps.held.keys() - active:
                self._ps.give_back(index)
            failed = []
            for i in self._by_rate(active - self._ps.held.keys()):
                together, former = i in self._together, before.get(i)
                if self._ps.take(i, self._jobs[i], slot, together, former) is None:
                    failed.append(i)
            if not failed:
                return starts
            without.update(failed)
            for index in failed:
                self.queues.hold_back(index, slot + 1)

    def _by_rate(self, jobs: set[int]) -> list[int]:
        """Highest average processing rate first."""
        return sorted(jobs, key=lambda i: (self._jobs[i].chunks * self._work[i][0], i))

    def _can_start(self, slot: int, without: set[int]) -> list[_CloudChunk]:
        """The first chunks of each type that find a worker in the cloud."""
        found: list[_CloudChunk] = []
        for kind, waiting in self._waiting.items():
            ready = [one for one in waiting if one.ready <= slot and one.index not in without]
            limit = self.cluster.cloud_workers(kind)
            if ready and limit is not None:
                busy = sum(self._jobs[i].worker_type == kind for i, _ in self._in_cloud)
                ready = ready[: limit - busy]
            found += ready
        return found

    def _follow_workers(self, slot: int, rows: NewRows) -> None:
        """Ends and begins of runs at the edge."""
        running, now = self.queues.running(), dict[int, tuple[int, int]]()
        for worker in np.flatnonzero(running >= 0).tolist():
            index = int(running[worker])
            done = self._done.get((worker, index), 0)
            self._done[worker, index] = done + 1
            now[worker] = index, self._chunks[worker, index][done // self._work[index][0]]
        for index, new in run_changes(self.cluster, slot, self._current, now).items():
            rows.setdefault(index, []).extend(new)
        self._current = now
