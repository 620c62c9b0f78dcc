"""Lagrangian bounds by a deflected Polyak subgradient method, over any family's pricing oracle.

For prices p the bound of `PricingOracle.bound` is valid; this engine looks for good p. It minimises
the convex function ``phi(p) = p.b + sum_j max_x [f - p.Ax]`` (maximising families; minus the bound
for minimising ones), whose subgradient is ``b - use``:

- rows are scaled by their capacity, so that a step moves the *value* of each row's capacity;
- step ``step_scale (phi - target) / |d|^2`` along ``d = 0.7 g + 0.3 d_previous`` (Camerini,
  Fratta, Maffioli), with components that push a zero price below zero projected out first;
- the target is a feasible objective, moved a little outward;
- after a number of iterations without a better bound the step shrinks and the search restarts from
  the best prices.

Every iterate is a valid bound, so the engine is anytime.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.certificates.certificate import Certificate, certify, check_certifies
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Progress, StoppedBy
from hindsched.solvers.door.work import Clock, catch_interrupt, count_work
from hindsched.solvers.oracles.base import PricingOracle
from hindsched.solvers.oracles.rows import LARGEST_PRICE

DEFLECTION = 0.7
"""Weight of the new subgradient in the direction; the rest is the previous direction."""
FIRST_STEP, STEP_SHRINK, LAST_STEP = 1.0, 0.7, 1e-4
"""Step scale at the start, its factor at a restart, and the value at which the search ends."""
PATIENCE = 6  # iterations without a better bound before a restart
TARGET_MARGIN = 0.02
"""How far, relative to its size, the step's target lies beyond the feasible objective."""
NOTHING = 1e-9  # share of the first bound that is as good as 0


@dataclass(frozen=True)
class BoundResult:
    """The best bound that the search found."""

    certificate: Certificate  # the bound with its prices
    stopped_by: StoppedBy  # why it stopped
    iterations: int  # evaluations of all blocks
    seconds: float  # wall-clock time

    @property
    def bound(self) -> float:
        """The bound, rounded outward."""
        return self.certificate.bound

    @property
    def prices(self) -> Floats:
        """Prices that prove it, flat."""
        return self.certificate.prices


@dataclass
class PricePoint:
    """Prices and what the blocks answer to them."""

    prices: Floats  # the prices, (rows.size,)
    bound: float  # the bound there, not yet rounded outward
    values: Floats  # each block's term of the bound, or fewer that add up to the same
    use: Floats  # total use of the blocks' best responses, (rows.size,)


def evaluate(oracle: PricingOracle, prices: Floats) -> PricePoint:
    """Ask all blocks for their best responses at `prices`.

    An instance without a solution drives a search to prices without end; those beyond
    `LARGEST_PRICE` count as proving nothing, so that what is kept can be added up and rounded.
    """
    count_work()
    nothing = math.inf if oracle.sense == "max" else -math.inf
    if not np.all(np.abs(prices) <= LARGEST_PRICE):  # also where a price is no number
        return PricePoint(prices, nothing, np.zeros(oracle.num_blocks), np.zeros(prices.size))
    values, use = oracle.block_values(prices)
    terms = [*oracle.price_terms(prices).tolist(), *values.tolist()]
    return PricePoint(prices, math.fsum(terms), values, use)


class Subgradient:
    """The search for prices, one step at a time; `best` is always a valid bound.

    It begins at `start_prices`, or at the best of a few prices that value every row's whole
    capacity alike, and 0; `stop` is asked before each of those is tried.
    """

    def __init__(
        self, oracle: PricingOracle, start_prices: Floats | None = None, *,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        check_certifies(oracle)
        self.oracle = oracle
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self.scale = oracle.rows.scale
        self.iterations = 0
        self.step_scale = FIRST_STEP
        self.converged = False
        self._failures = 0
        self._assumed: float | None = None
        start = np.zeros(oracle.rows.size) if start_prices is None else start_prices.astype(float)
        self.best = self.point = self._evaluate(start)
        if start_prices is None:
            self._scan_uniform_prices(stop)
        self.size = abs(self.best.bound) or 1.0
        self._direction = np.zeros(oracle.rows.size)

    @property
    def is_infeasible(self) -> bool:
        """Whether a mandatory block has no schedule at all."""
        return not math.isfinite(self.best.bound)

    def step(self, target: float | None) -> bool:
        """Move once; return whether the bound became better.

        The step's length follows from `target`, the objective of a feasible solution. Without one
        the distance to the best bound is assumed, doubled after good steps and halved after bad.
        """
        subgradient = (self.oracle.rows.capacity - self.point.use) / self.scale
        at_zero = self.point.prices <= 0
        subgradient[at_zero & (subgradient > 0)] = 0.0
        direction = DEFLECTION * subgradient + (1 - DEFLECTION) * self._direction
        direction[at_zero & (direction > 0)] = 0.0
        norm = float(direction @ direction)
        if norm <= 1e-18:
            if not np.any(subgradient):
                self.converged = True  # 0 is a subgradient: no better prices exist
            self._restart()
            return False
        length = self.step_scale * self._distance(target) / norm
        prices = np.maximum(self.point.prices - length * direction / self.scale, 0.0)
        self._direction = direction
        self.point = self._evaluate(prices)
        if self._is_better(self.point):
            gained = abs(self.best.bound - self.point.bound)
            if target is None and self._assumed is not None and gained > self._assumed / 4:
                self._assumed *= 2
            self.best = self.point
            self._failures = 0
            return True
        self._failures += 1
        if self._failures >= PATIENCE or math.isinf(self.point.bound):
            self._restart()
        return False

    def _distance(self, target: float | None) -> float:
        """How far phi is thought to be above its minimum."""
        above_best = abs(self.point.bound - self.best.bound)
        size = abs(self.best.bound)
        if target is None:
            if self._assumed is None:
                self._assumed = 0.1 * size or 1.0
            return above_best + self._assumed
        self._assumed = None
        gap = self.sign * (self.best.bound - target) + TARGET_MARGIN * abs(target)
        return above_best + (max(gap, 1e-3 * size) or 1e-12)

    def _restart(self) -> None:
        self._failures = 0
        if self._assumed is None:
            self.step_scale *= STEP_SHRINK
            self.converged = self.converged or self.step_scale < LAST_STEP
        else:
            self._assumed *= STEP_SHRINK
            least = LAST_STEP / 10 * max(abs(self.best.bound), NOTHING * self.size)
            self.converged = self.converged or self._assumed < least
        self.point = self.best
        self._direction = np.zeros(self.oracle.rows.size)

    def _evaluate(self, prices: Floats) -> PricePoint:
        self.iterations += 1
        return evaluate(self.oracle, prices)

    def _is_better(self, point: PricePoint) -> bool:
        return self.sign * point.bound < self.sign * self.best.bound

    def _scan_uniform_prices(self, stop: Callable[[], bool]) -> None:
        """Try prices ``level / b``: on a convex line a few steps of doubling find the valley."""
        capacity = self.oracle.rows.capacity
        sellable = capacity > 0
        total = math.fsum(np.abs(self.best.values))
        if self.is_infeasible or not np.any(sellable) or total <= 0:
            return
        level = total / float(np.count_nonzero(sellable))
        tried: list[tuple[float, float]] = []
        for _ in range(8):
            if stop():
                break
            point = self._evaluate(np.where(sellable, level / self.scale, 0.0))
            tried.append((self.sign * point.bound, level))
            if self._is_better(point):
                self.best = self.point = point
            elif len(tried) > 1 and tried[-1][0] >= tried[-2][0]:
                break
            level /= 2


def subgradient_bound(
    oracle: PricingOracle, options: SolveOptions | None = None, *,
    start_prices: Floats | None = None,
    target: float | None = None, max_iterations: int | None = None,
    on_progress: Progress | None = None,
) -> BoundResult:  # fmt: skip
    """Bound an instance's optimum by the subgradient method, from `start_prices` if given.

    It ends at the options' gap from `target`, the objective of a feasible solution, at their time
    limit, after `max_iterations` evaluations, or when its step has become tiny.
    """
    options = options or SolveOptions()
    limit, better = options.time_limit, True
    with catch_interrupt() as interrupted:
        clock = Clock(math.inf if limit is None else limit)
        search = Subgradient(oracle, start_prices)
        while True:
            bound = search.best.bound
            if better and on_progress is not None:
                message = f"subgradient, iteration {search.iterations}"
                on_progress(bound, target, clock.gone, message)
            if interrupted.is_set():
                stopped_by = StoppedBy.INTERRUPTED
            elif target is not None and abs(bound - target) <= options.gap * abs(bound):
                stopped_by = StoppedBy.GAP
            elif search.converged or search.is_infeasible:
                stopped_by = StoppedBy.CONVERGED
            elif clock.is_over:
                stopped_by = StoppedBy.TIME_LIMIT
            elif max_iterations is not None and search.iterations >= max_iterations:
                stopped_by = StoppedBy.ITERATION_LIMIT
            else:
                better = search.step(target)
                continue
            break
    certificate = certify(oracle, search.best.prices)
    return BoundResult(certificate, stopped_by, search.iterations, clock.gone)
