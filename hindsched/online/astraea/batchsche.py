"""``batchsche``: A_online of batchsched (adaptive), run for each tenant on its own servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes
from hindsched.instances.astraea.shares import private_units, tenant_alone
from hindsched.instances.base import JobRecord, LinearUtility, family_module
from hindsched.instances.modes import Modes
from hindsched.online.engines.batching import (
    Admission,
    BatchRound,
    ExponentialLedger,
    GeometricBatches,
    Offer,
    post_prices,
)
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import write_row
from hindsched.solutions.base import Assignment
from hindsched.solvers.families.astraea.oracle import ServerOracle

EARLIER = 1e-6
"""Share of a job's value that completing in the last slot of a round costs, for ties."""


class PrivateCluster:
    """What `rivals.batchsche` asks of a tenant's servers."""

    def __init__(self, instance: AstraeaInstance, tenant: int) -> None:
        workers, ps = (units[tenant] for units in private_units(instance))
        used = np.flatnonzero(workers.any(axis=1) | ps.any(axis=1))
        self.instance = instance
        self.capacity = np.concatenate([workers[used], ps[used]], axis=1).astype(float)
        self._types = (instance.worker_types, instance.ps_types)
        self._own = tenant_alone(instance, tenant)
        mean = self.capacity.mean(axis=0) if len(used) else np.ones(self.capacity.shape[1])
        self._unit = np.where(mean > 0, mean, 1.0)
        self._tables: dict[str, Modes] = {}

    @property
    def size(self) -> int:
        """Servers x resources."""
        return max(1, self.capacity.size)

    def table(self, job: AstraeaJob) -> Modes:
        """Modes of a job on these servers."""
        if job.name not in self._tables:
            empty = np.zeros(0, dtype=np.int64)
            nothing = Modes(empty, empty, empty, empty, empty)
            self._tables[job.name] = modes(self._own, job) if self._own.servers else nothing
        return self._tables[job.name]

    def volume(self, job: AstraeaJob) -> float | None:
        """Least workers-and-PSs x slots in units of the mean server; None if it never fits."""
        table = self.table(job)
        if not len(table):
            return None
        split = len(self._types[0])
        demand = table.workers / self._unit[table.worker_type]
        demand = demand + 1 / self._unit[split + table.ps_type]
        return float((table.duration * demand).min())

    def round(self, slots: int, base: float) -> PrivateRound:
        """An empty round with exponential prices."""
        return PrivateRound(self, self._own, slots, base, self._unit)

    def rows(self, offer: Offer, base: int) -> list[Assignment]:
        """Rows of the solution file: names are those of the whole cluster."""
        row: AstraeaRow = offer.plan
        shifted = AstraeaRow(
            row.first + base, row.last + base, row.worker_type, row.ps_type, row.workers, row.ps
        )
        return [write_row(self._own, shifted)]


class PrivateRound(BatchRound):
    """A sub-round on a tenant's servers, one price a server, type and slot."""

    def __init__(
        self,
        cluster: PrivateCluster,
        own: AstraeaInstance,
        slots: int,
        base: float,
        unit: Floats,
    ) -> None:
        self._cluster, self._own, self._slots, self._unit = cluster, own, slots, unit
        self.ledger = ExponentialLedger((cluster.capacity / unit).ravel(), slots, base)
        self._window = own.with_fields(horizon=slots)

    def offer(self, job: AstraeaJob, limit: float) -> Offer | None:
        """Cheapest schedule within the round; ties go to the earlier completion."""
        if not len(self._cluster.table(job)):
            return None
        tie = EARLIER * limit / self._slots
        flat = LinearUtility(slope=-tie, intercept=limit)
        local = job.model_copy(update={"arrival": 0, "utility": flat})
        oracle = ServerOracle(self._window.with_jobs((local,)))
        split = len(self._own.worker_types)
        shape = (self._slots, *self._cluster.capacity.shape)
        price = self.ledger.prices().reshape(shape) / self._unit
        left = self.ledger.residual.reshape(shape) * self._unit
        arrays = [
            oracle.rows.pack(
                {
                    "worker_capacity": values[:, :, :split].transpose(1, 2, 0),
                    "ps_capacity": values[:, :, split:].transpose(1, 2, 0),
                }
            )
            for values in (price, left)
        ]
        response = oracle.best_response(0, arrays[0], arrays[1])
        if response is None:
            return None
        row: AstraeaRow = response.plan[0]
        cost = response.objective - response.value
        if cost >= limit:
            return None
        demand = np.zeros(self._cluster.capacity.shape)
        demand[:, row.worker_type] = row.workers
        demand[:, split + row.ps_type] = row.ps
        return Offer(row.first, row.slots, (demand / self._unit).ravel(), cost, row)

    def book(self, job: AstraeaJob, offer: Offer) -> None:
        """Take the schedule's units."""
        self.ledger.book(offer)


def private_clusters(environment: Environment) -> dict[str, PrivateCluster]:
    """Each tenant's own servers, by tenant."""
    instance = environment.cluster
    assert isinstance(instance, AstraeaInstance)
    return {tenant.name: PrivateCluster(instance, u) for u, tenant in enumerate(instance.tenants)}


Weights = Literal["unit", "value"]


class OwnServers(Protocol):
    """What a family says of one tenant's servers."""

    @property
    def size(self) -> int:
        """Servers x resources."""

    def volume(self, job: AstraeaJob) -> float | None:
        """Least resources x slots of a job; None if it never fits."""

    def round(self, slots: int, base: float) -> BatchRound:
        """An empty round with prices ``base**(use / capacity) - 1``."""

    def rows(self, offer: Offer, base: int) -> list[Assignment]:
        """Rows of the solution file for an offer in a round that begins at slot ``base + 1``."""


class TenantBatches(GeometricBatches):
    """A_online on one tenant's servers.

    Parameters
    ----------
    own : OwnServers
        The servers.
    weights : {"unit", "value"}
        w_j of the weighted completion time: 1, or the utility of completing at once.
    """

    def __init__(self, own: OwnServers, weights: Weights) -> None:
        super().__init__(alpha=None)
        self.own, self.weights = own, weights
        self._density: dict[str, float] = {}

    def weight(self, job: AstraeaJob) -> float:
        """w_j, kept positive."""
        return 1.0 if self.weights == "unit" else max(1e-9, float(job.utility.value(1)))

    def run_round(self, jobs: list[JobRecord], horizon: int) -> list[Admission]:
        """Algorithm 3 of batchsched: each job in turn its cheapest schedule, if worth its price."""
        able = []
        for job in jobs:
            volume = self.own.volume(job)
            if volume is not None:
                self._density[job.name] = self.weight(job) / volume
                able.append(job)
        if not able:
            return []
        low, high = min(self._density.values()), max(self._density.values())
        base = 2.0 * horizon * self.own.size * high / low + 1.0
        values = [self.weight(job) / low for job in able]
        return post_prices(self.own.round(horizon, base), able, values)

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Rows of the solution file."""
        return self.own.rows(admission.offer, base)


class Batchsche(OnlineAlgorithm):
    """A_online per tenant, without sharing.

    F, the range of weights per volume, is estimated from the tenant's jobs seen so far.

    Parameters
    ----------
    weights : {"unit", "value"}
        w_j: 1, or the utility of completing at once.
    """

    def __init__(self, weights: Weights = "unit") -> None:
        self.weights = weights

    def start(self, environment: Environment) -> None:
        """Begin with every tenant's servers empty."""
        dynamics = family_module("online", environment.cluster.family, "dynamics")
        self._tenants = {
            name: TenantBatches(own, self.weights)
            for name, own in dynamics.private_clusters(environment).items()
        }
        for batches in self._tenants.values():
            batches.start(environment)
        self._horizon = environment.cluster.horizon

    def step(self, slot: int, arrivals: tuple[AstraeaJob, ...]) -> Decision:
        """Let every tenant's batches decide; a plan past the horizon is not given out."""
        rows: dict[str, Sequence[Assignment]] = {}
        for name, batches in self._tenants.items():
            own = tuple(job for job in arrivals if job.tenant == name)
            decision = batches.step(slot, own)
            rows.update(
                {
                    job: planned
                    for job, planned in decision.assignments.items()
                    if planned[-1]["to"] <= self._horizon
                }
            )
        return Decision(rows, tuple(rows))

    def report(self) -> Report:
        """Batches by tenant."""
        return {"tenants": {name: batches.report() for name, batches in self._tenants.items()}}
