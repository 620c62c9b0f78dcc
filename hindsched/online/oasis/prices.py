"""OASiS's posted prices: the price functions (22) and their bounds (23)-(26), in log space.

=====================  ==============================================  =====================
paper                  here                                            unit
=====================  ==============================================  =====================
``U_1^r, U_2^r``       `PriceBounds.log_upper` (natural logarithm)     log utility per unit
``L_1, L_2``           `PriceBounds.log_lower`                         log utility per unit
``eta_1, eta_2``       `PoolFacts.log_eta`                             logarithm, no unit
``P_h^r, Q_k^r``       `ExponentialPrices`                             utility per unit
=====================  ==============================================  =====================

Where we differ from the print: (23), (24) use ``f(dmin - 1)``, the utility of a job that starts in
its arrival slot and runs with all its workers, since f takes completion minus arrival; a resource
that a job does not need is left out of the maximum; the stray ceiling of (26) is dropped; ``1/eta``
is the minimum over the jobs. L is so small for time-critical jobs that only its logarithm exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from hindsched.arrays import Floats, Ints, exp_of, log_of
from hindsched.instances.base import SigmoidUtility, Utility
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.json_types import JsonObject
from hindsched.solvers.oracles.rows import Rows

Units = Literal["file", "capacity"]
POOLS = ("worker_capacity", "ps_capacity")


@dataclass(frozen=True)
class PoolFacts:
    """What the bounds of one pool (worker servers or PS servers) are made of."""

    log_best: Floats  # of each job's largest utility, f(dmin - 1)
    log_worst: Floats  # of its smallest, f(T - a) or the last that is above 0
    log_priority: Floats  # of its scale, for the floor on L
    work: Floats  # worker-slots
    demand: Floats  # of one worker (or PS), (I, R)
    total: Floats  # the pool's capacity, (R,)
    horizon: int

    def log_eta(self, demand: Floats, total: Floats) -> float:
        """Logarithm of eta: ``1/eta = min_i W_i sum_r w_i^r / (T sum_r C^r)``."""
        shares = self.work * demand.sum(axis=1)
        return math.log(self.horizon * total.sum()) - math.log(shares[shares > 0].min())

    def bounds(self, floor: float, units: Units) -> PriceBounds:
        """Evaluate (23) and (25) (or (24) and (26)).

        The smallest utility counts as at least `floor` times the job's priority. L and alpha depend
        on the units, since (25) adds resources up.
        """
        scale = np.where(self.total > 0, self.total, 1.0) if units == "capacity" else 1.0
        demand, total = self.demand / scale, self.total / scale
        needs = demand.sum(axis=1) > 0
        used = (self.demand > 0).any(axis=0)
        if not needs.any():
            nothing = np.full(demand.shape[1], -math.inf)
            return PriceBounds(nothing, nothing, -math.inf)
        per_unit = np.full(demand.shape, -math.inf)
        job, resource = np.nonzero(demand)
        per_unit[job, resource] = self.log_best[job] - log_of(demand[job, resource])
        log_upper = np.where(used, per_unit.max(axis=0), -math.inf)
        log_worst = self.log_worst
        if floor > 0:
            log_worst = np.maximum(log_worst, math.log(floor) + self.log_priority)
        earns = needs & np.isfinite(log_worst)
        log_eta = self.log_eta(demand, total)
        log_lower = -math.inf
        if earns.any():
            cost = log_of(self.work[earns] * demand[earns].sum(axis=1))
            log_lower = float((log_worst[earns] - cost).min()) - math.log(4) - log_eta
        log_scale = log_of(np.asarray(scale, dtype=np.float64)) + np.zeros(len(total))
        return PriceBounds(log_upper - log_scale, log_lower - log_scale, log_eta)


@dataclass(frozen=True)
class PriceBounds:
    """Logarithms of U^r, of L and of eta for one pool; per unit of the file, (R,)."""

    log_upper: Floats  # -inf for a resource that nobody needs
    log_lowers: Floats  # the same for all resources unless (25) adds up shares of capacities
    log_eta: float

    @property
    def alpha(self) -> float:
        """``max_r(1, ln U^r / L)``."""
        finite = np.isfinite(self.log_upper) & np.isfinite(self.log_lowers)
        if not finite.any():
            return 1.0
        return max(1.0, float((self.log_upper[finite] - self.log_lowers[finite]).max()))

    def to_dict(self, resources: tuple[str, ...]) -> JsonObject:
        """Numbers by name and resource; what is -inf is left out."""

        def finite(values: Floats) -> dict[str, float]:
            pairs = zip(resources, values.tolist(), strict=True)
            return {name: value for name, value in pairs if math.isfinite(value)}

        both = {"log_upper": finite(self.log_upper), "log_lower": finite(self.log_lowers)}
        return {**both, **({"log_eta": self.log_eta} if math.isfinite(self.log_eta) else {})}

    @classmethod
    def of(cls, declared: Mapping[str, Any], resources: tuple[str, ...]) -> Self:
        """Read back what `to_dict` wrote."""
        upper, lower = (
            np.array([declared[name].get(resource, -math.inf) for resource in resources])
            for name in ("log_upper", "log_lower")
        )
        return cls(upper, lower, declared.get("log_eta", -math.inf))


def pool_facts(instance: OasisInstance) -> dict[str, PoolFacts]:
    """Facts of both pools, by the name of their row set."""
    horizon, best, worst, scale = instance.horizon, [], [], []
    for job, duration in zip(instance.jobs, instance.min_duration, strict=True):
        utility = job.utility
        best.append(_log_utility(utility, duration - 1))
        worst.append(_log_smallest(utility, duration - 1, horizon - job.arrival))
        if isinstance(utility, SigmoidUtility):
            scale.append(_log(utility.priority))
        else:
            scale.append(_log_utility(utility, 0))
    log_best, log_worst, log_scale = (np.array(each, float) for each in (best, worst, scale))
    pools = (
        (instance.worker_demand, instance.worker_capacity),
        (instance.ps_demand, instance.ps_capacity),
    )
    work = instance.work.astype(float)
    return {
        name: PoolFacts(log_best, log_worst, log_scale, work, demand, capacity.sum(axis=0), horizon)
        for name, (demand, capacity) in zip(POOLS, pools, strict=True)
    }


class ExponentialPrices:
    """(22): ``L (U^r / L)^(used / capacity)`` on every row, with `bounds` by row set.

    A resource that nobody needs costs nothing; a server without any of a resource posts U.
    """

    def __init__(self, rows: Rows, bounds: dict[str, PriceBounds]) -> None:
        lower, span = {}, {}
        for row_set in rows.sets:
            bound = bounds[row_set.name]
            needed = np.isfinite(bound.log_upper)
            log_lower = np.where(needed, bound.log_lowers, -math.inf)
            width = np.zeros_like(log_lower)
            width[needed] = bound.log_upper[needed] - bound.log_lowers[needed]
            lower[row_set.name] = np.broadcast_to(log_lower[None, :, None], row_set.shape)
            span[row_set.name] = np.broadcast_to(width[None, :, None], row_set.shape)
        self._log_lower = rows.pack(lower)
        self._width = rows.pack(span)
        self._capacity = rows.capacity

    def __call__(self, rows: Ints, used: Floats) -> Floats:
        """Price of the rows `rows` when `used` of each is used."""
        capacity = self._capacity[rows]
        share = np.divide(used, capacity, out=np.ones_like(used), where=capacity > 0)
        return exp_of(self._log_lower[rows] + self._width[rows] * share)


def _log_utility(utility: Utility, completion: int) -> float:
    if isinstance(utility, SigmoidUtility):
        return _log(utility.priority) + utility.log_value_per_priority(completion)
    return _log(utility.value(completion))


def _log_smallest(utility: Utility, first: int, last: int) -> float:
    """Logarithm of the smallest utility above 0 at completions first..last; -inf for none."""
    if isinstance(utility, SigmoidUtility):
        return _log_utility(utility, last)
    positive = (value for x in range(last, first - 1, -1) if (value := utility.value(x)) > 0)
    return _log(next(positive, 0.0))


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
