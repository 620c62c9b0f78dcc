"""The edgecloud family's solution: which chunk runs where and when, and who holds which PS.

Rows of the file: ``{"chunk", "server", "worker", "from", "to"}`` runs chunk 1..D on a worker
(numbered from 1 in its server's list; a run in the cloud has no ``worker``), and
``{"ps", "from", "to"}`` holds one PS of the job's type on a server or in the cloud.

In ``literal`` a chunk number is only a lane: problem (2) as printed lets work move and split.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import cached_property
from typing import Any, Self

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.json_types import JsonObject
from hindsched.kernel.verdict import levels
from hindsched.solutions.base import Assignment, Assignments, Solution, TableRow, usage_table
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, file_row, read_runs


class EdgecloudSolution(Solution):
    """Decisions for an edgecloud instance: what runs where and when, and who holds a PS.

    In the formulation ``no-migration`` (default) or ``literal``.
    """

    family = "edgecloud"
    instance: EdgecloudInstance

    def __init__(
        self, instance: EdgecloudInstance, runs: Runs, holds: Runs, formulation: str | None = None
    ) -> None:
        self.instance, self.runs, self.holds = instance, runs, holds
        self.formulation = instance.check_formulation(formulation)

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form; see the base class."""
        return cls(instance, *read_runs(instance, assignments), formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form."""
        rows: dict[str, list[Assignment]] = {}
        for run in (*self.runs.rows(), *self.holds.rows()):
            name = self.instance.jobs[run.job].name
            rows.setdefault(name, []).append(file_row(self.instance, run))
        return rows

    @cached_property
    def all_cloud(self) -> Bools:
        """Which jobs have zeta = 1: every worker and the PS in the cloud, shape (J,)."""
        jobs, runs, holds = np.arange(len(self.instance.jobs)), self.runs, self.holds
        at_edge = runs.job[runs.place < len(self.instance.worker_list)]
        held_at_edge = holds.job[holds.place < len(self.instance.servers)]
        outside = np.isin(jobs, np.concatenate((at_edge, held_at_edge)))
        zeta: Bools = np.isin(jobs, runs.job) & ~outside
        return zeta

    @cached_property
    def chunk_slots(self) -> Ints:
        """Slots that a chunk of each job needs, given where the job runs, shape (J,)."""
        slots: Ints = np.where(self.all_cloud, self.instance.cloud_slots, self.instance.edge_slots)
        return slots

    @cached_property
    def shortfall(self) -> Ints:
        """Chunk-slots that are missing to each job's work, shape (J,); 0 where it is done."""
        runs, need = self.runs, self.chunk_slots
        lanes, lane = np.unique((runs.job, runs.chunk), axis=1, return_inverse=True)
        done = np.bincount(lane.ravel(), weights=runs.last - runs.first + 1)
        if self.formulation != "literal":  # more than a chunk needs makes up for no other
            done = np.minimum(done, need[lanes[0]])
        total = np.bincount(lanes[0], weights=done, minlength=need.size).astype(np.int64)
        missing: Ints = np.maximum(0, self.instance.chunks * need - total)
        return missing

    @cached_property
    def _last(self) -> Ints:
        """Last slot in which each job runs, 0 if it never does, shape (J,)."""
        last = np.zeros(len(self.instance.jobs), dtype=np.int64)
        np.maximum.at(last, self.runs.job, self.runs.last)
        return last

    @cached_property
    def job_completion_times(self) -> Floats:
        """Completion - arrival + 1 in slots, inf for an unfinished job, shape (J,)."""
        times = (self._last - self.instance.arrivals + 1).astype(float)
        times[self.shortfall > 0] = math.inf
        return times

    def completion(self, job: str) -> int | None:
        """Last slot in which the job runs, or None while work is missing."""
        j = self.instance.job_index(job)
        return None if self.shortfall[j] > 0 else int(self._last[j])

    def stored_chunks(self) -> dict[tuple[int, int], int]:
        """Chunks of a job that a server must store (7a), by (job, server).

        In ``literal``, where chunks have no home, the largest number that it trains there at once.
        """
        here = defaultdict[tuple[int, int], list[ChunkRun]](list)
        for run in self.runs.rows():
            if run.place < len(self.instance.worker_list):
                here[run.job, self.instance.worker_list[run.place][0]].append(run)
        if self.formulation != "literal":
            return {at: len({run.chunk for run in runs}) for at, runs in here.items()}
        return {
            at: max(height for *_, height in levels((run.first, run.last, 1) for run in runs))
            for at, runs in here.items()
        }

    @cached_property
    def preemptions(self) -> Ints:
        """How often chunks of each job were suspended and resumed, shape (J,)."""
        runs = self.runs
        same = (runs.job[1:] == runs.job[:-1]) & (runs.chunk[1:] == runs.chunk[:-1])
        resumed = same & (runs.first[1:] > runs.last[:-1] + 1)
        count: Ints = np.bincount(runs.job[1:][resumed], minlength=len(self.instance.jobs))
        return count

    @cached_property
    def _homes(self) -> tuple[Floats, Ints]:
        """Slots of upload, summed over chunks, and chunks in the cloud, of each job.

        Where work moves (``literal``) a chunk number is a lane that carries an equal share of the
        job's chunks, and each server on which it runs needs them uploaded.
        """
        instance, servers = self.instance, self._servers
        delay = np.column_stack((instance.upload, instance.cloud_upload))
        homes = {(run.job, run.chunk, int(servers[run.place])) for run in self.runs.rows()}
        lanes = Counter(j for j, _ in {home[:2] for home in homes})
        upload, in_cloud = np.zeros(len(instance.jobs)), np.zeros(len(instance.jobs), dtype=int)
        for j, _, server in homes:
            upload[j] += delay[j, server] * instance.chunks[j] / lanes[j]
            in_cloud[j] += server == len(instance.servers)
        return upload, in_cloud

    @property
    def _servers(self) -> Ints:
        """Server of each place, their number for the cloud."""
        workers = [s for s, _, _ in self.instance.worker_list]
        return np.array([*workers, len(self.instance.servers)])

    def job_facts(self, job: EdgecloudJob) -> JsonObject:
        """How a job's chunks ran.

        ``communication_slots`` go for gradients and parameters between workers and PS and
        ``upload_slots`` for data, both summed over chunks.
        """
        j, seconds = self.instance.job_index(job.name), self.instance.slot_seconds
        ran = self.runs.first[self.runs.job == j]
        mixed, alone = (job.exact_chunk_slots(seconds, in_cloud=c) for c in (False, True))
        time, (upload, in_cloud) = float(self.job_completion_times[j]), self._homes
        return {
            "start": int(ran.min()) if ran.size else None,
            "value": None if math.isinf(time) else time,
            "chunks": job.chunks,
            "cloud_chunks": int(in_cloud[j]),
            "all_cloud": bool(self.all_cloud[j]),
            "preemptions": int(self.preemptions[j]),
            "communication_slots": 0.0
            if self.all_cloud[j]
            else float(job.chunks * (mixed - alone)),
            "upload_slots": float(upload[j]),
        }

    def places(self) -> list[tuple[str, str]]:
        """Edge servers, each with the types of workers that it has; the cloud stands where used."""
        return [(self.instance.servers[s].name, kind) for s, kind in self.instance.groups]

    def run_of(self, row: Assignment) -> tuple[int, int, float]:
        """One worker a chunk; a row of a PS has none."""
        return row["from"], row["to"], float("chunk" in row)

    def usage_rows(self) -> list[TableRow]:
        """Workers in use per slot, server and type; the cloud's capacity is None if unlimited."""
        runs, instance = self.runs, self.instance
        kinds = sorted({job.worker_type for job in instance.jobs})
        kind_of = np.array([kinds.index(job.worker_type) for job in instance.jobs], dtype=np.int64)
        names = [*(server.name for server in instance.servers), instance.cloud.name]
        row = self._servers[runs.place] * len(kinds) + kind_of[runs.job]
        used = np.zeros((int(runs.last.max(initial=0)) + 2, len(names) * len(kinds)), np.int64)
        np.add.at(used, (runs.first, row), 1)
        np.add.at(used, (runs.last + 1, row), -1)
        most = [[len(instance.groups.get((s, kind), ())) for kind in kinds]
                for s in range(len(names))]  # fmt: skip
        shape = len(used) - 1, len(names), len(kinds)
        by_slot = np.cumsum(used, axis=0)[1:].reshape(shape)
        table = usage_table(by_slot, np.array(most), names, kinds)
        for cell in table:
            if cell["server"] == instance.cloud.name:
                cell["capacity"] = instance.cloud_workers(cell["resource"])
        return table


SOLUTION = EdgecloudSolution
