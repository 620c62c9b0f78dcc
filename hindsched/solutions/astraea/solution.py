"""Solutions of astraea, judged by (3a)-(3o), with revenue, payments and gains by (2) and (11).

A job's decisions are rows ``{from, to, workers: {server: n}, ps: {server: n}}``, with
``worker_type`` and ``ps_type`` where there are several types, and ``payment: {workers, ps}``, what
the job pays in each slot of the row, if it runs outside its tenant's fair share. A feasible job has
one window with one unchanging placement; payments may change within it. Rows that pause, resize or
move a job are well-formed: baselines do that, whose solutions are of a ``preemptive`` formulation.

zeta of (3j), t- and t+ of (3m), (3n) are no decisions of the file: they follow from the placement.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.solutions.astraea.payments import (
    gained,
    initial_share,
    paid,
    read_payment,
    unused_quota,
)
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.base import Assignment
from hindsched.solutions.rows import check_row_keys, read_counts, read_span, read_type, write_counts
from hindsched.solutions.tables import JobRow, UsageRow
from hindsched.solutions.window_solution import WindowSolution


def read_row(instance: AstraeaInstance, where: str, row: Assignment) -> AstraeaRow:
    """Read one row of the solution file; `InputError` for a malformed one."""
    needed = {"from", "to", "workers", "ps"}
    worker_types, ps_types = instance.worker_types, instance.ps_types
    needed |= {"worker_type"} if len(worker_types) > 1 else set()
    needed |= {"ps_type"} if len(ps_types) > 1 else set()
    check_row_keys(where, row, needed, needed | {"payment", "worker_type", "ps_type"})
    first, last = read_span(where, row)
    names = [server.name for server in instance.servers]
    return AstraeaRow(
        first,
        last,
        read_type(f"{where}.worker_type", row.get("worker_type", worker_types[0]), worker_types),
        read_type(f"{where}.ps_type", row.get("ps_type", ps_types[0]), ps_types),
        read_counts(f"{where}.workers", row["workers"], names),
        read_counts(f"{where}.ps", row["ps"], names),
        read_payment(f"{where}.payment", row.get("payment")),
    )


def write_row(instance: AstraeaInstance, row: AstraeaRow) -> Assignment:
    """Write a row in the file's form."""
    names = [server.name for server in instance.servers]
    written: Assignment = {"from": row.first, "to": row.last}
    if len(instance.worker_types) > 1:
        written["worker_type"] = instance.worker_types[row.worker_type]
    if len(instance.ps_types) > 1:
        written["ps_type"] = instance.ps_types[row.ps_type]
    written["workers"] = write_counts(row.workers, names)
    written["ps"] = write_counts(row.ps, names)
    if row.payment is not None:
        written["payment"] = {"workers": row.payment[0], "ps": row.payment[1]}
    return written


class AstraeaJobRow(JobRow):
    """A tenant's job: what is paid for it and how it ran."""

    tenant: str
    paid: float
    shared: bool
    workers: int
    one_server: bool | None
    preemptions: int


class AstraeaSolution(WindowSolution[AstraeaRow]):
    """When and where each job runs, and what it pays.

    Parameters
    ----------
    instance : AstraeaInstance
        The instance.
    rows : mapping
        Rows by job name; a job without rows is not scheduled.
    formulation : str, optional
        With ``must-complete`` a job that does not complete breaks (3k); with ``optional`` only one
        that runs in vain does. `completion` is t+ of (3m).
    """

    family: ClassVar[str] = "astraea"
    instance: AstraeaInstance
    read_row = staticmethod(read_row)
    write_row = staticmethod(write_row)

    def revenue(self, job: str) -> float | None:
        """``f_j`` at the job's completion, by the instance's origin; None if not completed."""
        completion = self.completion(job)
        return None if completion is None else self.instance.revenue(self._jobs[job], completion)

    def _use(self, role: str) -> Ints:
        """Workers or PSs in use, shape (last_slot, S, types)."""
        count = self.instance.worker_count if role == "worker" else self.instance.ps_count
        check_memory(f"what runs in {self.last_slot} slots", float(count.nbytes) * self.last_slot)
        used = np.zeros((self.last_slot, *count.shape), dtype=np.int64)
        for rows in self.rows.values():
            for row in rows:
                span = slice(row.first - 1, row.last)
                if role == "worker":
                    used[span, :, row.worker_type] += row.workers
                else:
                    used[span, :, row.ps_type] += row.ps
        return used

    @cached_property
    def worker_use(self) -> Ints:
        """Workers in use, shape (last_slot, S, W)."""
        return self._use("worker")

    @cached_property
    def ps_use(self) -> Ints:
        """PSs in use, shape (last_slot, S, P)."""
        return self._use("ps")

    # Payments and gains

    @cached_property
    def unused_quota(self) -> tuple[Ints, Ints]:
        """What each tenant leaves unused of its fair share; see `astraea_payments.unused_quota`."""
        return unused_quota(self.instance, self._by_tenant, self.last_slot)

    def payments(self) -> dict[str, Fraction]:
        """What each tenant pays for its jobs, exactly, in order of the tenants."""
        return dict(zip(self.instance.tenant_index, paid(self._by_tenant), strict=True))

    def gains(self) -> dict[str, Fraction]:
        """What each tenant receives by (2) (several types: (11)), exactly."""
        shares = gained(self._by_tenant, self.unused_quota)
        return dict(zip(self.instance.tenant_index, shares, strict=True))

    def incomes(self) -> dict[str, Fraction]:
        """What each tenant ends with (Section 3.2, i-iii), exactly: revenue + gained - paid.

        They add up to the jobs' revenues: `objective` is their sum, rounded.
        """
        incoming, outgoing = self.gains(), self.payments()
        found = {name: incoming[name] - outgoing[name] for name in incoming}
        for job in self.instance.jobs:
            revenue = self.revenue(job.name)
            if revenue is not None:
                found[job.tenant] += Fraction(revenue)
        return found

    def tenant_rows(self) -> list[JsonObject]:
        """One row a tenant: its jobs' revenue, paid, gained, what remains, and fairness.

        ``fairness`` is the revenue fairness ratio alpha of Section 5.1: the tenant's share of all
        revenue over its initial share of workers and PSs; None without either. With several types
        the initial share is the mean over the types of the cluster.
        """
        instance = self.instance
        outgoing, incoming, incomes = self.payments(), self.gains(), self.incomes()
        total = self.objective()
        rows = []
        for index, tenant in enumerate(instance.tenants):
            own = [self.revenue(job.name) for job in instance.jobs if job.tenant == tenant.name]
            net = float(incomes[tenant.name])
            share = initial_share(instance, index)
            rows.append(
                {
                    "tenant": tenant.name,
                    "jobs": len(own),
                    "completed": sum(value is not None for value in own),
                    "job_revenue": math.fsum(value for value in own if value is not None),
                    "paid": float(outgoing[tenant.name]),
                    "gained": float(incoming[tenant.name]),
                    "revenue": net,
                    "share": share,
                    "fairness": net / total / share if total > 0 and share > 0 else None,
                }
            )
        return rows

    @cached_property
    def _by_tenant(self) -> list[list[tuple[str, AstraeaRow]]]:
        """Rows with their job's name, by tenant."""
        found: list[list[tuple[str, AstraeaRow]]] = [[] for _ in self.instance.tenants]
        for name, rows in self.rows.items():
            tenant = self.instance.tenant_index[self._jobs[name].tenant]
            found[tenant] += [(name, row) for row in rows]
        return found

    def job_rows(self) -> list[AstraeaJobRow]:
        """One row a job: tenant, start, completion, revenue, payment and how it ran."""
        table: list[AstraeaJobRow] = []
        for job in self.instance.jobs:
            rows = self.rows.get(job.name, ())
            paid = math.fsum(row.slots * sum(row.payment) for row in rows if row.payment)
            table.append(
                {
                    "job": job.name,
                    "tenant": job.tenant,
                    "arrival": job.arrival,
                    "start": rows[0].first if rows else None,
                    "completion": self.completion(job.name),
                    "value": self.revenue(job.name),
                    "paid": paid,
                    "shared": any(row.payment is not None for row in rows),
                    "workers": max((row.num_workers for row in rows), default=0),
                    "one_server": all(row.one_server for row in rows) if rows else None,
                    "preemptions": sum(b.first > a.last + 1 for a, b in pairwise(rows)),
                }
            )
        return table

    def places(self) -> list[tuple[str, str]]:
        """Servers, each with the types of workers and PSs that it has."""
        instance = self.instance
        types = (*instance.worker_types, *instance.ps_types)
        counts = np.concatenate([instance.worker_count, instance.ps_count], axis=1)
        return [(instance.servers[s].name, types[k]) for s, k in np.argwhere(counts > 0)]

    def usage_rows(self) -> list[UsageRow]:
        """Use and capacity per slot, server and type, where something is used."""
        instance = self.instance
        return [
            {
                "slot": int(t) + 1,
                "server": instance.servers[s].name,
                "resource": types[w],
                "used": float(use[t, s, w]),
                "capacity": float(count[s, w]),
            }
            for use, count, types in (
                (self.worker_use, instance.worker_count, instance.worker_types),
                (self.ps_use, instance.ps_count, instance.ps_types),
            )
            for t, s, w in np.argwhere(use > 0)
        ]


SOLUTION = AstraeaSolution
