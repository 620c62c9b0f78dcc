"""``batchsche``: A_online of batchsched (adaptive), run for each tenant on its own servers.

No resource is shared. Each tenant's jobs wait for geometric batches; a batch is planned by posted
exponential prices per server and resource that maximise the number (or the value) of jobs within
the batch's horizon, in as many sub-rounds as it takes. The family's dynamics say what a tenant's
servers are (`private_clusters`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from hindsched.instances.astraea.instance import AstraeaJob
from hindsched.instances.base import JobRecord, family_module
from hindsched.online.engines.batching import (
    Admission,
    BatchRound,
    GeometricBatches,
    Offer,
    post_prices,
)
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.base import Assignment

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
