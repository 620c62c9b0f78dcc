"""One slot of an mlbroker instance: the live jobs' data as arrays, all money weighted.

Prices are multiplied by the instance's cost weights, so that sums of them are objective values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.base import amounts_of
from hindsched.instances.mlbroker.instance import (
    MlbrokerInstance,
    MlbrokerJob,
    workers_for,
    workers_for_pinned,
)


@dataclass(frozen=True)
class SlotData:
    """The live jobs of a slot."""

    jobs: tuple[str, ...]
    data: Floats  # D, GB, (J, R)
    capacity: Floats  # P, GB, (J,)
    exchange: Floats  # B, GB, (J,)
    deployment: Floats  # c, weighted USD, (J,)
    worker: Floats  # n, (J, K)
    server: Floats  # m, (J, K)
    arc: Floats  # weighted price of a GB's transfer, inf where pinned data would leave, (J, R, R)
    distance: Floats  # weighted price of a GB exchanged with the PS, (R, R)
    unit: Floats  # a, weighted, (R, K)
    discounted: Floats  # b, the same
    fee: Floats  # e, the same

    @classmethod
    def of(
        cls,
        cluster: MlbrokerInstance,
        jobs: Sequence[MlbrokerJob],
        data: Sequence[Sequence[float] | Floats] | Floats,
    ) -> SlotData:
        """The arrays of live jobs with the slot's `data` (or a forecast of it), GB, (J, R)."""
        count, centers = len(jobs), len(cluster.datacenters)
        weights = cluster.weights
        arc = np.repeat((weights[0] * cluster.transfer_price)[None], count, axis=0)
        for index, job in enumerate(jobs):
            for name in job.pinned_datacenters:
                center = cluster.datacenter_index[name]
                arc[index, center] = np.inf
                arc[index, center, center] = 0.0
        return cls(
            jobs=tuple(job.name for job in jobs),
            data=np.array(data, dtype=float).reshape(count, centers),
            capacity=np.array([job.capacity_gb for job in jobs], dtype=float),
            exchange=np.array([job.exchange_gb for job in jobs], dtype=float),
            deployment=weights[2] * np.array([job.deployment_usd for job in jobs], dtype=float),
            worker=amounts_of([job.worker for job in jobs], cluster.resources),
            server=amounts_of([job.ps for job in jobs], cluster.resources),
            arc=arc,
            distance=weights[3] * cluster.transfer_price,
            unit=weights[1] * cluster.unit_price,
            discounted=weights[1] * cluster.discounted_price,
            fee=weights[1] * cluster.tier_fee,
        )

    @classmethod
    def at(cls, instance: MlbrokerInstance, slot: int) -> SlotData:
        """Collect the jobs of `instance` that live in `slot`."""
        jobs = [job for job in instance.jobs if job.arrival <= slot <= job.departure]
        return cls.of(instance, jobs, [job.data_gb[slot - job.arrival] for job in jobs])

    @cached_property
    def needed(self) -> Ints:
        """N = ceil(sum_r D / P), exactly, shape (J,)."""
        return workers_for(self.data, self.capacity)

    @cached_property
    def pinned(self) -> Ints:
        """Least workers in a centre for data that may not leave it, exactly, shape (J, R)."""
        stays = np.isinf(self.arc).sum(axis=2) == self.num_centers - 1
        return workers_for_pinned(self.data, self.capacity[:, None], stays)

    @cached_property
    def largest_use(self) -> Floats:
        """H: most that a job can use of a resource in one centre, n max(N, 1) + m, shape (J, K).

        One worker even without data: it may hold a deployment until the next slot.
        """
        most: Floats = self.worker * np.maximum(self.needed, 1)[:, None] + self.server
        return most

    @cached_property
    def chord(self) -> Floats:
        """Slope of the concave price's envelope on [0, sum_j H]: F(hmax) / hmax, shape (R, K)."""
        most = self.largest_use.sum(axis=0)
        price = np.minimum(self.unit * most, self.discounted * most + self.fee)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope: Floats = np.where(most > 0, price / most, self.unit)
        return slope

    @property
    def num_centers(self) -> int:
        """Number of data centres."""
        return int(self.distance.shape[0])

    def bill(self, used: Floats) -> float:
        """Tiered price of the units `used`, shape (R, K), weighted."""
        return float(np.minimum(self.unit * used, self.discounted * used + self.fee).sum())

    def rented(self, workers: Ints, ps: Ints) -> Floats:
        """Units rented in each centre by a placement of shapes (J, R), (J,)."""
        is_ps = ps[:, None] == np.arange(self.num_centers)
        used: Floats = workers.T.astype(float) @ self.worker + is_ps.T.astype(float) @ self.server
        return used
