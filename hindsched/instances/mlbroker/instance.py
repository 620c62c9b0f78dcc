"""The mlbroker family's instance: geo-distributed jobs, data centres and two-tier prices.

The paper's symbols by field, with units and shapes, stand in ``docs/problems/mlbroker.md``.

Resources of ``h`` units in a centre cost ``min(a h, b h + e)`` for the sum over all jobs: the
volume discount that a broker earns by pooling them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

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
    """A concave two-tier price: ``min(unit h, discounted h + (unit - discounted) threshold)``.

    Parameters
    ----------
    unit_usd : float
        a: price of a unit for a slot below the threshold, USD.
    discounted_usd : float
        b <= a: price of a unit for a slot beyond it, USD.
    threshold : float
        l: units per slot from which the lower price holds.
    """

    unit_usd: base.NonNegative
    discounted_usd: base.NonNegative
    threshold: base.NonNegative

    @model_validator(mode="after")
    def _is_concave(self) -> Self:
        if self.discounted_usd > self.unit_usd:
            rule = f"must not exceed unit_usd = {self.unit_usd}: the price must be concave"
            raise base.BrokenRule("discounted_usd", self.discounted_usd, rule)
        return self


class MlbrokerDatacenter(base.Record):
    """A data centre.

    Parameters
    ----------
    name : str
        Name, unique among the data centres.
    prices : dict
        Two-tier price by resource; every resource must have one.
    """

    name: base.Name
    prices: dict[str, TierPrice]


class CostWeights(base.Record):
    """Weights of the four costs in the objective (the weighted sum of Section 3.3).

    Parameters
    ----------
    transfer, resource, deployment, communication : float
        Weights of C1, C2, C3 and C4, at least 0.
    """

    transfer: base.NonNegative = 1
    resource: base.NonNegative = 1
    deployment: base.NonNegative = 1
    communication: base.NonNegative = 1


class MlbrokerJob(base.Record):
    """A geo-distributed incremental-learning job.

    Parameters
    ----------
    name : str
        Name, unique in the instance.
    arrival, departure : int
        t_i and the last slot of the job's life, both inclusive, 1-based.
    worker, ps : dict
        n_i and m_i: demand of one worker and of the parameter server (PS) by resource.
    capacity_gb : float
        P_i: most data that one worker trains in a slot, GB.
    exchange_gb : float
        B_i: data exchanged between one worker and the PS in a slot, both directions, GB.
    deployment_usd : float
        c_i: cost of launching the job in a data centre where it did not run the slot before, USD.
    data_gb : list of list of float
        D_i^r(t): for each slot of the life, the data that awaits in each data centre, GB.
    pinned_datacenters : list of str, optional
        Data centres whose data may not leave (Section 7's security constraint).
    """

    name: base.Name
    arrival: base.Slot
    departure: base.Slot
    worker: base.Demand
    ps: base.Demand
    capacity_gb: base.Positive
    exchange_gb: base.NonNegative
    deployment_usd: base.NonNegative
    data_gb: tuple[tuple[base.NonNegative, ...], ...]
    pinned_datacenters: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _data_covers_the_life(self) -> Self:
        if self.departure < self.arrival:
            rule = f"must not precede arrival {self.arrival}"
            raise base.BrokenRule("departure", self.departure, rule)
        life = self.departure - self.arrival + 1
        if len(self.data_gb) != life:
            rule = f"must have one list for each of the {life} slots of arrival..departure"
            raise base.BrokenRule("data_gb", f"{len(self.data_gb)} lists", rule)
        return self


def _prices(field: str) -> Callable[[MlbrokerInstance], Floats]:
    """Reads a number of the prices of every centre and resource, shape (R, K)."""

    def read(instance: MlbrokerInstance) -> Floats:
        rows = [
            [getattr(center.prices[resource], field) for resource in instance.resources]
            for center in instance.datacenters
        ]
        return np.array(rows, dtype=float).reshape(len(rows), len(instance.resources))

    return read


class MlbrokerInstance(base.Instance):
    """Data centres, a horizon and the jobs that arrive in it.

    Parameters
    ----------
    resources : tuple of str
        Names of the resource types, K of them.
    datacenters : tuple of MlbrokerDatacenter
        R data centres.
    transfer_usd_per_gb : tuple of tuple of float
        d^{rr'}: price of moving a GB from row to column, diagonal 0.
    cost_weights : CostWeights, optional
        Weights of the four costs; all 1 if absent.
    jobs : tuple of MlbrokerJob
        The jobs; their order breaks ties.
    """

    sense: ClassVar[Literal["max", "min"]] = "min"
    formulations: ClassVar[tuple[str, ...]] = ("tight", "paper")

    family: Literal["mlbroker"] = "mlbroker"
    resources: tuple[base.Name, ...]
    datacenters: tuple[MlbrokerDatacenter, ...]
    transfer_usd_per_gb: tuple[tuple[base.NonNegative, ...], ...]
    cost_weights: CostWeights = CostWeights()
    jobs: tuple[MlbrokerJob, ...]

    def cluster_rules(self) -> Iterator[base.BrokenRule]:
        """Resources, data centres with a price of each, and transfers between them."""
        for field in ("resources", "datacenters"):
            if not getattr(self, field):
                yield base.BrokenRule(field, [], "must not be empty")
        yield from base.unique_names("resources", self.resources)
        yield from base.unique_names("datacenters", self.datacenters)
        for index, center in enumerate(self.datacenters):
            where = f"datacenters[{index}].prices"
            yield from base.known_keys(where, center.prices, self.resources)
            for resource in self.resources:
                if resource not in center.prices:
                    rule = "every resource must have a price"
                    yield base.BrokenRule(f"{where}.{resource}", "(absent)", rule)
        centers, rows = len(self.datacenters), self.transfer_usd_per_gb
        if len(rows) != centers:
            rule = f"must have one row for each of the {centers} data centres"
            yield base.BrokenRule("transfer_usd_per_gb", f"{len(rows)} rows", rule)
        for index, row in enumerate(rows[:centers]):
            where = f"transfer_usd_per_gb[{index}]"
            yield from self._number_a_center(where, row)
            if row[index : index + 1] not in ((), (0,)):
                yield base.BrokenRule(f"{where}[{index}]", row[index], "the diagonal must be 0")

    def _number_a_center(self, where: str, row: tuple[float, ...]) -> Iterator[base.BrokenRule]:
        if len(row) != (centers := len(self.datacenters)):
            rule = f"must have one number for each of the {centers} data centres"
            yield base.BrokenRule(where, f"{len(row)} numbers", rule)

    def job_rules(self, where: str, job: MlbrokerJob) -> Iterator[base.BrokenRule]:
        """A job departs in time and names resources and data centres that there are."""
        if job.departure > self.horizon:
            rule = f"must not exceed the horizon {self.horizon}"
            yield base.BrokenRule(f"{where}.departure", job.departure, rule)
        yield from base.known_keys(f"{where}.worker", job.worker, self.resources)
        yield from base.known_keys(f"{where}.ps", job.ps, self.resources)
        for offset, row in enumerate(job.data_gb):
            yield from self._number_a_center(f"{where}.data_gb[{offset}]", row)
        yield from base.unique_names(f"{where}.pinned_datacenters", job.pinned_datacenters)
        for position, name in enumerate(job.pinned_datacenters):
            if name not in self.datacenter_index:
                here = f"{where}.pinned_datacenters[{position}]"
                yield base.BrokenRule(here, name, "must be a data centre of the instance")

    def certain_bound(self) -> float:
        """No cost is below 0."""
        return 0.0

    @base.cluster_property
    def datacenter_index(self) -> dict[str, int]:
        """Position of each data centre by name."""
        return {center.name: index for index, center in enumerate(self.datacenters)}

    unit_price = base.cluster_property(_prices("unit_usd"))  # a, USD per unit and slot, (R, K)
    discounted_price = base.cluster_property(_prices("discounted_usd"))  # b, the same
    threshold = base.cluster_property(_prices("threshold"))  # l, units per slot, (R, K)

    @base.cluster_property
    def tier_fee(self) -> Floats:
        """Fee e = (a - b) l, USD per slot, shape (R, K): what the lower price costs to enter."""
        return (self.unit_price - self.discounted_price) * self.threshold

    @base.cluster_property
    def transfer_price(self) -> Floats:
        """d, USD per GB, shape (R, R)."""
        size = len(self.datacenters)
        return np.array(self.transfer_usd_per_gb, dtype=float).reshape(size, size)

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
