"""A node of a branching as a problem of its own: an oracle whose blocks obey decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solvers.oracles.base import PricingOracle, Response, RestrictableOracle
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    BranchDecision,
    Feature,
    Limits,
    limits_of,
    window_of,
)


class RestrictedOracle(PricingOracle):
    """A node of a branching as an instance of the same problem: blocks that obey decisions.

    The outside option is a response like any other. At any prices its bound is one on every
    solution that obeys the decisions. Without decisions any oracle can stand behind it.
    """

    def __init__(self, oracle: PricingOracle, decisions: Sequence[BranchDecision]) -> None:
        self.oracle = oracle
        self._restrictable = oracle if isinstance(oracle, RestrictableOracle) else None
        self.decisions = tuple(decisions)
        self.limits = limits_of(decisions)
        self.sense = oracle.sense  # type: ignore[misc]
        self.instance, self.formulation = oracle.instance, oracle.formulation
        self.layout, self.rows = oracle.layout, oracle.rows
        self.exact, self.step, self.implied = oracle.exact, oracle.step, oracle.implied
        self.optional = False  # staying out is a response like any other

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return self.oracle.num_blocks

    def block_name(self, block: int) -> str:
        """Name of a block in reports."""
        return self.oracle.block_name(block)

    def best_response(self, block: int, prices: Floats) -> Response | None:
        """Best schedule of a block that obeys the decisions, or its outside option."""
        limits = self.limits.get(block, {})
        if self._restrictable is None:
            response = self.oracle.best_response(block, prices)
        else:
            response = self._restrictable.restricted_response(block, prices, limits)
        outside = self.oracle.outside(block)
        if outside is None or not self._keeps_outside(limits):
            return response
        if response is None:
            return outside
        sign = 1.0 if self.sense == "max" else -1.0
        return response if sign * response.value > sign * outside.value else outside

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Schedules of a solution, which must obey the decisions."""
        return self.oracle.use_of(solution)

    def keeps(self, block: int, values: Mapping[Feature, int] | None) -> bool:
        """Whether a schedule with these features (None: the outside option) obeys."""
        limits = self.limits.get(block, {})
        if values is None:
            return self._keeps_outside(limits)
        for feature, (low, high) in limits.items():  # noqa: SIM110  # twice as fast as `all`
            if not low <= values.get(feature, 0) <= high:
                return False
        return True

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values and total use; without decisions by the family's own compiled call."""
        if not self.decisions:
            return self.oracle.block_values(prices)
        return super().block_values(prices)

    def bound(self, prices: Floats) -> float:
        """Bound at `prices` on the solutions that obey the decisions, rounded outward.

        Infinite where no solution does, as where decisions on one feature contradict each other.
        """
        if any(low > high for each in self.limits.values() for low, high in each.values()):
            return -math.inf if self.sense == "max" else math.inf
        bound = None
        if self._restrictable is not None:
            bound = self._restrictable.bound_within(prices, self.limits)
        return super().bound(prices) if bound is None else bound

    def price_terms(self, prices: Floats) -> Floats:
        """Terms of the bound that belong to the rows."""
        return self.oracle.price_terms(prices)

    def round_outward(self, terms: Sequence[float], size: float | None = None) -> float:
        """Sum, rounded outward as the family does; then inward to what an objective can be."""
        total = self.oracle.round_outward(terms, size)
        if self.step is None or not math.isfinite(total):
            return total
        number = Fraction(total) / self.step
        whole = math.floor(number) if self.sense == "max" else math.ceil(number)
        worse = -math.inf if self.sense == "min" else math.inf
        bound = float(whole * self.step)
        beyond = bound > whole * self.step if self.sense == "min" else bound < whole * self.step
        return math.nextafter(bound, worse) if beyond else bound

    def _keeps_outside(self, limits: Limits) -> bool:
        """Whether the outside option is kept.

        Staying out has no completion and 0 of everything else. One that stands for schedules beyond
        the priced slots may have any features but a completion in those.
        """
        if not limits or self._restrictable is None:
            return True
        contradict = any(low > high for low, high in limits.values())
        _, latest = window_of(limits, COMPLETES)
        if contradict or latest <= self._restrictable.outside_ends_after:
            return False
        return not self.oracle.optional or all(
            low == 0 for feature, (low, _) in limits.items() if feature != COMPLETES
        )
