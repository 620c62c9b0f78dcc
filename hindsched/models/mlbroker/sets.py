"""What the mlbroker programs ask of an instance: slots, arcs, prices and sizes, as dicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.solutions.commitments import Commitments
from hindsched.solutions.mlbroker.solution import arc_prices, parse_rows

Place = tuple[int, int]
"""Slot and data centre."""


@dataclass(frozen=True)
class JobSets:
    """Facts of one job; costs are weighted USD, slots as in files.

    Parameters
    ----------
    slots, centers, kinds : range
        Of its life; R and K.
    capacity, launch : float
        P, GB a worker; c of a launch.
    worker, server : list
        Units of each resource that a worker and the PS rent.
    data : dict
        D, GB by (t, r).
    needed, pinned : dict
        N by t; workers that data which may not leave needs, by (t, r).
    most, in_all : dict
        Most workers in one centre and in all, by t: N and N + R - 1, or what is placed.
    arc : dict
        Price of a GB sent, by (r, r'), where it may be sent.
    talk : dict
        Price of a connection from a worker in r to the PS in r'.
    """

    slots: range
    centers: range
    kinds: range
    capacity: float
    launch: float
    worker: list[int]
    server: list[int]
    data: dict[Place, float]
    needed: dict[int, int]
    pinned: dict[Place, int]
    most: dict[int, int]
    in_all: dict[int, int]
    arc: dict[Place, float]
    talk: dict[Place, float]

    @property
    def places(self) -> list[Place]:
        """All (t, r)."""
        return [(t, r) for t in self.slots for r in self.centers]


def job_sets(instance: MlbrokerInstance, job: int, placed: Ints | None = None) -> JobSets:
    """Facts of a job; `placed`, (T, R), are workers that are decided, at times more than N."""
    record, w = instance.jobs[job], instance.weights.tolist()
    slots, centers = range(record.arrival, record.departure + 1), range(len(instance.datacenters))
    if placed is None:
        placed = np.zeros((instance.horizon, len(centers)), dtype=np.int64)
    needed = {t: int(instance.workers_needed[job, t - 1]) for t in slots}
    arc = arc_prices(instance, job, w[0])
    talk = w[3] * instance.exchange[job] * instance.transfer_price
    both = [(r, q) for r in centers for q in centers]
    data, pinned = instance.data[job], instance.workers_pinned[job]
    return JobSets(
        slots, centers, range(len(instance.resources)), float(instance.capacity[job]),
        float(w[2] * instance.deployment[job]), instance.worker_demand[job].tolist(),
        instance.ps_demand[job].tolist(),
        data={(t, r): float(data[t - 1, r]) for t in slots for r in centers},
        needed=needed,
        pinned={(t, r): int(pinned[t - 1, r]) for t in slots for r in centers},
        most={t: max(1, needed[t], int(placed[t - 1].max())) for t in slots},
        in_all={t: max(needed[t] + len(centers) - 1, int(placed[t - 1].sum())) for t in slots},
        arc={(r, q): float(arc[r, q]) for r, q in both if arc[r, q] < np.inf},
        talk={(r, q): float(talk[r, q]) for r, q in both},
    )  # fmt: skip


@dataclass(frozen=True)
class Bills:
    """The broker's prices, weighted: a, b and e by (r, k), and which bills there are.

    Parameters
    ----------
    keys : list of (t, r, k)
        Slots with live jobs, all centres and resources.
    live : dict
        Jobs by slot.
    unit, lower, fee : list
        a, b and e by r and k.
    """

    keys: list[tuple[int, int, int]]
    live: dict[int, list[int]]
    unit: list[list[float]]
    lower: list[list[float]]
    fee: list[list[float]]


def bills(instance: MlbrokerInstance) -> Bills:
    """The bills of all slots in which a job lives."""
    live = {
        t: np.flatnonzero(instance.alive[:, t - 1]).tolist()
        for t in range(1, instance.horizon + 1)
        if instance.alive[:, t - 1].any()
    }
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


def big_m(slot: SlotData, kind: str = "symmetric", factor: float = 1.0) -> Floats:
    """M of (8c) and (8d) per centre and resource, shape (R, K), weighted USD.

    Parameters
    ----------
    kind : {"symmetric", "loose"}
        ``symmetric``: the least M that is valid in both rows, max(e, (a - b) hmax - e);
        ``loose``: a hmax + e, at which the relaxed bill x is 0 and the relaxation says nothing.
    factor : float
        Multiplies it; at least 1 keeps it valid.
    """
    most = slot.largest_use.sum(axis=0)
    if kind == "symmetric":
        size = np.maximum(slot.fee, (slot.unit - slot.discounted) * most - slot.fee)
    elif kind == "loose":
        size = slot.unit * most + slot.fee
    else:
        raise InputError("big_m", kind, "must be symmetric or loose")
    return np.asarray(factor * size)


def fee_share(instance: MlbrokerInstance, r: int, k: int, theta: float, rho: float) -> float:
    """What a unit pays above the lower price at the duals of (8c) and (8d), in [0, a - b]."""
    unit = float(instance.weights[1] * instance.unit_price[r, k])
    lower = float(instance.weights[1] * instance.discounted_price[r, k])
    return min(max(unit * theta + lower * rho - lower, 0.0), unit - lower)


def decided(instance: MlbrokerInstance, commitments: Commitments | None) -> tuple[Ints, Ints]:
    """What ran before ``now``, and locked jobs: workers (J, T, R), place of the PS (J, T) or -1."""
    shape = len(instance.jobs), instance.horizon, len(instance.datacenters)
    workers, server = np.zeros(shape, dtype=np.int64), np.full(shape[:2], -1)
    for job, record in enumerate(instance.jobs if commitments is not None else ()):
        assert commitments is not None
        rows = commitments.assignments.get(record.name, ())
        last = instance.horizon if record.name in commitments.locked else commitments.now - 1
        for span, placed, center in parse_rows(instance, record, rows):
            slots = slice(span.start, min(span.stop, last))
            workers[job, slots], server[job, slots] = placed, center
    return workers, server
