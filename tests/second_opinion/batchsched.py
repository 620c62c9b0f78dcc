"""batchsched: problems (2) and (15) of the paper over all ways to place a job.

All placements (`placements.py`) that (2b), (2c) and (2e)-(2i), or (15a), allow are enumerated and
tested against the printed constraints one by one. The program then chooses one and a start for each
job: x_jt in (2a), capacities as in (2h) or (15b), objective sum of w (t + d).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

from .milp import ceil_div
from .placements import Placed, Placement

FORMULATIONS = ("modes", "literal")  # one problem, written down in two ways


class Statement(Placed):
    """The program and where its decisions stand."""

    def __init__(self, instance: dict[str, Any], formulation: str) -> None:
        self.instance = instance
        self.resources = instance["resources"]
        self.capacity = [
            [Fraction(server["capacity"].get(r, 0)) for r in self.resources]
            for server in instance["servers"]
        ]
        jobs = instance["jobs"]
        super().__init__("min", instance, [list(self.placements(job)) for job in jobs])
        if not all(self.ways):
            self.program.row([], at_least=1)  # a job that fits nowhere: (2a) cannot hold
            return
        shortest = [min(p.duration for p in some) for some in self.ways]
        least = [
            Fraction(job["weight"]) * (job["arrival"] + d)
            for job, d in zip(jobs, shortest, strict=True)
        ]
        enough = self.serial_cost(shortest)
        # After the last arrival an idle slot can be cut out of a schedule.
        over = max(job["arrival"] for job in jobs)
        over += sum(max(p.duration for p in some) for some in self.ways)
        for j, job in enumerate(jobs):
            spare = enough - sum(least) + least[j]
            latest = min(over, math.floor(spare / Fraction(job["weight"])))  # t + d
            own = self.choose(j, job["arrival"], latest - 1, partial(self.worth, job))  # (2j)
            self.program.equal(own, 1)  # (2a)
        self.fit([amount for server in self.capacity for amount in server])  # (2h), (15b)

    def worth(self, job: dict[str, Any], last: int) -> Fraction:
        """Weighted completion w (t + d) of a job whose last slot this is."""
        return Fraction(job["weight"]) * (last + 1)

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
        """Return a placement with the slots that (2f) asks for."""
        total = job["epochs"] * job["chunks"] * job["minibatches"]
        use = []
        for y, s in zip(workers, servers, strict=True):
            for r in self.resources:
                amount = y * Fraction(self.instance["worker_types"][m]["demand"].get(r, 0))
                if p is not None:
                    amount += s * Fraction(self.instance["ps_types"][p]["demand"].get(r, 0))
                use.append(amount)
        worker_type = self.instance["worker_types"][m]["name"]
        ps_type = "" if p is None else self.instance["ps_types"][p]["name"]
        return Placement(
            worker_type, ps_type, workers, servers, total * batch / sum(workers), tuple(use)
        )

    def fits(self, placement: Placement) -> bool:
        """Whether empty servers hold it."""
        flat = [amount for server in self.capacity for amount in server]
        return all(a <= c for a, c in zip(placement.use, flat, strict=True))
