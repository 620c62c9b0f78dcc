"""astraea: problem (3) of the paper over all ways to place a job.

A *placement* of a job is a worker type, a PS type, the workers y_s and the parameter servers z_s
on every server: what (3e), (3g) and (3i) (for servers with a PS) allow. All of them are enumerated
and tested against the printed constraints; a placement that takes as long as another and uses no
less of anything is left out. The program chooses a placement and a first slot t^- for each job.
Slot t is the interval (t - 1, t]: a job with arrival r uses slots from r + 1 on.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .milp import Milp, ceil_div, utility

FORMULATIONS = (
    "optional,modes", "optional,literal", "must-complete,modes", "must-complete,literal",
)  # fmt: skip
"""Whether (3k) binds every job, or only those that are scheduled; two ways to write it down."""


@dataclass(frozen=True)
class Placement:
    """A way to run a job; `use` has the workers and then the PSs of each (type, server)."""

    worker_type: str
    ps_type: str
    workers: tuple[int, ...]
    ps: tuple[int, ...]
    duration: int
    use: tuple[int, ...]


class Statement:
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.worker_types = self.types("workers", "worker_quota", "worker_bandwidth_mbps")
        self.ps_types = self.types("ps", "ps_quota", "ps_bandwidth_mbps")
        self.program = program = Milp("max")
        horizon = instance["horizon"]
        jobs = instance["jobs"]
        self.chosen = [undominated(list(self.placements(job))) for job in jobs]
        self.x: dict[tuple[int, int, int], int] = {}
        rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for j, job in enumerate(jobs):
            origin = job["arrival"] if instance["utility_origin"] == "arrival" else 0
            for way, placement in enumerate(self.chosen[j]):
                for start in range(job["arrival"] + 1, horizon - placement.duration + 2):  # (3l)
                    last = start + placement.duration - 1  # (3m), (3n)
                    column = program.variable(1, utility(job["utility"], last - origin))
                    self.x[j, way, start] = column
                    for t in range(start, last + 1):  # (3f), (3h)
                        for k, amount in enumerate(placement.use):
                            if amount:
                                rows.setdefault((t, k), []).append((column, amount))
            terms = [(column, 1) for (i, _, _), column in self.x.items() if i == j]
            must = formulation.startswith("must-complete")
            program.row(terms, at_least=1 if must else 0, at_most=1)  # (3k)
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
        for (_, k), terms in rows.items():
            program.row(terms, at_most=have[k])  # (3c), (3d)
        servers = len(instance["servers"])
        for t in range(1, horizon + 1):
            for q, total in enumerate(quota):
                terms = [
                    term
                    for k in range(q * servers, (q + 1) * servers)
                    for term in rows.get((t, k), [])
                ]
                program.row(terms, at_most=total)  # (3a), (3b): the same for every tenant

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
                    duration = math.ceil(total * (together if zeta else apart) / n)  # (3k)
                    use = [
                        amount if own else 0
                        for amounts, names, used in (
                            (workers, self.worker_types, m), (ps, self.ps_types, p)
                        )
                        for own in [name == used for name in names]
                        for amount in amounts
                    ]  # fmt: skip
                    yield Placement(m, p, workers, ps, duration, tuple(use))

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        names = [server["name"] for server in self.instance["servers"]]
        listed = {
            job["name"]: {"name": job["name"], "completion": None, "assignments": []}
            for job in self.instance["jobs"]
        }
        for (j, way, start), column in self.x.items():
            if not point[column]:
                continue
            placement = self.chosen[j][way]
            row: dict[str, Any] = {"from": start, "to": start + placement.duration - 1}
            for key, kind, counts in (
                ("workers", "worker_type", placement.workers), ("ps", "ps_type", placement.ps)
            ):  # fmt: skip
                if getattr(placement, kind):
                    row[kind] = getattr(placement, kind)
                row[key] = {name: n for name, n in zip(names, counts, strict=True) if n}
            name = self.instance["jobs"][j]["name"]
            listed[name] = {"name": name, "completion": row["to"], "assignments": [row]}
        return list(listed.values())


def count(value: Any, name: str) -> Any:
    """Return what a number, or an object keyed by type, says of a type."""
    return value.get(name, 0) if isinstance(value, dict) else value


def undominated(placements: list[Placement]) -> list[Placement]:
    """Leave out what takes as long as another placement, or longer, and uses no less."""
    kept: list[Placement] = []
    for one in sorted(placements, key=lambda p: (p.duration, sum(p.use))):
        if not any(all(a <= b for a, b in zip(other.use, one.use, strict=True)) for other in kept):
            kept.append(one)
    return kept
