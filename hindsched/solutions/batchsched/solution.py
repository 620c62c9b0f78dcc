"""Solutions of batchsched, judged by (2a)-(2o) and (15a)-(15b).

A job's decisions are rows
``{from, to, worker_type, workers: {server: n}, ps_type, ps: {server: n}}`` (no ``ps_type`` and
``ps`` for Ring-AllReduce). A feasible job has one row, or several that together are one window
with one unchanging placement. Rows that pause, resize or move a job are well-formed: that is what
preemptive and elastic baselines do, whose solutions are of the formulation ``preemptive``.

q of (2d) and (15a) is no decision of the file: it follows from the placement, as do x and d.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.memory import check_memory
from hindsched.solutions.base import Assignment
from hindsched.solutions.rows import (
    check_row_keys,
    read_counts,
    read_span,
    read_type,
    write_counts,
)
from hindsched.solutions.tables import JobRow, UsageRow
from hindsched.solutions.window_row import WindowRow
from hindsched.solutions.window_solution import WindowSolution


class BatchschedRow(WindowRow):
    """A stretch of slots in which a job's placement does not change; `one_server` is q."""


def read_row(instance: BatchschedInstance, where: str, row: Assignment) -> BatchschedRow:
    """Read one row of the solution file; `InputError` for a malformed one."""
    expected = {"from", "to", "worker_type", "workers"}
    expected |= {"ps_type", "ps"} if instance.has_ps else set()
    check_row_keys(where, row, expected, expected)
    first, last = read_span(where, row)
    servers = instance.server_names
    workers = read_counts(f"{where}.workers", row["workers"], servers)
    worker_names = [item.name for item in instance.worker_types]
    worker_type = read_type(f"{where}.worker_type", row["worker_type"], worker_names)
    ps, ps_type = np.zeros_like(workers), -1
    if instance.has_ps:
        ps = read_counts(f"{where}.ps", row["ps"], servers)
        ps_names = [item.name for item in instance.ps_types or ()]
        ps_type = read_type(f"{where}.ps_type", row["ps_type"], ps_names)
    return BatchschedRow(first, last, worker_type, ps_type, workers, ps)


def write_row(instance: BatchschedInstance, row: BatchschedRow) -> Assignment:
    """Write a row in the file's form."""
    names = instance.server_names
    written: Assignment = {
        "from": row.first,
        "to": row.last,
        "worker_type": instance.worker_types[row.worker_type].name,
        "workers": write_counts(row.workers, names),
    }
    if instance.has_ps:
        assert instance.ps_types is not None
        written["ps_type"] = instance.ps_types[row.ps_type].name
        written["ps"] = write_counts(row.ps, names)
    return written


class BatchschedJobRow(JobRow):
    """A job, and how it ran."""

    weight: float
    workers: int
    preemptions: int
    resizes: int
    one_server: bool | None


class BatchschedSolution(WindowSolution[BatchschedRow]):
    """When, where and with what each job runs.

    Parameters
    ----------
    instance : BatchschedInstance
        The instance.
    rows : mapping
        Rows by job name; a job without rows is not scheduled.
    formulation : str, optional
        ``modes`` or ``literal``, the same problem written twice, or ``preemptive``.
    """

    family: ClassVar[str] = "batchsched"
    instance: BatchschedInstance
    read_row = staticmethod(read_row)
    write_row = staticmethod(write_row)

    def _check_room(self) -> None:
        needed = float(self.instance.server_capacity.nbytes) * self.last_slot
        check_memory(f"what runs in {self.last_slot} slots", needed)

    @cached_property
    def use(self) -> Floats:
        """Resources in use, shape (last_slot, servers, resources)."""
        instance = self.instance
        self._check_room()
        used = np.zeros((self.last_slot, *instance.server_capacity.shape))
        for rows in self.rows.values():
            for row in rows:
                used[row.first - 1 : row.last] += row_use(instance, row)
        return used

    def job_rows(self) -> list[BatchschedJobRow]:
        """One row a job: start, completion, weighted completion time, how it ran."""
        table: list[BatchschedJobRow] = []
        for job in self.instance.jobs:
            rows = self.rows.get(job.name, ())
            completion = self.completion(job.name)
            table.append(
                {
                    "job": job.name,
                    "arrival": job.arrival,
                    "start": rows[0].first if rows else None,
                    "completion": completion,
                    "value": None if completion is None else job.weight * (completion + 1),
                    "weight": job.weight,
                    "workers": max((row.num_workers for row in rows), default=0),
                    "preemptions": sum(
                        after.first > before.last + 1 for before, after in pairwise(rows)
                    ),
                    "resizes": max(0, len(rows) - 1),
                    "one_server": all(row.one_server for row in rows) if rows else None,
                }
            )
        return table

    def places(self) -> list[tuple[str, str]]:
        """Servers, each with the resources that it has."""
        servers = self.instance.servers
        return [(s.name, name) for s in servers for name, amount in s.capacity.items() if amount]

    def usage_rows(self) -> list[UsageRow]:
        """Use and capacity per slot, server and resource, where something is used."""
        instance = self.instance
        return [
            {
                "slot": int(t) + 1,
                "server": instance.servers[h].name,
                "resource": instance.resources[r],
                "used": float(self.use[t, h, r]),
                "capacity": float(instance.server_capacity[h, r]),
            }
            for t, h, r in np.argwhere(self.use > 0)
        ]


def row_use(instance: BatchschedInstance, row: WindowRow) -> Floats:
    """Resources that a row takes in each of its slots, shape (servers, resources)."""
    used: Floats = np.outer(row.workers, instance.worker_demand[row.worker_type])
    if row.ps_type >= 0:
        used = used + np.outer(row.ps, instance.ps_demand[row.ps_type])
    return used


SOLUTION = BatchschedSolution
