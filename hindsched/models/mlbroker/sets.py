"""What the mlbroker programs ask of an instance: slots, arcs, prices and sizes, as dicts.

Costs are weighted USD, slots as in files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.declared import DeclarativeProgram
from hindsched.solutions.base import Commitments
from hindsched.solutions.mlbroker.solution import empty_placements, parse_rows

Place = tuple[int, int]  # slot and data centre
Tier = tuple[int, int, int]  # slot, data centre and resource


@dataclass(frozen=True)
class MlbrokerJobSets:
    """Facts of one job."""

    slots: range  # its life
    centers: range  # r
    kinds: range  # k
    capacity: float  # P, GB a worker
    launch: float  # c of a launch
    worker: list[int]  # n, units of each resource that a worker rents
    server: list[int]  # m, and the PS
    data: dict[Place, float]  # D, GB
    needed: dict[int, int]  # N by slot
    most: dict[int, int]  # most workers in one centre by slot: N, or what is placed
    in_all: dict[int, int]  # most workers by slot: N + R - 1, or what is placed
    arc: dict[Place, float]  # price of a GB sent from r to r', where it may be sent
    talk: dict[Place, float]  # price of a connection from a worker in r to the PS in r'

    @property
    def places(self) -> list[Place]:
        """All (t, r)."""
        return [(t, r) for t in self.slots for r in self.centers]

    @property
    def tiers(self) -> list[Tier]:
        """All (t, r, k)."""
        return [(t, r, k) for t, r in self.places for k in self.kinds]


class MlbrokerNames(DeclarativeProgram):
    """Data centres and resources read by their names; costs are weighted USD, called "USD"."""

    OBJECTIVE_UNIT = "USD"
    instance: MlbrokerInstance

    def name_of(self, index: str, place: int) -> str | None:
        if index in ("datacenter", "from", "to"):
            return self.instance.datacenters[place].name
        return self.instance.resources[place] if index == "resource" else None


def job_sets(instance: MlbrokerInstance, job: int, placed: Ints | None = None) -> MlbrokerJobSets:
    """Facts of a job; `placed`, (T, R), are workers that are decided, at times more than N."""
    record, w = instance.jobs[job], instance.weights.tolist()
    slots, centers = range(record.arrival, record.departure + 1), range(len(instance.datacenters))
    if placed is None:
        placed = np.zeros((instance.horizon, len(centers)), dtype=np.int64)
    needed = {t: int(instance.workers_needed[job, t - 1]) for t in slots}
    arc = instance.arc_prices(w[0])[job]
    talk = w[3] * instance.exchange[job] * instance.transfer_price
    both = [(r, q) for r in centers for q in centers]
    places = [(t, r) for t in slots for r in centers]
    return MlbrokerJobSets(
        slots, centers, range(len(instance.resources)), float(instance.capacity[job]),
        float(w[2] * instance.deployment[job]), instance.worker_demand[job].tolist(),
        instance.ps_demand[job].tolist(),
        data={(t, r): float(instance.data[job, t - 1, r]) for t, r in places},
        needed=needed,
        most={t: max(1, needed[t], int(placed[t - 1].max())) for t in slots},
        in_all={t: max(needed[t] + len(centers) - 1, int(placed[t - 1].sum())) for t in slots},
        arc={(r, q): float(arc[r, q]) for r, q in both if arc[r, q] < np.inf},
        talk={(r, q): float(talk[r, q]) for r, q in both},
    )  # fmt: skip


@dataclass(frozen=True)
class Bills:
    """The broker's prices by r and k, and which bills there are."""

    keys: list[Tier]  # slots with live jobs, all centres and resources
    live: dict[int, list[int]]  # jobs by slot
    unit: list[list[float]]  # a
    lower: list[list[float]]  # b
    fee: list[list[float]]  # e


def bills(instance: MlbrokerInstance) -> Bills:
    """The bills of all slots in which a job lives."""
    every = {t: np.flatnonzero(column).tolist() for t, column in enumerate(instance.alive.T, 1)}
    live = {t: jobs for t, jobs in every.items() if jobs}
    centers, kinds = range(len(instance.datacenters)), range(len(instance.resources))
    prices = (instance.unit_price, instance.discounted_price, instance.tier_fee)
    unit, lower, fee = ((instance.weights[1] * price).tolist() for price in prices)
    return Bills([(t, r, k) for t in live for r in centers for k in kinds], live, unit, lower, fee)


def most_rented(instance: MlbrokerInstance, placed: Ints) -> Floats:
    """H: most units of a resource that a job uses in one centre, n max(N, 1) + m, (J, T, K).

    N is the number `placed` there, (J, T, R), where that is larger.
    """
    workers = np.maximum(np.maximum(instance.workers_needed, 1), placed.max(axis=2))[:, :, None]
    most: Floats = workers * instance.worker_demand[:, None] + instance.ps_demand[:, None]
    return most


def big_m(slot: SlotData, factor: float = 1.0) -> Floats:
    """M of (8c) and (8d), shape (R, K), weighted USD: the least that is valid in both rows.

    That is max(e, (a - b) hmax - e). A `factor` above 1 keeps it valid; at (a + b) hmax + e the
    relaxed bill x is 0 and the relaxation says nothing.
    """
    most = slot.largest_use.sum(axis=0)
    least = np.maximum(slot.fee, (slot.unit - slot.discounted) * most - slot.fee)
    return np.asarray(factor * least)


def fee_share(instance: MlbrokerInstance, r: int, k: int, theta: float, rho: float) -> float:
    """What a unit pays above the lower price at the duals of (8c) and (8d), in [0, a - b]."""
    unit = float(instance.weights[1] * instance.unit_price[r, k])
    lower = float(instance.weights[1] * instance.discounted_price[r, k])
    return min(max(unit * theta + lower * rho - lower, 0.0), unit - lower)


def decided(instance: MlbrokerInstance, commitments: Commitments | None) -> tuple[Ints, Ints]:
    """What ran before ``now``, and locked jobs: workers (J, T, R), place of the PS (J, T) or -1."""
    workers, server = empty_placements(instance)
    if commitments is None:
        return workers, server
    for job, record in enumerate(instance.jobs):
        rows = commitments.assignments.get(record.name, ())
        last = instance.horizon if record.name in commitments.locked else commitments.now - 1
        for span, placed, center in parse_rows(instance, record, rows):
            slots = slice(span.start, min(span.stop, last))
            workers[job, slots], server[job, slots] = placed, center
    return workers, server
