"""``batchsche``: A_online of batchsched (adaptive), run for each tenant on its own servers.

No resource is shared. Each tenant's jobs wait for geometric batches; a batch is planned by posted
exponential prices per server and type that maximise the number (or the value) of jobs within the
batch's horizon, in as many sub-rounds as it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import modes
from hindsched.instances.astraea.shares import private_units, tenant_alone
from hindsched.instances.base import JobRecord, LinearUtility
from hindsched.online.engines.batching import (
    Admission,
    BatchRound,
    ExponentialLedger,
    GeometricBatches,
    Offer,
    post_prices,
)
from hindsched.online.protocol import Capabilities, Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.base import Assignment
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.families.astraea.oracle import ServerOracle

Weights = Literal["unit", "value"]
EARLIER = 1e-6
"""Share of a job's value that completing in the last slot of a round costs, for ties."""


class TenantBatches(GeometricBatches):
    """A_online on one tenant's own servers; names are those of the whole cluster.

    Attributes
    ----------
    alone : AstraeaInstance
        The cluster of these servers.
    capacity : ndarray, shape (servers, types)
        Workers by type, then PSs by type.
    unit : ndarray, shape (types,)
        Mean of a server's capacity, in which volumes and prices count.
    """

    def __init__(self, instance: AstraeaInstance, tenant: int, weights: Weights) -> None:
        super().__init__(alpha=None)
        units = np.concatenate([units[tenant] for units in private_units(instance)], axis=1)
        self.alone, self.weights = tenant_alone(instance, tenant), weights
        self.capacity = units[units.any(axis=1)].astype(float)
        self.split = len(instance.worker_types)
        mean = self.capacity.mean(axis=0) if len(self.capacity) else np.ones(units.shape[1])
        self.unit = np.where(mean > 0, mean, 1.0)
        self._volume: dict[str, float] = {}
        self._density: dict[str, float] = {}

    def volume(self, job: AstraeaJob) -> float:
        """Least workers-and-PSs x slots in units of the mean server; inf if it never fits."""
        if job.name not in self._volume:
            table = modes(self.alone, job) if self.alone.servers else None
            self._volume[job.name] = np.inf
            if table is not None and len(table):
                demand = table.workers / self.unit[table.worker_type]
                demand = demand + 1 / self.unit[self.split + table.ps_type]
                self._volume[job.name] = float((table.duration * demand).min())
        return self._volume[job.name]

    def weight(self, job: AstraeaJob) -> float:
        """w_j, kept positive."""
        return 1.0 if self.weights == "unit" else max(1e-9, float(job.utility.value(1)))

    def run_round(self, jobs: list[JobRecord], horizon: int) -> list[Admission]:
        """Algorithm 3 of batchsched: each job in turn its cheapest schedule, if worth its price."""
        able = [job for job in jobs if np.isfinite(self.volume(job))]
        if not able:
            return []
        self._density |= {job.name: self.weight(job) / self.volume(job) for job in able}
        low, high = min(self._density.values()), max(self._density.values())
        base = 2.0 * horizon * max(1, self.capacity.size) * high / low + 1.0
        values = [self.weight(job) / low for job in able]
        return post_prices(OwnRound(self, horizon, base), able, values)

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Rows of the solution file."""
        row: WindowRow = admission.offer.plan
        moved = replace(row, first=row.first + base, last=row.last + base)
        return [AstraeaSolution.write_row(self.alone, moved)]


class OwnRound(BatchRound):
    """A sub-round on a tenant's servers, one price a server, type and slot."""

    def __init__(self, own: TenantBatches, slots: int, base: float) -> None:
        self.own, self._slots = own, slots
        self.ledger = ExponentialLedger((own.capacity / own.unit).ravel(), slots, base)
        self._window = own.alone.with_fields(horizon=slots)

    def offer(self, job: AstraeaJob, limit: float) -> Offer | None:
        """Cheapest schedule within the round; ties go to the earlier completion."""
        own, split = self.own, self.own.split
        tie = EARLIER * limit / self._slots
        flat = LinearUtility(slope=-tie, intercept=limit)
        local = job.model_copy(update={"arrival": 0, "utility": flat})
        oracle = ServerOracle(self._window.with_jobs((local,)))

        def packed(values: Floats) -> Floats:
            by_server = values.reshape(self._slots, *own.capacity.shape).transpose(1, 2, 0)
            parts = {"worker_capacity": by_server[:, :split], "ps_capacity": by_server[:, split:]}
            return oracle.rows.pack(parts)

        unit = np.tile(own.unit, len(own.capacity))
        price, left = packed(self.ledger.prices() / unit), packed(self.ledger.residual * unit)
        response = oracle.best_response(0, price, left)
        cost = np.inf if response is None else response.objective - response.value
        if response is None or cost >= limit:
            return None
        row: WindowRow = response.plan[0]
        demand = np.zeros(own.capacity.shape)
        demand[:, row.worker_type] = row.workers
        demand[:, split + row.ps_type] = row.ps
        return Offer(row.first, row.slots, (demand / own.unit).ravel(), cost, row)


class Batchsche(OnlineAlgorithm):
    """A_online per tenant, without sharing.

    F, the range of weights per volume, is estimated from the tenant's jobs seen so far.

    Parameters
    ----------
    weights : {"unit", "value"}
        w_j: 1, or the utility of completing at once.
    """

    card = Capabilities(published="MobiHoc 2020")

    def __init__(self, weights: Weights = "unit") -> None:
        self.weights = weights

    def start(self, environment: Environment) -> None:
        """Begin with every tenant's servers empty."""
        cluster = environment.cluster
        assert isinstance(cluster, AstraeaInstance)
        self._tenants = {
            tenant.name: TenantBatches(cluster, u, self.weights)
            for u, tenant in enumerate(cluster.tenants)
        }
        for batches in self._tenants.values():
            batches.start(environment)
        self._horizon = cluster.horizon

    def step(self, slot: int, arrivals: tuple[AstraeaJob, ...]) -> Decision:
        """Let every tenant's batches decide; a plan past the horizon is not given out."""
        rows: dict[str, Sequence[Assignment]] = {}
        for name, batches in self._tenants.items():
            own = tuple(job for job in arrivals if job.tenant == name)
            planned = batches.step(slot, own).assignments.items()
            rows |= {job: given for job, given in planned if given[-1]["to"] <= self._horizon}
        return Decision(rows, tuple(rows))

    def report(self) -> Report:
        """Batches by tenant."""
        return {"tenants": {name: batches.report() for name, batches in self._tenants.items()}}
