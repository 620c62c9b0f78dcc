"""The mlbroker family's instance: geo-distributed jobs, data centres and two-tier prices.

The paper's symbols by field, with units and shapes, stand in ``docs/problems/mlbroker.md``.

Resources of ``h`` units in a centre cost ``min(a h, b h + e)`` for the sum over all jobs: the
volume discount that a broker earns by pooling them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hindsched.arrays import Bools, Floats, Ints
from hindsched.instances import base
from hindsched.instances.decimals import NEAR, exactly

COSTS = ("transfer", "resource", "deployment", "communication")
"""The paper's C1 (1), C2 (3), C3 (5) and C4 (6), by the words used everywhere here."""


def workers_for(data: Floats, capacity: Floats | float) -> Ints:
    """Workers that can train data, exactly: ceil(sum_r D / P); D of shape (..., R) and P in GB."""
    needed = data.sum(axis=-1) / capacity
    whole, room = np.ceil(needed), np.broadcast_to(capacity, needed.shape)
    near = np.abs(needed - np.rint(needed)) <= NEAR * np.maximum(1.0, needed)
    for index in map(tuple, np.argwhere(near & (needed > 0)).tolist()):  # rounding may err there
        total = sum(map(exactly, data[index].tolist()), Fraction())
        whole[index] = math.ceil(total / exactly(float(room[index])))
    return whole.astype(np.int64)


class TierPrice(base.Record):
    """A concave two-tier price: ``min(unit h, discounted h + (unit - discounted) threshold)``."""

    unit_usd: base.NonNegative = Field(description="a: USD a unit and slot below the threshold")
    discounted_usd: base.NonNegative = Field(description="b <= a: USD a unit and slot beyond it")
    threshold: base.NonNegative = Field(description="l: units a slot from which b holds")


class MlbrokerDatacenter(base.Record):
    """A data centre."""

    name: base.Name = Field(description="name, unique among the data centres")
    prices: dict[str, TierPrice] = Field(description="two-tier price of every resource")


class CostWeights(base.Record):
    """Weights of the four costs in the objective (the weighted sum of Section 3.3)."""

    transfer: base.NonNegative = Field(default=1, description="weight of C1")
    resource: base.NonNegative = Field(default=1, description="weight of C2")
    deployment: base.NonNegative = Field(default=1, description="weight of C3")
    communication: base.NonNegative = Field(default=1, description="weight of C4")


class MlbrokerJob(base.Record):
    """A geo-distributed incremental-learning job."""

    name: base.Name = Field(description="name, unique in the instance")
    arrival: base.Slot = Field(description="t: first slot of the job's life, from 1")
    departure: base.Slot = Field(description="last slot of its life")
    worker: base.Demand = Field(description="n: demand of a worker by resource")
    ps: base.Demand = Field(description="m: demand of the parameter server (PS) by resource")
    capacity_gb: base.Positive = Field(description="P: most data that a worker trains a slot, GB")
    exchange_gb: base.NonNegative = Field(
        description="B: data between a worker and the PS in a slot, both directions, GB"
    )
    deployment_usd: base.NonNegative = Field(
        description="c: USD of launching the job where it did not run the slot before"
    )
    data_gb: tuple[tuple[base.NonNegative, ...], ...] = Field(
        description="D: for each slot of the life, the data that awaits in each data centre, GB"
    )
    pinned_datacenters: tuple[str, ...] = Field(
        default=(), description="data centres whose data may not leave (Section 7)"
    )


def _tier_numbers(field: str) -> base.cluster_property[Floats]:
    """A number of the prices of every centre and resource, shape (R, K)."""
    return base.cluster_property(
        lambda self: np.array(
            [[getattr(center.prices[kind], field) for kind in self.resources]
             for center in self.datacenters], dtype=float,
        )
    )  # fmt: skip


def _entry_for_each(
    where: str, row: Sized, records: Sized, what: str = "data centres"
) -> base.Rule:
    rule = f"must have one entry for each of the {len(records)} {what}"
    return len(row) == len(records), where, f"{len(row)} entries", rule


class MlbrokerInstance(base.Instance):
    """Data centres, a horizon and the jobs that arrive in it."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    formulations: ClassVar[tuple[str, ...]] = ("tight", "paper")

    family: Literal["mlbroker"] = "mlbroker"
    resources: Annotated[tuple[base.Name, ...], Field(min_length=1)]
    datacenters: Annotated[tuple[MlbrokerDatacenter, ...], Field(min_length=1)]
    transfer_usd_per_gb: tuple[tuple[base.NonNegative, ...], ...] = Field(
        description="d: USD of moving a GB from row to column, diagonal 0"
    )
    cost_weights: CostWeights = Field(
        default=CostWeights(), description="weights of the four costs"
    )
    jobs: tuple[MlbrokerJob, ...]

    def cluster_rules(self) -> Iterator[base.Rule]:
        """Resources, data centres with a concave price of each, and transfers between them."""
        yield from base.unique_names("resources", self.resources)
        yield from base.unique_names("datacenters", self.datacenters)
        for index, center in enumerate(self.datacenters):
            where = f"datacenters[{index}].prices"
            yield from base.known_keys(where, center.prices, self.resources)
            for name in self.resources:
                priced, rule = name in center.prices, "every resource must have a price"
                yield priced, f"{where}.{name}", "(absent)", rule
            for name, price in center.prices.items():
                least, most = price.discounted_usd, price.unit_usd
                rule = f"must not exceed unit_usd = {most}: prices are concave"
                yield least <= most, f"{where}.{name}.discounted_usd", least, rule
        prices, centers = self.transfer_usd_per_gb, self.datacenters
        yield _entry_for_each("transfer_usd_per_gb", prices, centers)
        for index, row in enumerate(prices):
            where = f"transfer_usd_per_gb[{index}]"
            yield _entry_for_each(where, row, centers)
            diagonal = row[index : index + 1]
            yield diagonal in ((), (0,)), f"{where}[{index}]", diagonal, "the diagonal must be 0"

    def job_rules(self, job: MlbrokerJob) -> Iterator[base.Rule]:
        """A job lives within the horizon and names resources and data centres that there are."""
        life, known = range(job.arrival, job.departure + 1), [c.name for c in self.datacenters]
        rule = f"must be in arrival..horizon = {job.arrival}..{self.horizon}"
        yield life and job.departure <= self.horizon, "departure", job.departure, rule
        yield from base.known_keys("worker", job.worker, self.resources)
        yield from base.known_keys("ps", job.ps, self.resources)
        yield _entry_for_each("data_gb", job.data_gb, life, "slots of arrival..departure")
        for offset, row in enumerate(job.data_gb):
            yield _entry_for_each(f"data_gb[{offset}]", row, self.datacenters)
        yield from base.unique_names("pinned_datacenters", job.pinned_datacenters)
        for position, name in enumerate(job.pinned_datacenters):
            rule = "must be a data centre of the instance"
            yield name in known, f"pinned_datacenters[{position}]", name, rule

    def certain_bound(self) -> float:
        """No cost is below 0."""
        return 0.0

    unit_price = _tier_numbers("unit_usd")  # a, USD per unit and slot, (R, K)
    discounted_price = _tier_numbers("discounted_usd")  # b, the same
    threshold = _tier_numbers("threshold")  # l, units per slot, (R, K)

    @base.cluster_property
    def tier_fee(self) -> Floats:
        """Fee e = (a - b) l, USD per slot, shape (R, K): what the lower price costs to enter."""
        return (self.unit_price - self.discounted_price) * self.threshold

    @base.cluster_property
    def transfer_price(self) -> Floats:
        """d, USD per GB, shape (R, R)."""
        return np.array(self.transfer_usd_per_gb, dtype=float)

    worker_demand = cached_property(base.amounts("jobs", "worker"))  # n, units, (J, K)
    ps_demand = cached_property(base.amounts("jobs", "ps"))  # m, units, (J, K)
    capacity = base.per_job("capacity_gb", float)  # P, GB per worker and slot
    exchange = base.per_job("exchange_gb", float)  # B, GB per worker-PS pair and slot
    deployment = base.per_job("deployment_usd", float)  # c, USD per launch

    @cached_property
    def alive(self) -> Bools:
        """Whether a job lives in a slot, shape (J, T)."""
        alive = np.zeros((len(self.jobs), self.horizon), dtype=bool)
        for index, job in enumerate(self.jobs):
            alive[index, job.arrival - 1 : job.departure] = True
        return alive

    @cached_property
    def slots_left(self) -> Ints:
        """Slots of a job's life from a slot on, shape (J, T)."""
        alive = self.alive.astype(np.int64)
        left: Ints = np.cumsum(alive[:, ::-1], axis=1)[:, ::-1] * alive
        return left

    @cached_property
    def data(self) -> Floats:
        """D, GB, shape (J, T, R); 0 outside a job's life."""
        data = np.zeros((len(self.jobs), self.horizon, len(self.datacenters)))
        for index, job in enumerate(self.jobs):
            data[index, job.arrival - 1 : job.departure] = job.data_gb
        return data

    @cached_property
    def workers_needed(self) -> Ints:
        """N = ceil(sum_r D / P), exactly, shape (J, T)."""
        return workers_for(self.data, self.capacity[:, None])

    @cached_property
    def workers_pinned(self) -> Ints:
        """Least workers in a centre for data that may not leave it, exactly, shape (J, T, R).

        With `workers_needed` in all they are enough: what may leave finds the room that is left.
        """
        stays = np.where(self.may_leave[:, None, :], 0.0, self.data)
        return workers_for(stays[..., None], self.capacity[:, None, None])

    @cached_property
    def may_leave(self) -> Bools:
        """Whether a job's data may leave a data centre, shape (J, R)."""
        names = [center.name for center in self.datacenters]
        rows = [[name not in job.pinned_datacenters for name in names] for job in self.jobs]
        return np.array(rows, dtype=bool).reshape(len(rows), len(names))

    def arc_prices(self, weight: float = 1.0) -> Floats:
        """`weight` x price per GB, shape (J, R, R): infinite where pinned data would leave."""
        closed = ~self.may_leave[:, :, None] & ~np.eye(len(self.datacenters), dtype=bool)
        prices: Floats = np.where(closed, np.inf, weight * self.transfer_price)
        return prices

    @cached_property
    def weights(self) -> Floats:
        """Weights of C1..C4 in the order of `COSTS`, shape (4,)."""
        return np.array([getattr(self.cost_weights, cost) for cost in COSTS], dtype=float)


INSTANCE = MlbrokerInstance
