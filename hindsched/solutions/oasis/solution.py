"""The oasis family's solution: workers and PSs of each job, per server and slot.

Arrays by slot and server, and the tables that follow from them; the kernel judges the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Ints
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.json_types import JsonObject
from hindsched.solutions import rows as file_rows
from hindsched.solutions.base import Assignment, Assignments, Solution, TableRow, usage_table

Deployment = NDArray[Any]  # counts by slot and server: shape (T, H) or (T, K), slot t in row t - 1

KEYS = {"from", "to", "workers", "ps"}


class OasisSolution(Solution):
    """Decisions x, y and z of the offline problem (1)-(13).

    `workers` is y and `ps` is z, by job: counts by slot and server, (T, H) and (T, K). A job that
    runs without reaching its work breaks (2): a scheduler that lets a job run in vain leaves it out
    of its solution, which frees capacity and changes no utility.
    """

    family: ClassVar[str] = "oasis"
    instance: OasisInstance

    def __init__(
        self, instance: OasisInstance, workers: Mapping[str, Deployment],
        ps: Mapping[str, Deployment], formulation: str | None = None,
    ) -> None:  # fmt: skip
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        shapes = (len(instance.worker_servers), len(instance.ps_servers))
        self.workers: dict[str, Deployment] = {}
        self.ps: dict[str, Deployment] = {}
        for job in instance.jobs:
            pair = [
                _checked_counts(deployed.get(job.name), (instance.horizon, width))
                for deployed, width in zip((workers, ps), shapes, strict=True)
            ]
            if any(counts.any() for counts in pair):
                self.workers[job.name], self.ps[job.name] = pair

    @classmethod
    def from_assignments(
        cls, instance: OasisInstance, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows ``{"from", "to", "workers": {server: n}, "ps": {server: n}}``.

        A row is all that its job has then: rows of a job do not overlap.
        """

        def read(_: OasisInstance, where: str, row: Assignment) -> tuple[int, int, Ints, Ints]:
            file_rows.check_row_keys(where, row, {"from", "to"}, KEYS)
            workers, ps = (
                file_rows.read_counts(f"{where}.{role}", row.get(role, {}), servers)
                for role, servers in zip(("workers", "ps"), names, strict=True)
            )
            return *file_rows.read_span(where, row, instance.horizon), workers, ps

        names = _server_names(instance)
        deployed: tuple[dict[str, Deployment], dict[str, Deployment]] = ({}, {})
        for name, rows in file_rows.read_rows(instance, assignments, read).items():
            file_rows.refuse_overlap(f"rows of {name}", [row[:2] for row in rows])
            for counts_by_job, servers in zip(deployed, names, strict=True):
                counts_by_job[name] = np.zeros((instance.horizon, len(servers)), dtype=np.int64)
            for first, last, *counts in rows:
                for counts_by_job, count in zip(deployed, counts, strict=True):
                    counts_by_job[name][first - 1 : last] = count
        return cls(instance, *deployed, formulation=formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows of every job that runs, run-length over slots."""
        names = _server_names(self.instance)
        return {
            name: run_length(self.workers[name], self.ps[name], *names) for name in self.workers
        }

    def completion(self, job: str) -> int | None:
        """(8): last slot with a worker; None for a job that does not reach its work."""
        index = self.instance.job_index(job)
        if job not in self.workers:
            return None
        per_slot = self.workers[job].sum(axis=1)
        if per_slot.sum() < self.instance.work[index]:
            return None
        return int(np.flatnonzero(per_slot > 0)[-1]) + 1

    def value(self, job: str) -> float:
        """Return what the job earns: ``f(completion - arrival)``, 0 without a completion."""
        completion = self.completion(job)
        if completion is None:
            return 0.0
        record = self.instance.jobs[self.instance.job_index(job)]
        return record.utility.value(completion - record.arrival)

    def job_facts(self, job: OasisJob) -> JsonObject:
        """Start, utility earned and asked for, work and workers."""
        y = self.workers.get(job.name)
        per_slot = np.zeros(self.instance.horizon) if y is None else y.sum(axis=1)
        running = np.flatnonzero(per_slot > 0)
        target = {key: getattr(job.utility, key, None) for key in ("target", "decay", "priority")}
        return {
            "start": int(running[0]) + 1 if running.size else None,
            "value": self.value(job.name),
            **target,
            "work": int(self.instance.work[self.instance.job_index(job.name)]),
            "worker_slots": int(per_slot.sum()),
            "most_workers": int(per_slot.max(initial=0)),
        }

    def places(self) -> list[tuple[str, str]]:
        """Servers of workers, then of PSs, each with the resources that it has."""
        servers = (*self.instance.worker_servers, *self.instance.ps_servers)
        return [(s.name, name) for s in servers for name, amount in s.capacity.items() if amount]

    def usage_rows(self) -> list[TableRow]:
        """Use and capacity where anything is used; ``role`` is ``worker`` or ``ps``."""
        instance = self.instance
        rows: list[TableRow] = []
        for role, deployed, demand, capacity, servers in (
            ("worker", self.workers, instance.worker_demand, instance.worker_capacity, 0),
            ("ps", self.ps, instance.ps_demand, instance.ps_capacity, 1),
        ):
            running = [counts.any(axis=1) for counts in deployed.values()]
            last = 1 + int(np.flatnonzero(np.any(running, axis=0)).max(initial=-1))
            use = np.zeros((last, *capacity.shape))
            for name, counts in deployed.items():
                use += counts[:last, :, None] * demand[instance.job_index(name)]
            names = _server_names(instance)[servers], instance.resources
            rows += usage_table(use, capacity, *names, role=role)
        return rows


def _server_names(instance: OasisInstance) -> tuple[list[str], list[str]]:
    """Names of the worker servers and of the PS servers."""
    servers = instance.worker_servers, instance.ps_servers
    worker_names, ps_names = ([server.name for server in group] for group in servers)
    return worker_names, ps_names


def run_length(
    workers: Deployment, ps: Deployment, worker_names: list[str], ps_names: list[str]
) -> list[Assignment]:
    """Rows of the file's form from counts by slot and server, equal neighbours merged."""
    both = np.concatenate([workers, ps], axis=1)
    return [
        {
            "from": first,
            "to": last,
            "workers": file_rows.write_counts(workers[first - 1], worker_names),
            "ps": file_rows.write_counts(ps[first - 1], ps_names),
        }
        for first, last in file_rows.equal_stretches(both)
        if both[first - 1].any()
    ]


def _checked_counts(deployed: Deployment | None, shape: tuple[int, int]) -> Deployment:
    if deployed is None:
        return np.zeros(shape, dtype=np.int64)
    counts = np.asarray(deployed)
    if counts.shape != shape:
        raise ValueError(f"counts have shape {counts.shape}, not {shape}")
    if counts.dtype.kind == "f" and np.array_equal(counts, np.rint(counts)):
        counts = counts.astype(np.int64)
    return counts


SOLUTION = OasisSolution
