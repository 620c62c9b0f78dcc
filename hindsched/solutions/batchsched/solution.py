"""Solutions of batchsched, judged by (2a)-(2o) and (15a)-(15b).

A job's decisions are rows
``{from, to, worker_type, workers: {server: n}, ps_type, ps: {server: n}}`` (no ``ps_type`` and
``ps`` for Ring-AllReduce). A feasible job has one row, or several that together are one window
with one unchanging placement. Rows that pause, resize or move a job are well-formed: that is what
preemptive and elastic rivals do, and `violations` names what the offline problem forbids in them
while `rival_violations` checks only what holds for anyone.

q of (2d) and (15a) is no decision of the file: it follows from the placement, as do x and d.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.decimals import added, times
from hindsched.instances.modes import in_pieces
from hindsched.memory import check_large
from hindsched.solutions.base import Assignment, Violation
from hindsched.solutions.rows import (
    check_row_keys,
    read_counts,
    read_span,
    read_type,
    write_counts,
)
from hindsched.solutions.tables import JobRow, UsageRow
from hindsched.solutions.window_row import WindowRow
from hindsched.solutions.window_solution import WindowSolution, lacking_bandwidth, overlaps


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


def row_progress(instance: BatchschedInstance, job: BatchschedJob, row: BatchschedRow) -> Fraction:
    """Mini-batches that the row's workers train in one slot, exactly: ``sum y rho``."""
    count = row.num_workers
    if count <= 0 or (instance.has_ps and row.ps_type < 0):
        return Fraction()
    time = instance.exact_time(job, row.worker_type, row.ps_type, row.one_server)
    return count / time.of(count)


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
    row_progress = staticmethod(row_progress)

    def objective(self) -> float:
        """``sum w (t + d)`` = weight x (last slot + 1) over the jobs that complete."""
        total = 0.0
        for job in self.instance.jobs:
            completion = self.completion(job.name)
            if completion is not None:
                total += job.weight * (completion + 1)
        return total

    def violations(self) -> list[Violation]:
        """Every constraint of (2) or (15) that is broken; ``preemptive`` allows pauses, changes."""
        found = self.rival_violations()
        if in_pieces(self.formulation):
            return found
        for job in self.instance.jobs:
            rows = self.rows.get(job.name, ())
            if len(rows) > 1:
                changes = len(rows) - 1
                found.append(Violation("(2a)", f"job {job.name}: paused or changed", changes))
            for items, number, what in (
                ({row.worker_type for row in rows if row.num_workers}, "(2b)", "worker"),
                ({row.ps_type for row in rows if row.ps_type >= 0}, "(2c)", "PS"),
            ):
                if len(items) > 1:
                    where = f"job {job.name}: {what} types"
                    found.append(Violation(number, where, len(items) - 1))
        return found

    def rival_violations(self) -> list[Violation]:
        """List what even a preemptive or elastic scheduler may not do.

        Everything but "one start, one unchanging placement" (2a), (2b), (2c): every job is
        finished, never before its arrival, never on more than its chunks, within the capacities,
        with the PSs and their bandwidth that (2e) and (2i) ask for in every row.
        """
        found: list[Violation] = []
        for job in self.instance.jobs:
            found += self._job_violations(job)
        return found + self._capacity_violations()

    def _job_violations(self, job: BatchschedJob) -> list[Violation]:
        rows = self.rows.get(job.name, ())
        if not rows:
            return [Violation("(2a)", f"job {job.name}: not scheduled", 1.0)]
        found: list[Violation] = []
        for row in rows:
            found += _row_violations(self.instance, job, row)
        found += overlaps("(2n)", job.name, rows)
        missing = self.work_missing(job)
        if missing > 0:
            found.append(Violation("(2f)", f"job {job.name}: mini-batches", float(missing)))
        return found

    def _check_room(self) -> None:
        needed = float(self.instance.server_capacity.nbytes) * self.last_slot
        check_large(f"what runs in {self.last_slot} slots", needed)

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

    def _capacity_violations(self) -> list[Violation]:
        instance = self.instance
        number = "(2h)" if instance.has_ps else "(15b)"
        capacity, workers, ps = instance.whole_units.tables
        self._check_room()
        excess = -np.repeat(capacity[None], self.last_slot, axis=0)
        for rows in self.rows.values():
            for row in rows:
                span = slice(row.first - 1, row.last)
                excess = added(excess, span, times(row.workers[:, None], workers[row.worker_type]))
                if row.ps_type >= 0:
                    excess = added(excess, span, times(row.ps[:, None], ps[row.ps_type]))
        return [
            Violation(
                number,
                f"server {instance.servers[h].name}, {instance.resources[r]}, slot {t + 1}",
                instance.whole_units.amount(excess[t, h, r], r),
            )
            for t, h, r in np.argwhere(excess > 0)
        ]

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


def _row_violations(
    instance: BatchschedInstance, job: BatchschedJob, row: BatchschedRow
) -> list[Violation]:
    found: list[Violation] = []
    where = f"job {job.name}, slots {row.first}-{row.last}"
    if row.first < job.arrival:
        found.append(Violation("(2j)", where, job.arrival - row.first))
    for counts, number in ((row.workers, "(2k)"), (row.ps, "(2l)")):
        if counts.min() < 0:
            found.append(Violation(number, where, float(-counts.min())))
    if row.num_workers == 0:
        found.append(Violation("(2b)", f"{where}: no worker", 1.0))
    if row.num_workers > job.chunks:
        found.append(Violation("(2g)", where, row.num_workers - job.chunks))
    if not instance.has_ps:
        return found
    if row.ps.sum() < 1:
        found.append(Violation("(2e)", f"{where}: no PS", 1.0))
        return found
    sent = float(instance.worker_bandwidth[row.worker_type])
    received = float(instance.ps_bandwidth[row.ps_type])
    return found + lacking_bandwidth("(2i)", where, row, sent, received, instance.servers)


def row_refusal(
    instance: BatchschedInstance, job: BatchschedJob, row: BatchschedRow
) -> Violation | None:
    """First rule that a single row breaks by itself, capacities apart."""
    found = _row_violations(instance, job, row)
    return found[0] if found else None


SOLUTION = BatchschedSolution
