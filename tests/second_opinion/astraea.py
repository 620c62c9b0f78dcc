"""astraea: problem (3) of the paper over all ways to place a job.

All placements (`placements.py`) that (3e), (3g) and (3i) (for servers with a PS) allow are
enumerated and tested against the printed constraints. The program chooses one and a first slot t^-
for each job.
Slot t is the interval (t - 1, t]: a job with arrival r uses slots from r + 1 on.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial
from typing import Any

from .milp import ceil_div, utility
from .placements import Placed, Placement

FORMULATIONS = (
    "optional,modes", "optional,literal", "must-complete,modes", "must-complete,literal",
)  # fmt: skip
"""Whether (3k) binds every job, or only those that are scheduled; two ways to write it down."""


class Statement(Placed):
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.worker_types = self.types("workers", "worker_quota", "worker_bandwidth_mbps")
        self.ps_types = self.types("ps", "ps_quota", "ps_bandwidth_mbps")
        horizon, jobs = instance["horizon"], instance["jobs"]
        super().__init__("max", instance, [list(self.placements(job)) for job in jobs])
        must = formulation.startswith("must-complete")
        for j, job in enumerate(jobs):  # (3l)-(3n)
            terms = self.choose(j, job["arrival"] + 1, horizon, partial(self.worth, job))
            self.program.row(terms, at_least=1 if must else 0, at_most=1)  # (3k)
        have = [
            count(server[kind], name)
            for kind, names in (("workers", self.worker_types), ("ps", self.ps_types))
            for name in names
            for server in instance["servers"]
        ]
        quota = [
            sum(count(tenant[kind], name) for tenant in instance["tenants"])
            for kind, names in (("worker_quota", self.worker_types), ("ps_quota", self.ps_types))
            for name in names
        ]
        self.fit(have)  # (3c), (3d), (3f), (3h)
        servers = len(instance["servers"])
        for t in range(1, horizon + 1):
            for q, total in enumerate(quota):
                terms = [
                    term
                    for k in range(q * servers, (q + 1) * servers)
                    for term in self.rows.get((t, k), [])
                ]
                self.program.row(terms, at_most=total)  # (3a), (3b): the same for every tenant

    def worth(self, job: dict[str, Any], last: int) -> Fraction:
        """Utility of a job whose last slot this is."""
        origin = job["arrival"] if self.instance["utility_origin"] == "arrival" else 0
        return utility(job["utility"], last - origin)

    def types(self, *fields: str) -> list[str]:
        """Names of the types; a bare number means one type, here without a name."""
        things = [*self.instance["tenants"], *self.instance["servers"], self.instance]
        names: list[str] = []
        for thing in things:
            for field in fields:
                value = thing.get(field)
                for name in value if isinstance(value, dict) else []:
                    if name not in names:
                        names.append(name)
        return names or [""]

    def placements(self, job: dict[str, Any]) -> Any:
        """All placements of a job, the printed constraints applied one by one."""
        servers = self.instance["servers"]
        for m, p in itertools.product(self.worker_types, self.ps_types):
            b = Fraction(count(self.instance["worker_bandwidth_mbps"], m))
            B = Fraction(count(self.instance["ps_bandwidth_mbps"], p))
            together = Fraction(count(job["minibatch_slots"], m)) + Fraction(
                count(job["update_slots"], p)
            )
            seconds = 8 * Fraction(job["gradient_mb"]) / b
            apart = together + 2 * seconds / Fraction(self.instance["slot_seconds"])
            total = job["epochs"] * job["chunks"] * job["minibatches"]
            rooms = [range(min(count(s["workers"], m), job["chunks"]) + 1) for s in servers]
            for workers in itertools.product(*rooms):
                n = sum(workers)
                if not 1 <= n <= job["chunks"]:  # (3e)
                    continue
                most = max(1, ceil_div(n * b, B))  # more on a server serve nothing in (3i)
                spaces = [range(min(count(s["ps"], p), most) + 1) for s in servers]
                for ps in itertools.product(*spaces):
                    if sum(ps) < 1:  # (3g)
                        continue
                    pairs = list(zip(ps, workers, strict=True))
                    if any(z and (n - y) * b > z * B for z, y in pairs):
                        continue  # (3i)
                    zeta = sum(z + y > 0 for z, y in pairs) == 1  # (3j)
                    slots = total * (together if zeta else apart) / n  # (3k)
                    use = [
                        amount if own else 0
                        for amounts, names, used in (
                            (workers, self.worker_types, m), (ps, self.ps_types, p)
                        )
                        for own in [name == used for name in names]
                        for amount in amounts
                    ]  # fmt: skip
                    yield Placement(m, p, workers, ps, slots, tuple(use))


def count(value: Any, name: str) -> Any:
    """Return what a number, or an object keyed by type, says of a type."""
    return value.get(name, 0) if isinstance(value, dict) else value
