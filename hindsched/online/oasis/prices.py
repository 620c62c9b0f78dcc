"""OASiS's posted prices: the price functions (22) and their bounds (23)-(26), in log space.

=====================  ==============================================  =====================
paper                  here                                            unit
=====================  ==============================================  =====================
``U_1^r, U_2^r``       `PriceBounds.log_upper` (natural logarithm)     log utility per unit
``L_1, L_2``           `PriceBounds.log_lowers`                        log utility per unit
``eta_1, eta_2``       `PriceBounds.log_eta`                           logarithm, no unit
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
from typing import Any, Self

import numpy as np

from hindsched.arrays import Floats, Ints, exp_of, log_of
from hindsched.instances.base import SigmoidUtility
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.oracles.rows import Rows

POOLS = ("worker_capacity", "ps_capacity")


@dataclass(frozen=True)
class PriceBounds:
    """Logarithms of U^r, of L and of eta for one pool; per unit of the file, (R,)."""

    log_upper: Floats  # -inf for a resource that nobody needs
    log_lowers: Floats  # the same for all resources of a pool that has any
    log_eta: float

    @property
    def alpha(self) -> float:
        """``max_r(1, ln U^r / L)``."""
        finite = np.isfinite(self.log_upper) & np.isfinite(self.log_lowers)
        if not finite.any():
            return 1.0
        return max(1.0, float((self.log_upper[finite] - self.log_lowers[finite]).max()))

    def to_dict(self, resources: tuple[str, ...]) -> dict[str, Any]:
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


def log_utilities(instance: OasisInstance) -> tuple[Floats, Floats, Floats]:
    """Logarithms by job: largest utility f(dmin - 1), smallest above 0 until T, and its scale."""
    logarithms = []
    for job, duration in zip(instance.jobs, instance.min_duration.tolist(), strict=True):
        utility, last = job.utility, instance.horizon - job.arrival
        if isinstance(utility, SigmoidUtility):
            scale = _log(utility.priority)
            ends = (utility.log_value_per_priority(x) for x in (duration - 1, last))
            logarithms.append((*(scale + end for end in ends), scale))
        else:
            values = [utility.value(x) for x in range(max(last + 1, duration))]
            earned = [value for value in values[duration - 1 : last + 1] if value > 0]
            logarithms.append(
                (_log(values[duration - 1]), _log(min(earned, default=0)), _log(values[0]))
            )
    best, worst, scales = np.array(logarithms, float).reshape(-1, 3).T
    return best, worst, scales


def price_bounds(instance: OasisInstance, floor: float = 0.0) -> dict[str, PriceBounds]:
    """Evaluate (23)-(26), by the name of the pool's row set.

    The smallest utility counts as at least `floor` times the job's priority. L and alpha depend on
    the file's units, since (25) adds resources up.
    """
    log_best, log_worst, log_scales = log_utilities(instance)
    if floor > 0:
        log_worst = np.maximum(log_worst, math.log(floor) + log_scales)
    by_pool = {}
    for pool, demand, capacity in (
        (POOLS[0], instance.worker_demand, instance.worker_capacity),
        (POOLS[1], instance.ps_demand, instance.ps_capacity),
    ):
        total = capacity.sum(axis=0)
        cost = instance.work * demand.sum(axis=1)  # 1/eta = min_i W_i sum_r w_i^r / (T sum_r C^r)
        needs = cost > 0
        if not needs.any():
            unused = np.full(total.size, -math.inf)
            by_pool[pool] = PriceBounds(unused, unused, -math.inf)
            continue
        per_unit = np.full(demand.shape, -math.inf)
        job, resource = np.nonzero(demand)
        per_unit[job, resource] = log_best[job] - log_of(demand[job, resource])
        upper = per_unit.max(axis=0)
        if not total.any():  # all of it is missing: every row posts U
            by_pool[pool] = PriceBounds(upper, upper, -math.inf)
            continue
        log_eta = math.log(instance.horizon * total.sum()) - math.log(cost[needs].min())
        earns = needs & np.isfinite(log_worst)
        log_lower = -math.inf
        if earns.any():
            least = float((log_worst[earns] - log_of(cost[earns])).min())
            log_lower = least - math.log(4) - log_eta
        by_pool[pool] = PriceBounds(upper, np.full(total.size, log_lower), log_eta)
    return by_pool


class ExponentialPrices:
    """(22): ``L (U^r / L)^(used / capacity)`` on every row, with `bounds` by row set.

    A resource that nobody needs costs nothing, nor does any where no job can earn; a server without
    any of a resource posts U.
    """

    def __init__(self, rows: Rows, bounds: dict[str, PriceBounds]) -> None:
        lower, span = {}, {}
        for row_set in rows.sets:
            bound = bounds[row_set.name]
            needed = np.isfinite(bound.log_upper) & np.isfinite(bound.log_lowers)
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


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
