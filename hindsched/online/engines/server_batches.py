"""Geometric batches planned at exponential prices on servers: A_online of batchsched's paper.

=================  ========================================================================
``lambda``         base of the prices, ``2 tau H R F + 1`` with the batch's own horizon tau
``F``              largest over smallest weight per least volume (`density_range`)
=================  ========================================================================

Resources are counted in units of their mean capacity a server, and weights in units of the
smallest weight per least volume, as the assumption ``1 <= w / sum f <= F`` of the paper needs.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import JobRecord
from hindsched.instances.modes import Modes, WindowInstance, modes, ps_for
from hindsched.online.engines.batching import (
    Admission,
    BatchRound,
    ExponentialLedger,
    Offer,
    WeightedBatches,
    post_prices,
)
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment
from hindsched.solutions.window_solution import WindowRow, WindowSolution, row_use
from hindsched.solvers.families.windows.schedules import ScheduleSearch


def resource_units(instance: WindowInstance) -> Floats:
    """Mean capacity a server by resource, 1 where there is none: the unit of volumes."""
    mean = instance.server_capacity.mean(axis=0)
    return np.where(mean > 0, mean, 1.0)


def volumes(instance: WindowInstance, table: Modes) -> Floats:
    """Resources x slots of modes with the fewest PSs, in units of `resource_units`."""
    unit = resource_units(instance)
    demand = table.workers * (instance.worker_demand / unit).sum(axis=1)[table.worker_type]
    if instance.has_ps:
        room = instance.worker_room.max(axis=0)[table.worker_type]
        away = table.workers - np.minimum(table.workers - 1, room)
        count = ps_for(away, instance.ps_ratio[table.worker_type, table.ps_type])
        count = np.where(table.one_server == 1, 1, count)
        demand = demand + count * (instance.ps_demand / unit).sum(axis=1)[table.ps_type]
    return table.duration * demand


class ServerRound(BatchRound):
    """A sub-round on an empty cluster with one price a server, resource and slot.

    Of tau slots, `horizon`, schedules may use those up to `last`; `base` is lambda.
    """

    def __init__(self, batches: ServerBatches, horizon: int, last: int, base: float) -> None:
        self.batches, self.instance, self.last = batches, batches.cluster, last
        self._unit = resource_units(self.instance)
        capacity = (self.instance.server_capacity / self._unit).ravel()
        self.ledger = ExponentialLedger(capacity, horizon, base)
        self.search = ScheduleSearch(self.instance, horizon)

    def find(self, job: Any, limit: float) -> WindowRow | None:
        """Cheapest schedule below `limit`; ties go to the earlier completion."""
        table = self.batches.modes_of(job)
        return self.search.cheapest(table, limit=limit, last=self.last, greedy=self.batches.greedy)

    def offer(self, job: Any, limit: float) -> Offer | None:
        """Cheapest schedule; ties go to the earlier completion, then the order of modes."""
        row = self.find(job, limit)
        if row is None:
            return None
        demand = (row_use(self.instance, row) / self._unit).ravel()
        return Offer(row.first, row.slots, demand, self.search.price(row), row)

    def book(self, job: Any, offer: Offer) -> None:
        """Take the schedule's resources and post the new prices."""
        self.ledger.book(offer)
        self.search.book(offer.plan)
        shape = (offer.duration, *self.instance.server_capacity.shape)
        prices = self.ledger.prices(offer.start, offer.last).reshape(shape) / self._unit
        self.search.post(offer.start, prices.transpose(1, 2, 0))


class ServerBatches(WeightedBatches):
    """A_online on `cluster`, which a subclass sets; F is estimated from the jobs seen."""

    cluster: WindowInstance
    solution: ClassVar[type[WindowSolution]]  # the family's
    greedy = False  # whether Algorithm 4 of batchsched places
    tight_slots = True  # whether schedules of a batch may use slot tau itself
    make_round: type[ServerRound] = ServerRound

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self._modes: dict[str, Modes] = {}
        self._density: dict[str, float] = {}

    def modes_of(self, job: Any) -> Modes:
        """Modes of a job, prepared once."""
        if job.name not in self._modes:
            self._modes[job.name] = modes(self.cluster, job)
        return self._modes[job.name]

    def weight(self, job: Any) -> float:
        """What a job's completion is worth."""
        return float(job.weight)

    def density(self, job: Any) -> float:
        """Weight per least volume of a job."""
        if job.name not in self._density:
            least = volumes(self.cluster, self.modes_of(job)).min()
            self._density[job.name] = self.weight(job) / float(least)
        return self._density[job.name]

    def density_range(self) -> tuple[float, float]:
        """Smallest and largest density of the jobs seen so far."""
        return min(self._density.values()), max(self._density.values())

    def base(self, horizon: int) -> float:
        """``lambda = 2 tau H R F + 1``."""
        low, high = self.density_range()
        return 2.0 * horizon * self.cluster.server_capacity.size * high / low + 1.0

    def ordered(self, jobs: list[Any]) -> list[Any]:
        """The order in which jobs are asked: that of arrival."""
        return jobs

    def fitting(self, jobs: list[Any]) -> list[Any]:
        """The jobs that ever fit; their densities are known from now on."""
        able = [job for job in jobs if len(self.modes_of(job))]
        for job in able:
            self.density(job)
        return able

    def most_rounds(self, batch: list[JobRecord], horizon: int) -> int:
        """Of the jobs that ever fit."""
        return super().most_rounds(self.fitting(batch), horizon)

    def run_round(self, jobs: list[Any], horizon: int) -> list[Admission]:
        """Algorithm 3 on an empty cluster, about the jobs that ever fit."""
        able = self.fitting(jobs)
        last = horizon if self.tight_slots else horizon - 1
        return self.plan_round(self.ordered(able), horizon, last) if able and last >= 1 else []

    def plan_round(self, jobs: list[Any], horizon: int, last: int) -> list[Admission]:
        """Post prices to the jobs in order."""
        batch_round = self.make_round(self, horizon, last, self.base(horizon))
        unit, capacity = self.density_range()[0], self.cluster.server_capacity
        admitted = post_prices(batch_round, jobs, [self.weight(job) / unit for job in jobs])
        units = np.broadcast_to(resource_units(self.cluster), capacity.shape)
        names = [*self.cluster.capacity_names] * len(capacity)
        self.post(batch_round.ledger, names, units=units.ravel(), worth=unit)
        return admitted

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Row of the solution file."""
        return [self.solution.write_row(self.cluster, admission.offer.plan.moved(base))]
