"""Solutions of the families whose jobs run in one window, with one pair of types: their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import JobRecord
from hindsched.instances.modes import WindowInstance
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.solutions import rows as file_rows
from hindsched.solutions.base import Assignment, Assignments, Solution, TableRow, usage_table

MOST_PAYMENT = 1e15  # the largest price of a slot


@dataclass(frozen=True)
class WindowRow:
    """A stretch of slots in which a job's placement, and what it pays, do not change."""

    first: int
    last: int
    worker_type: int  # positions of the types
    ps_type: int  # -1: none
    workers: Ints  # on each server, (servers,), as `ps`
    ps: Ints
    # Paid per slot for the workers and for the PSs (astraea); None within the fair share.
    payment: tuple[float, float] | None = None

    @property
    def slots(self) -> int:
        """Length of the stretch."""
        return self.last - self.first + 1

    @property
    def num_workers(self) -> int:
        """Workers in all."""
        return int(self.workers.sum())

    @property
    def one_server(self) -> bool:
        """Whether everything stands on one server: q of batchsched, zeta of astraea."""
        return int(((self.workers > 0) | (self.ps > 0)).sum()) == 1

    def moved(self, slots: int) -> WindowRow:
        """The same some slots later."""
        return replace(self, first=self.first + slots, last=self.last + slots)

    def continues_as(self, other: WindowRow) -> bool:
        """Whether `other` follows at once and differs in its slots only."""
        alike = self.worker_type == other.worker_type and self.ps_type == other.ps_type
        if self.last + 1 != other.first or self.payment != other.payment or not alike:
            return False
        counts = ((self.workers, other.workers), (self.ps, other.ps))
        return all(a is b or np.array_equal(a, b) for a, b in counts)


def row_use(instance: WindowInstance, row: WindowRow) -> Floats:
    """What a row uses in each of its slots, shape (servers, resources)."""
    used = np.outer(row.workers, instance.worker_demand[row.worker_type])
    return used + np.outer(row.ps, instance.ps_demand[row.ps_type]) if row.ps_type >= 0 else used


def merge_rows(rows: Iterable[WindowRow]) -> tuple[WindowRow, ...]:
    """Sort rows by time and join those that continue each other."""
    merged: list[WindowRow] = []
    for row in sorted(rows, key=lambda row: (row.first, row.last)):
        if merged and merged[-1].continues_as(row):
            merged[-1] = replace(merged[-1], last=row.last)
        else:
            merged.append(row)
    return tuple(merged)


class WindowSolution(Solution):
    """Rows by job; rows that continue each other are one.

    A feasible job has one row, or several that together are one window with one unchanging
    placement. Rows that pause, resize or move a job are well-formed, though no feasible schedule:
    that is what preemptive baselines do.
    """

    always_typed: ClassVar[bool] = False
    """Whether rows name their types also where there is one of each."""
    may_pay: ClassVar[bool] = False

    def __init__(
        self, instance: Any, rows: Mapping[str, Sequence[WindowRow]], formulation: str | None = None
    ) -> None:
        self.instance: Any = instance  # a `WindowInstance`
        self.formulation = instance.check_formulation(formulation)
        self.rows = {name: merge_rows(job_rows) for name, job_rows in rows.items() if job_rows}

    @classmethod
    def _types(cls, instance: Any) -> list[tuple[str, str, list[str]]]:
        """Roles with the key of their types and those; PSs only where the family has them."""
        roles = (
            ("workers", "worker_type", instance.worker_types),
            ("ps", "ps_type", instance.ps_types),
        )
        return [
            (r, key, [getattr(t, "name", t) for t in names]) for r, key, names in roles if names
        ]

    @classmethod
    def read_row(cls, instance: Any, where: str, row: Assignment) -> WindowRow:
        """Read one row of the solution file; `InputError` for a malformed one."""
        types = cls._types(instance)
        servers = [server.name for server in instance.servers]
        needed = {"from", "to", *(role for role, _, _ in types)}
        needed |= {key for _, key, names in types if cls.always_typed or len(names) > 1}
        allowed = needed | {key for _, key, _ in types} | ({"payment"} if cls.may_pay else set())
        file_rows.check_row_keys(where, row, needed, allowed)
        span, columns = file_rows.read_span(where, row), []
        for role, key, names in types:
            kind = file_rows.read_type(f"{where}.{key}", row.get(key, names[0]), names)
            columns.append((kind, file_rows.read_counts(f"{where}.{role}", row[role], servers)))
        (worker_type, workers), *ps = columns
        ps_type, held = ps[0] if ps else (-1, np.zeros_like(workers))
        payment = _read_payment(f"{where}.payment", row.get("payment"))
        return WindowRow(*span, worker_type, ps_type, workers, held, payment)

    @classmethod
    def write_row(cls, instance: Any, row: WindowRow) -> Assignment:
        """Write a row in the file's form."""
        servers = [server.name for server in instance.servers]
        written: Assignment = {"from": row.first, "to": row.last}
        for role, key, names in cls._types(instance):
            if cls.always_typed or len(names) > 1:
                written[key] = names[getattr(row, key)]
            written[role] = file_rows.write_counts(getattr(row, role), servers)
        if row.payment is not None:
            written["payment"] = {"workers": row.payment[0], "ps": row.payment[1]}
        return written

    @staticmethod
    def row_progress(instance: Any, job: JobRecord, row: WindowRow) -> Fraction:
        """Mini-batches that a row's workers train in one slot, exactly."""
        count = row.num_workers
        if not count:
            return Fraction()
        types = row.worker_type, row.ps_type
        done: Fraction = count / instance.exact_time(job, *types, row.one_server, count)
        return done

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows in the file's form; see `Solution.from_assignments`."""
        return cls(instance, file_rows.read_rows(instance, assignments, cls.read_row), formulation)

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form, in the instance's order of jobs."""
        return {
            job.name: [self.write_row(self.instance, row) for row in self.rows[job.name]]
            for job in self.instance.jobs
            if job.name in self.rows
        }

    def work_missing(self, job: JobRecord) -> Fraction:
        """Mini-batches left undone, exactly; not above 0 if the work is done."""
        rows = self.rows.get(job.name, ())
        done = (row.slots * self.row_progress(self.instance, job, row) for row in rows)
        return job.total_minibatches - sum(done, Fraction())

    def completion(self, job: str) -> int | None:
        """Last slot in which the job runs, or None if its work is not done by then."""
        rows = self.rows.get(job, ())
        if not rows or self.work_missing(self.instance.jobs[self.instance.job_index(job)]) > 0:
            return None
        return max(row.last for row in rows)

    @cached_property
    def last_slot(self) -> int:
        """Last slot that any row uses; 0 without rows."""
        return max((row.last for rows in self.rows.values() for row in rows), default=0)

    @cached_property
    def use(self) -> Floats:
        """Resources in use, shape (last_slot, servers, resources)."""
        capacity = self.instance.server_capacity
        check_memory(f"what runs in {self.last_slot} slots", capacity.nbytes * self.last_slot)
        used = np.zeros((self.last_slot, *capacity.shape))
        for rows in self.rows.values():
            for row in rows:
                used[row.first - 1 : row.last] += row_use(self.instance, row)
        return used

    def places(self) -> list[tuple[str, str]]:
        """Servers, each with the resources that it has."""
        servers, names = self.instance.servers, self.instance.capacity_names
        cells = np.argwhere(self.instance.server_capacity > 0).tolist()
        return [(servers[h].name, names[r]) for h, r in cells]

    def usage_rows(self) -> list[TableRow]:
        """Use and capacity per slot, server and resource, where something is used."""
        instance, servers = self.instance, [server.name for server in self.instance.servers]
        return usage_table(self.use, instance.server_capacity, servers, instance.capacity_names)

    def how_it_ran(self, job: str) -> JsonObject:
        """Start, most workers, whether on one server, pauses, and changes of any kind."""
        rows = self.rows.get(job, ())
        return {
            "start": rows[0].first if rows else None,
            "workers": max((row.num_workers for row in rows), default=0),
            "one_server": all(row.one_server for row in rows) if rows else None,
            "preemptions": sum(after.first > before.last + 1 for before, after in pairwise(rows)),
        }


def _read_payment(where: str, payment: object) -> tuple[float, float] | None:
    """Read ``payment: {workers, ps}``: numbers from 0 on, paid in each slot of the row."""
    if payment is None:
        return None
    if not isinstance(payment, dict) or set(payment) != {"workers", "ps"}:
        raise InputError(where, payment, "must have the keys workers and ps")
    for key, price in payment.items():
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not 0 <= price <= MOST_PAYMENT:
            rule = f"must be a finite number from 0 on, at most {MOST_PAYMENT:.0e}"
            raise InputError(f"{where}.{key}", price, rule)
    return float(payment["workers"]), float(payment["ps"])
