"""Geometric batches: wait, plan a batch of known jobs, run it in the next, doubled interval.

A family brings a `BatchRound`: an empty cluster of some slots that offers a job its cheapest
schedule at the posted prices. At time ``tau_i = first_horizon 2**(i - 1)`` the unscheduled jobs
that arrived strictly before are planned in sub-rounds, each on an empty cluster of ``tau_i`` slots.
With a fixed number alpha of them sub-round k runs in the slots ``(alpha + k - 1) tau_i + 1 ..
(alpha + k) tau_i``, so that intervals never overlap. With alpha per batch a batch begins where the
slots set aside for the one before end, and sets aside those of the sub-rounds that it uses. Without
alpha each sub-round starts right after the last slot of the one before (work-conserving).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import JobRecord
from hindsched.json_types import JsonObject
from hindsched.online.protocol import (
    NOTHING,
    Count,
    Decision,
    Environment,
    OnlineAlgorithm,
    Report,
)
from hindsched.solutions.base import Assignment
from hindsched.solvers.oracles.rows import PriceRow

Rows = dict[str, list[Assignment]]
PER_BATCH: Literal["per-batch"] = "per-batch"
Alpha = Count | Literal["per-batch"] | None
"""Sub-rounds of a batch: a number, as many as (6) asks of each batch, or as many as it takes."""


@dataclass(frozen=True)
class Offer:
    """A schedule for one job inside a round, at the posted prices."""

    start: int  # the round's first slot is 1
    duration: int
    demand: Floats  # of every capacity in each of its slots, (capacities,)
    cost: float
    plan: Any = None  # the family's own description

    @property
    def last(self) -> int:
        """Last slot of the round that it uses."""
        return self.start + self.duration - 1


class ExponentialLedger:
    """Use of a round's capacities and the prices ``base**(use / capacity) - 1`` that follow.

    `base` is lambda of the paper, above 1; a capacity of 0 is never used and has price 0.
    """

    def __init__(self, capacity: Floats, slots: int, base: float | Floats) -> None:
        self.capacity = np.asarray(capacity, dtype=float)
        self.base = np.asarray(base, dtype=float)
        self.use = np.zeros((slots, self.capacity.size))

    def prices(self, first: int = 1, last: int | None = None) -> Floats:
        """Prices in slots `first` .. `last`, shape (slots, capacities)."""
        part = self.use[first - 1 : last]
        share = np.divide(part, self.capacity, out=np.zeros_like(part), where=self.capacity > 0)
        return np.expm1(share * np.log(self.base))

    def value(self, first: int = 1, last: int | None = None) -> float:
        """Prices times capacities in slots: the rows' part of the dual objective."""
        return float((self.prices(first, last) @ self.capacity).sum())

    def book(self, offer: Offer) -> None:
        """Take an offer's demand in each of its slots."""
        self.use[offer.start - 1 : offer.last] += offer.demand


class BatchRound(ABC):
    """An empty cluster of some slots, priced, that makes offers."""

    ledger: ExponentialLedger

    @abstractmethod
    def offer(self, job: JobRecord, limit: float) -> Offer | None:
        """Cheapest schedule of a job that fits what is left and costs less than `limit`."""

    def book(self, job: JobRecord, offer: Offer) -> None:
        """Take the offer's resources and let the prices rise."""
        self.ledger.book(offer)


@dataclass(frozen=True)
class Admission:
    """A job accepted in a round, its value, and by how much the dual objective grew."""

    job: JobRecord
    offer: Offer
    value: float
    dual: float


def post_prices(
    batch_round: BatchRound, jobs: Iterable[JobRecord], values: Sequence[float]
) -> list[Admission]:
    """Offer every job, in order, its cheapest schedule; accept iff value - cost > 0.

    Values are in the unit of the prices.
    """
    admitted: list[Admission] = []
    ledger = batch_round.ledger
    for job, value in zip(jobs, values, strict=True):
        offer = batch_round.offer(job, value)
        if offer is None or not value - offer.cost > 0:
            continue
        before = ledger.value(offer.start, offer.last)
        batch_round.book(job, offer)
        rise = ledger.value(offer.start, offer.last) - before
        admitted.append(Admission(job, offer, float(value), value - offer.cost + rise))
    return admitted


class GeometricBatches(OnlineAlgorithm):
    """Batches at geometrically increasing times from `first_horizon`, planned in sub-rounds.

    Parameters
    ----------
    alpha : int or "per-batch", optional
        A number of sub-rounds, whose slots are set aside whether used or not, is as printed.
        ``per-batch`` is the paper's words after Theorem 5: at most as many as `most_rounds` says,
        and the batch ends when all of it is planned; it begins when the slots set aside before have
        ended. None is for work-conserving batches: one begins when the one before has ended, a
        sub-round right after the last slot of the one before. Unless alpha is a number a sub-round
        that accepts nothing ends the batch, as all later ones would accept nothing either.
    first_horizon : int
        When the first batch is planned.
    """

    def __init__(self, alpha: Alpha, first_horizon: int = 1) -> None:
        self.alpha, self.first_horizon = alpha, first_horizon

    def start(self, environment: Environment) -> None:
        """Begin with no jobs; the first batch is planned at `first_horizon`."""
        self.environment = environment
        self._waiting: list[JobRecord] = []
        self._horizon = self.first_horizon
        self.last_slot = 0  # that any planned job uses
        self._reserved = 0  # last slot that a batch has set aside
        self._intervals: list[JsonObject] = []
        self._most_rounds = 0
        self._ledger: list[JsonObject] = []
        self.batch: list[JobRecord] = []  # being planned
        self.round_base = 0  # last slot before the sub-round being planned
        self._posted: dict[tuple[int, str], float] = {}

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Collect arrivals; at an interval's end plan the batch."""
        self._waiting += arrivals
        if slot < self._horizon:
            return NOTHING
        batch = [job for job in self._waiting if job.arrival < self._horizon]
        rows = self._plan(batch, self._horizon) if batch else {}
        self._waiting = [job for job in self._waiting if job.name not in rows]
        self._horizon *= 2
        return Decision(rows, tuple(rows)) if rows else NOTHING

    def _plan(self, batch: list[JobRecord], horizon: int) -> Rows:
        self.batch = left = list(batch)
        printed, most = isinstance(self.alpha, int), self.most_rounds(batch, horizon)
        after = self._reserved if self.alpha == PER_BATCH else self.last_slot
        base = most * horizon if printed else max(horizon, after)
        accepted: list[int] = []
        interval = {"horizon": horizon, "jobs": len(batch), "first_slot": base + 1}
        rows: Rows = {}
        while left and len(accepted) < most:
            self.round_base = base
            admitted = self.run_round(left, horizon)
            accepted.append(len(admitted))
            for admission in admitted:
                name, offer = admission.job.name, admission.offer
                rows[name] = self.rows(admission, base)
                self.last_slot = max(self.last_slot, base + offer.last)
                self._ledger.append(
                    {"job": name, "round": len(accepted), "primal": admission.value,
                     "cost": offer.cost, "dual": admission.dual}
                )  # fmt: skip
            left = [job for job in left if job.name not in rows]
            if not (admitted or printed):
                break
            used = max((admission.offer.last for admission in admitted), default=0)
            base += used if self.alpha is None else horizon
        self._reserved = base
        self._intervals.append({**interval, "accepted": accepted})
        self._most_rounds = max(self._most_rounds, sum(count > 0 for count in accepted))
        return self.settle(horizon, rows)

    def most_rounds(self, batch: list[JobRecord], horizon: int) -> int:
        """Most sub-rounds of a batch; each that is used plans a job."""
        return self.alpha if isinstance(self.alpha, int) else len(batch) + 1

    def settle(self, horizon: int, rows: Rows) -> Rows:
        """Change the planned rows of the batch, by job name, before they are decided."""
        return rows

    def post(
        self, ledger: ExponentialLedger, resources: Sequence[str], *,
        units: float | Floats = 1.0, worth: float = 1.0,
    ) -> None:  # fmt: skip
        """Keep a sub-round's prices for `price_path`; a later sub-round's replace them.

        Each capacity is of a resource and counts `units` of it; a price is `worth` so many units of
        the objective.
        """
        total = worth * ledger.prices() * ledger.capacity
        amount = ledger.capacity * np.asarray(units)
        names = np.array(resources)
        for name in dict.fromkeys(resources):
            units_in_all = float(amount[names == name].sum())
            if units_in_all > 0:
                path = total[:, names == name].sum(axis=1) / units_in_all
                for slot, price in enumerate(path.tolist(), self.round_base + 1):
                    self._posted[slot, name] = price

    def price_path(self) -> Sequence[PriceRow]:
        """Prices of the sub-rounds by slot and resource."""
        return [
            {"slot": slot, "resource": name, "price": price}
            for (slot, name), price in sorted(self._posted.items())
        ]

    @abstractmethod
    def run_round(self, jobs: list[JobRecord], horizon: int) -> list[Admission]:
        """Plan jobs on an empty cluster of `horizon` slots; a family may have several phases."""

    @abstractmethod
    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Rows of the solution file for an admission whose round begins at slot ``base + 1``."""

    def report(self) -> Report:
        """Batches: horizon, jobs, sub-rounds used (the paper's alpha as it came out), ledger."""
        return {
            "intervals": list(self._intervals),
            "most_rounds_used": self._most_rounds,
            "ledger": list(self._ledger),
        }


def enough_rounds(total: float, least: float, gamma: float) -> int:
    """Rounds of a `gamma`-approximation after which the weight accepted reaches the optimum's (6).

    The jobs weigh `total`, and none less than `least`.
    """
    if gamma <= 1:
        return 1
    shrink = math.log2(gamma) - math.log2(gamma - 1.0)
    return math.floor((math.log2(total) - math.log2(least)) / shrink) + 1


class WeightedBatches(GeometricBatches):
    """A_online of MobiHoc 2020: jobs have weights, and lambda is the base of a batch's prices."""

    @abstractmethod
    def weight(self, job: Any) -> float:
        """What a job's completion is worth."""

    @abstractmethod
    def base(self, horizon: int) -> float:
        """Lambda of a batch."""

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self._least = math.inf  # weight of any job seen

    def most_rounds(self, batch: list[JobRecord], horizon: int) -> int:
        """Per batch by (6) from w(J_i), the least weight seen and gamma = 2 log2 lambda."""
        if self.alpha != PER_BATCH or not batch:
            return super().most_rounds(batch, horizon)
        weights = [self.weight(job) for job in batch]
        self._least = min(self._least, *weights)
        return enough_rounds(sum(weights), self._least, 2.0 * math.log2(self.base(horizon)))
