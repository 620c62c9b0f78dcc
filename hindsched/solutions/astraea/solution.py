"""Solutions of astraea, judged by (3a)-(3o), with revenue, payments and gains by (2) and (11).

A job's decisions are rows ``{from, to, workers: {server: n}, ps: {server: n}}``, with
``worker_type`` and ``ps_type`` where there are several types, and ``payment: {workers, ps}``, what
the job pays in each slot of the row, if it runs outside its tenant's fair share.

What a job pays for workers of a type is divided among the tenants in proportion to what each leaves
unused of that type in that slot, the payer's own part included; PSs likewise. The printed (2) takes
c per job; it must be per slot, else the gain is counted once a slot too often. The kernel divides.

zeta of (3j), t- and t+ of (3m), (3n) are no decisions of the file: they follow from the placement.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.json_types import JsonObject
from hindsched.solutions.window_solution import WindowSolution


class AstraeaSolution(WindowSolution):
    """When and where each job runs, and what it pays; see `WindowSolution`.

    With ``must-complete`` a job that does not complete breaks (3k); with ``optional`` only one that
    runs in vain does. `completion` is t+ of (3m).
    """

    family: ClassVar[str] = "astraea"
    may_pay = True
    instance: AstraeaInstance

    def revenue(self, job: str) -> float | None:
        """``f_j`` at the job's completion, by the instance's origin; None if not completed."""
        completion = self.completion(job)
        if completion is None:
            return None
        return self.instance.revenue(self.instance.jobs[self.instance.job_index(job)], completion)

    # Payments and gains

    def payments(self) -> dict[str, Fraction]:
        """What each tenant pays for its jobs, exactly, in order of the tenants."""
        return self._noted("pays")

    def gains(self) -> dict[str, Fraction]:
        """What each tenant receives by (2) (several types: (11)), exactly."""
        return self._noted("gains")

    def _noted(self, what: str) -> dict[str, Fraction]:
        notes = dict(self.verdict.notes)
        return {name: notes[f"tenant {name} {what}"] for name in self.instance.tenant_index}

    def incomes(self) -> dict[str, Fraction]:
        """What each tenant ends with (Section 3.2, i-iii), exactly: revenue + gained - paid.

        They add up to the jobs' revenues: `objective` is their sum, rounded.
        """
        incoming, outgoing = self.gains(), self.payments()
        net = {name: incoming[name] - outgoing[name] for name in incoming}
        for job in self.instance.jobs:
            net[job.tenant] += Fraction(self.revenue(job.name) or 0)
        return net

    def tenant_rows(self) -> list[JsonObject]:
        """One row a tenant: its jobs' revenue, paid, gained, what remains, and fairness.

        ``share`` is the mean over the types of the cluster's workers and of its PSs that the tenant
        brought in, ``fairness`` the revenue fairness ratio alpha of Section 5.1: the tenant's share
        of all revenue over that; None without either.
        """
        instance, total = self.instance, self.objective()
        outgoing, incoming, incomes = self.payments(), self.gains(), self.incomes()
        shares = (_mean_shares(instance.worker_quota) + _mean_shares(instance.ps_quota)) / 2
        rows = []
        for tenant, share in zip(instance.tenants, shares.tolist(), strict=True):
            revenues = [
                self.revenue(job.name) for job in instance.jobs if job.tenant == tenant.name
            ]
            net = float(incomes[tenant.name])
            rows.append(
                {
                    "tenant": tenant.name,
                    "jobs": len(revenues),
                    "completed": sum(value is not None for value in revenues),
                    "job_revenue": math.fsum(value for value in revenues if value is not None),
                    "paid": float(outgoing[tenant.name]),
                    "gained": float(incoming[tenant.name]),
                    "revenue": net,
                    "share": share,
                    "fairness": net / total / share if total > 0 and share > 0 else None,
                }
            )
        return rows

    def job_facts(self, job: AstraeaJob) -> JsonObject:
        """Tenant, revenue, payment and how the job ran."""
        paying = [row for row in self.rows.get(job.name, ()) if row.payment]
        return {
            "tenant": job.tenant,
            "value": self.revenue(job.name),
            "paid": math.fsum(row.slots * sum(row.payment or ()) for row in paying),
            "shared": bool(paying),
            **self.how_it_ran(job.name),
        }


def _mean_shares(quota: Ints) -> Floats:
    """Each tenant's share of each type's total, on average over the types that there are."""
    total = quota.sum(axis=0)
    shares = quota[:, total > 0] / total[total > 0]
    means: Floats = shares.mean(axis=1) if shares.shape[1] else np.zeros(len(quota))
    return means


SOLUTION = AstraeaSolution
