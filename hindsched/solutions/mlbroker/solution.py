"""The mlbroker family's solution: workers and parameter servers per slot, and what they cost.

`MlbrokerSolution.costs` accounts for every schedule, whoever made it:

- C1 (1): the cheapest transport of each job's data to its workers;
- C2 (3): two-tier prices on the sum of all jobs' resources;
- C3 (5): a launch in every data centre used now and not in the slot before (``tight``), or, as (8)
  is printed and v is never released, once in a job's life (``paper``);
- C4 (6): every worker exchanges with the PS (``tight``), or, as (8j) is printed, only the N nearest
  do and surplus workers connect for nothing (``paper``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances.mlbroker.instance import COSTS, MlbrokerInstance, MlbrokerJob
from hindsched.instances.mlbroker.transport import min_cost_flow
from hindsched.json_types import JsonObject
from hindsched.limits import check_memory
from hindsched.solutions import rows as file_rows
from hindsched.solutions.base import Assignment, Assignments, Solution, TableRow, usage_table

KEYS = {"from", "to", "workers", "ps"}
BYTES_A_PLACE, BYTES_A_JOB = 64, 32
"""What a schedule and its accounting take a slot and centre, and a job there."""


@dataclass(frozen=True)
class RealisedCosts:
    """What a schedule costs, before weights, in USD."""

    transfer: Floats  # C1, of each job in each slot, (J, T), as C3 and C4
    resource: Floats  # C2, of each resource in each centre and slot, (T, R, K)
    deployment: Floats
    communication: Floats
    used: Floats  # units rented, over all jobs, (T, R, K)

    @cached_property
    def by_cost(self) -> dict[str, float]:
        """Sum of each cost by its word, unweighted."""
        return {cost: float(np.sum(getattr(self, cost))) for cost in COSTS}


def empty_placements(instance: MlbrokerInstance) -> tuple[Ints, Ints]:
    """No workers, (J, T, R), and no PS, (J, T), to be filled in."""
    shape = len(instance.jobs), instance.horizon, len(instance.datacenters)
    return np.zeros(shape, dtype=np.int64), np.full(shape[:2], -1, dtype=np.int64)


def used_by(workers: Ints, ps: Ints) -> Bools:
    """Which centres jobs use, in the shape of `workers`: by a worker or the PS."""
    used: Bools = (workers > 0) | (ps[..., None] == np.arange(workers.shape[-1]))
    return used


class MlbrokerSolution(Solution):
    """Workers and parameter servers of every job in every slot of its life.

    `workers` is y, (J, T, R), 0 outside a job's life; `ps` the position of the PS's centre, (J, T),
    -1 for none. In ``tight`` (the realised cost) or ``paper`` ((8) as printed).
    """

    family: ClassVar[str] = "mlbroker"
    capacity_name: ClassVar[str] = "the discount's threshold"
    instance: MlbrokerInstance

    def __init__(
        self, instance: MlbrokerInstance, workers: Ints, ps: Ints, formulation: str | None = None
    ) -> None:
        self.instance = instance
        self.formulation = instance.check_formulation(formulation)
        self.workers = np.array(workers, dtype=np.int64)
        self.ps = np.array(ps, dtype=np.int64)
        self.workers.flags.writeable = self.ps.flags.writeable = False

    @classmethod
    def from_assignments(
        cls, instance: Any, assignments: Assignments, formulation: str | None = None
    ) -> Self:
        """Build from rows ``{from, to, workers: {centre: n}, ps: centre}``.

        Rows without ``from`` and ``to`` are one a slot of the life, in order.
        """
        shape = (len(instance.jobs), instance.horizon, len(instance.datacenters))
        places = shape[1] * shape[2]
        needed = float(BYTES_A_PLACE * places + BYTES_A_JOB * shape[0] * places)
        check_memory(f"a schedule over {shape[1]} slots", needed)
        workers, ps = empty_placements(instance)
        for name, rows in assignments.items():
            index = instance.job_index(name)
            for span, placed, center in parse_rows(instance, instance.jobs[index], rows):
                workers[index, span] = placed
                ps[index, span] = center
        return cls(instance, workers, ps, formulation)

    @cached_property
    def costs(self) -> RealisedCosts:
        """The accounting, under the solution's own formulation."""
        instance, paper = self.instance, self.formulation == "paper"
        transfer = np.zeros(self.ps.shape)
        communication, arcs = transfer.copy(), instance.arc_prices()
        is_ps = self.ps[:, :, None] == np.arange(self.workers.shape[2])
        for job, slot in np.argwhere(instance.alive):
            placed, ps = self.workers[job, slot], self.ps[job, slot]
            room = instance.capacity[job] * placed
            transfer[job, slot], _, _ = min_cost_flow(
                instance.data[job, slot], room, arcs[job], np.inf
            )
            per_worker = instance.exchange[job] * instance.transfer_price[:, ps] * (ps >= 0)
            if paper:  # only as many workers as are needed talk, the nearest
                nearest = np.argsort(per_worker)
                reached = np.cumsum(np.maximum(placed[nearest], 0))
                talking = np.minimum(reached, int(instance.workers_needed[job, slot]))
                communication[job, slot] = per_worker[nearest] @ np.diff(talking, prepend=0)
            else:
                communication[job, slot] = per_worker @ placed
        present = used_by(self.workers, self.ps)
        if paper:  # v stays 1 for free once it is 1
            present = np.logical_or.accumulate(present, axis=1)
        before = np.zeros_like(present)
        before[:, 1:] = present[:, :-1]
        launches = (present & ~before).sum(axis=2) * instance.alive
        used = np.einsum("jtr,jk->trk", self.workers.astype(float), instance.worker_demand)
        used += np.einsum("jtr,jk->trk", is_ps.astype(float), instance.ps_demand)
        tier = instance.discounted_price * used + instance.tier_fee
        return RealisedCosts(
            transfer=transfer,
            resource=np.minimum(instance.unit_price * used, tier),  # F (2)
            deployment=launches * instance.deployment[:, None],
            communication=communication,
            used=used,
        )

    def objective(self) -> float:
        """Weighted sum of C1..C4, USD."""
        return float(self.verdict.value.low)

    def completion(self, job: str) -> int | None:
        """Departure, if the job has a PS in every slot of its life; None otherwise."""
        index = self.instance.job_index(job)
        served = bool(np.all(self.ps[index][self.instance.alive[index]] >= 0))
        return int(self.instance.jobs[index].departure) if served else None

    def assignments(self) -> dict[str, list[Assignment]]:
        """Rows in the file's form, run-length over slots."""
        names = [center.name for center in self.instance.datacenters]
        assignments: dict[str, list[Assignment]] = {}
        for job, workers, ps in zip(self.instance.jobs, self.workers, self.ps, strict=True):
            rows = [
                {"from": first, "to": last,
                 "workers": file_rows.write_counts(workers[first - 1], names),
                 "ps": names[int(ps[first - 1])]}
                for first, last in file_rows.equal_stretches(np.column_stack([workers, ps]))
                if ps[first - 1] >= 0
            ]  # fmt: skip
            if rows:
                assignments[job.name] = rows
        return assignments

    @cached_property
    def resource_share(self) -> Floats:
        """C2 of each job in each slot, shape (J, T): the tiered bill split by units used."""
        centers = len(self.instance.datacenters)
        with np.errstate(invalid="ignore", divide="ignore"):
            unit = np.where(self.costs.used > 0, self.costs.resource / self.costs.used, 0.0)
        is_ps = (self.ps[:, :, None] == np.arange(centers)).astype(float)
        share: Floats = np.einsum(
            "jtr,jk,trk->jt", self.workers.astype(float), self.instance.worker_demand, unit
        ) + np.einsum("jtr,jk,trk->jt", is_ps, self.instance.ps_demand, unit)
        return share

    def job_facts(self, job: MlbrokerJob) -> JsonObject:
        """Start and costs, the share of the pooled bill by units used."""
        index, costs = self.instance.job_index(job.name), self.costs
        parts = {
            "transfer": costs.transfer[index], "resource": self.resource_share[index],
            "deployment": costs.deployment[index], "communication": costs.communication[index],
        }  # fmt: skip
        summed = {cost: float(part.sum()) for cost, part in parts.items()}
        served = np.flatnonzero(self.ps[index] >= 0)
        return {
            "start": int(served[0]) + 1 if served.size else None,
            "value": float(
                sum(w * c for w, c in zip(self.instance.weights, summed.values(), strict=True))
            ),
            **summed,
            "worker_slots": int(self.workers[index].sum()),
        }

    def places(self) -> list[tuple[str, str]]:
        """Data centres, each with all resources."""
        centers, names = self.instance.datacenters, self.instance.resources
        return [(center.name, name) for center in centers for name in names]

    def usage_rows(self) -> list[TableRow]:
        """Units rented per slot, centre and resource.

        A cloud's capacity is not bounded. What stands as ``capacity`` is the threshold from which
        the lower price holds: used over capacity above 1 means that the discount was reached.
        """
        centers = [center.name for center in self.instance.datacenters]
        return usage_table(
            self.costs.used, self.instance.threshold, centers, self.instance.resources
        )

    def discount_rate(self) -> float | None:
        """Table 5: the tiered bill over the bill at full price; None if nothing is rented."""
        full = float((self.instance.unit_price * self.costs.used).sum())
        return self.costs.by_cost["resource"] / full if full > 0 else None

    def broker_margin(self) -> dict[str, float]:
        """Section 7's broker: users pay halfway between the two unit prices, USD.

        ``charged``: sum of (a + b) / 2 x units; ``paid``: C2; ``margin``: charged - paid;
        ``alone``: what the users would pay at the full price a.
        """
        used = self.costs.used
        middle = (self.instance.unit_price + self.instance.discounted_price) / 2
        charged, paid = float((middle * used).sum()), self.costs.by_cost["resource"]
        alone = float((self.instance.unit_price * used).sum())
        return {"charged": charged, "paid": paid, "margin": charged - paid, "alone": alone}


def parse_rows(
    instance: MlbrokerInstance, job: MlbrokerJob, rows: Sequence[Assignment]
) -> list[tuple[slice, Ints, int]]:
    """Read a job's rows: slots (as a slice of 0-based positions), workers (R,), PS position.

    `InputError` for an unknown key or centre, a count that is no integer, or a slot outside the
    life or covered twice.
    """
    names = [center.name for center in instance.datacenters]
    parsed, spans = list[tuple[slice, Ints, int]](), list[tuple[int, int]]()
    for number, row in enumerate(rows):
        where = f"assignments of {job.name}[{number}]"
        if "from" not in row and "to" not in row and "slot" not in row:
            row = {**row, "from": job.arrival + number, "to": job.arrival + number}
        file_rows.check_row_keys(where, row, KEYS, KEYS)
        first, last = file_rows.read_span(where, row, job.departure, job.arrival)
        spans.append((first, last))
        workers = file_rows.read_counts(f"{where}.workers", row["workers"], names)
        center = file_rows.read_type(f"{where}.ps", row["ps"], names)
        parsed.append((slice(first - 1, last), workers, center))
    file_rows.refuse_overlap(f"assignments of {job.name}", spans)
    return parsed


SOLUTION = MlbrokerSolution
