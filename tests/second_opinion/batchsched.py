"""batchsched: problems (2) and (15) of the paper over all ways to place a job.

A *placement* of a job is a worker type m, a PS type p, the workers y_h and the parameter servers
s_h on every server: what (2b), (2c) and (2e)-(2i), or (15a), allow. All of them are enumerated and
tested against the printed constraints one by one; a placement that takes as long as another and
uses no less of anything is left out. The program then chooses a placement and a start for each
job: x_jt in (2a), capacities as in (2h) or (15b), objective sum of w (t + d).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .milp import Milp, ceil_div

FORMULATIONS = ("modes", "literal")  # one problem, written down in two ways


@dataclass(frozen=True)
class Placement:
    """A way to run a job; `use` has what it takes of each resource of each server."""

    worker_type: int
    ps_type: int | None
    workers: tuple[int, ...]
    ps: tuple[int, ...]
    duration: int
    use: tuple[Fraction, ...]


class Statement:
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.resources = instance["resources"]
        self.capacity = [
            [Fraction(server["capacity"].get(r, 0)) for r in self.resources]
            for server in instance["servers"]
        ]
        self.program = program = Milp("min")
        jobs = instance["jobs"]
        placements = [undominated(list(self.placements(job))) for job in jobs]
        if not all(placements):
            program.row([], at_least=1)  # a job that fits nowhere: (2a) cannot hold
            return
        shortest = [min(p.duration for p in some) for some in placements]
        least = [
            Fraction(job["weight"]) * (job["arrival"] + d)
            for job, d in zip(jobs, shortest, strict=True)
        ]
        enough = self.serial_cost(shortest)
        # After the last arrival an idle slot can be cut out of a schedule.
        over = max(job["arrival"] for job in jobs)
        over += sum(max(p.duration for p in some) for some in placements)
        self.x: dict[tuple[int, int, int], int] = {}
        for j, job in enumerate(jobs):
            weight = Fraction(job["weight"])
            latest = min(over, math.floor((enough - sum(least) + least[j]) / weight))  # t + d
            for way, placement in enumerate(placements[j]):
                for t in range(job["arrival"], latest - placement.duration + 1):  # (2j)
                    cost = weight * (t + placement.duration)
                    self.x[j, way, t] = program.variable(1, cost)
            own = [(column, 1) for (i, _, _), column in self.x.items() if i == j]
            program.equal(own, 1)  # (2a)
        rows: dict[tuple[int, int], list[tuple[int, Fraction]]] = {}
        for (j, way, start), column in self.x.items():
            placement = placements[j][way]
            for t in range(start, start + placement.duration):
                for k, amount in enumerate(placement.use):
                    if amount:
                        rows.setdefault((t, k), []).append((column, amount))
        flat = [amount for server in self.capacity for amount in server]
        for (_, k), terms in rows.items():
            program.row(terms, at_most=flat[k])  # (2h), (15b)
        self.chosen = placements

    def serial_cost(self, shortest: list[int]) -> Fraction:
        """Cost of one schedule: jobs one at a time, the denser first."""
        jobs = self.instance["jobs"]
        order = sorted(range(len(jobs)), key=lambda j: shortest[j] / Fraction(jobs[j]["weight"]))
        free, cost = 1, Fraction(0)
        for j in order:
            free = max(free, jobs[j]["arrival"]) + shortest[j]
            cost += jobs[j]["weight"] * free
        return cost

    def placements(self, job: dict[str, Any]) -> Any:
        """All placements of a job, the printed constraints applied one by one."""
        ring = self.instance["architecture"] == "ring-allreduce"
        ps_types = [None] if ring else range(len(self.instance["ps_types"]))
        for m in range(len(self.instance["worker_types"])):  # (2b)
            for workers in self.counts("worker_types", m, job["chunks"]):
                if not 1 <= sum(workers) <= job["chunks"]:  # (2g)
                    continue
                if ring:
                    yield self.ring(job, m, workers)
                    continue
                for p in ps_types:  # (2c)
                    yield from self.parameter_server(job, m, p, workers)

    def counts(self, kind: str, index: int, most: int) -> Any:
        """All numbers of units of a type on every server that fit, each at most `most`."""
        demand = self.instance[kind][index]["demand"]
        room = []
        for capacity in self.capacity:
            fits = most
            for r, amount in zip(self.resources, capacity, strict=True):
                if demand.get(r, 0):
                    fits = min(fits, math.floor(amount / Fraction(demand[r])))
            room.append(range(fits + 1))
        return itertools.product(*room)

    def bandwidth(self, kind: str, index: int) -> Fraction:
        """Bandwidth of a worker or parameter server of a type."""
        return Fraction(
            self.instance[kind][index]["demand"].get(self.instance["bandwidth_resource"], 0)
        )

    def transfer(self, job: dict[str, Any], m: int) -> Fraction:
        """pi / b_m in slots."""
        seconds = 8 * Fraction(job["gradient_mb"]) / self.bandwidth("worker_types", m)
        return seconds / Fraction(self.instance["slot_seconds"])

    def ring(self, job: dict[str, Any], m: int, workers: tuple[int, ...]) -> Placement:
        """Return the placement of a ring of workers, with the rate of (14)."""
        n = sum(workers)
        share = Fraction(n - 1, n)
        batch = Fraction(job["minibatch_slots"][m]) + Fraction(job["reduce_slots"]) * share
        if sum(count > 0 for count in workers) > 1:  # (15a)
            batch += 2 * self.transfer(job, m) * share
        return self.placement(job, m, None, workers, (0,) * len(workers), batch)

    def parameter_server(
        self, job: dict[str, Any], m: int, p: int, workers: tuple[int, ...]
    ) -> Any:
        """Yield the placements with these workers and PSs of type p, with the rate of (1)."""
        b, B = self.bandwidth("worker_types", m), self.bandwidth("ps_types", p)
        n = sum(workers)
        most = max(1, ceil_div(n * b, B)) if B else 1  # more on a server serve nothing in (2i)
        found: list[tuple[tuple[int, ...], bool]] = []
        for servers in self.counts("ps_types", p, most):
            if sum(servers) < 1:  # (2e)
                continue
            if any(s and (n - y) * b > s * B for s, y in zip(servers, workers, strict=True)):
                continue  # (2i)
            together = sum(s + y > 0 for s, y in zip(servers, workers, strict=True)) == 1  # (2d)
            if any(
                q == together and all(a <= s for a, s in zip(other, servers, strict=True))
                for other, q in found
            ):
                continue  # products come in ascending order: fewer PSs did
            found.append((servers, together))
            batch = Fraction(job["minibatch_slots"][m]) + Fraction(job["update_slots"][p])
            if not together:
                batch += 2 * self.transfer(job, m)
            placement = self.placement(job, m, p, workers, servers, batch)
            if self.fits(placement):
                yield placement

    def placement(
        self,
        job: dict[str, Any],
        m: int,
        p: int | None,
        workers: tuple[int, ...],
        servers: tuple[int, ...],
        batch: Fraction,
    ) -> Placement:
        """Return a placement with the least duration that (2f) allows."""
        total = job["epochs"] * job["chunks"] * job["minibatches"]
        use = []
        for y, s in zip(workers, servers, strict=True):
            for r in self.resources:
                amount = y * Fraction(self.instance["worker_types"][m]["demand"].get(r, 0))
                if p is not None:
                    amount += s * Fraction(self.instance["ps_types"][p]["demand"].get(r, 0))
                use.append(amount)
        duration = math.ceil(total * batch / sum(workers))
        return Placement(m, p, tuple(workers), tuple(servers), duration, tuple(use))

    def fits(self, placement: Placement) -> bool:
        """Whether empty servers hold it."""
        flat = [amount for server in self.capacity for amount in server]
        return all(a <= c for a, c in zip(placement.use, flat, strict=True))

    def jobs(self, point: list[Fraction]) -> list[dict[str, Any]]:
        """Jobs of the solution file."""
        names = [server["name"] for server in self.instance["servers"]]
        listed = []
        for (j, way, t), column in self.x.items():
            if not point[column]:
                continue
            placement = self.chosen[j][way]
            last = t + placement.duration - 1
            row = {
                "from": t,
                "to": last,
                "worker_type": self.instance["worker_types"][placement.worker_type]["name"],
                "workers": {name: n for name, n in zip(names, placement.workers, strict=True) if n},
            }
            if placement.ps_type is not None:
                row["ps_type"] = self.instance["ps_types"][placement.ps_type]["name"]
                row["ps"] = {name: n for name, n in zip(names, placement.ps, strict=True) if n}
            job = self.instance["jobs"][j]
            listed.append({"name": job["name"], "completion": last, "assignments": [row]})
        return listed


def undominated(placements: list[Placement]) -> list[Placement]:
    """Leave out what takes as long as another placement, or longer, and uses no less."""
    kept: list[Placement] = []
    for one in sorted(placements, key=lambda p: (p.duration, sum(p.use))):
        if not any(all(a <= b for a, b in zip(other.use, one.use, strict=True)) for other in kept):
            kept.append(one)
    return kept
