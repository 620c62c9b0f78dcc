"""One slot of an mlbroker instance: the live jobs' data as arrays, all money weighted.

Prices are multiplied by the instance's cost weights, so that sums of them are objective values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance


@dataclass(frozen=True)
class SlotData:
    """The live jobs of a slot."""

    jobs: tuple[str, ...]
    data: Floats  # D, GB, (J, R)
    needed: Ints  # N, (J,)
    pinned: Ints  # least workers in a centre for data that may not leave it, (J, R)
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
    def at(cls, instance: MlbrokerInstance, slot: int) -> SlotData:
        """Collect the jobs of `instance` that live in `slot`."""
        live, w = np.flatnonzero(instance.alive[:, slot - 1]), instance.weights
        return cls(
            jobs=tuple(instance.jobs[j].name for j in live),
            data=instance.data[live, slot - 1],
            needed=instance.workers_needed[live, slot - 1],
            pinned=instance.workers_pinned[live, slot - 1],
            capacity=instance.capacity[live],
            exchange=instance.exchange[live],
            deployment=w[2] * instance.deployment[live],
            worker=instance.worker_demand[live],
            server=instance.ps_demand[live],
            arc=instance.arc_prices(w[0])[live],
            distance=w[3] * instance.transfer_price,
            unit=w[1] * instance.unit_price,
            discounted=w[1] * instance.discounted_price,
            fee=w[1] * instance.tier_fee,
        )

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
