"""An oracle under decisions: a node of a branching is an instance of the same problem.

`RestrictedOracle` answers for the schedules that a node's decisions keep, with the outside option
as one of them. Engines and bounds need nothing else: the bound of a restricted oracle at any prices
is a bound on every solution that obeys the decisions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from hindsched.arrays import Floats
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    BranchDecision,
    Feature,
    Limits,
    limits_of,
    window_of,
)


class RestrictedOracle(BlockOracle):
    """Best responses of blocks that obey decisions; full capacity only."""

    def __init__(self, oracle: BlockOracle, decisions: Sequence[BranchDecision]) -> None:
        self.oracle = oracle
        self.decisions = tuple(decisions)
        self.limits = limits_of(decisions)
        self.sense = oracle.sense  # type: ignore[misc]
        self.instance, self.formulation = oracle.instance, oracle.formulation
        self.layout, self.rows, self.features = oracle.layout, oracle.rows, oracle.features
        self.exact, self.step, self.implied = oracle.exact, oracle.step, oracle.implied
        self.optional = False  # staying out is a response like any other

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return self.oracle.num_blocks

    @property
    def is_contradictory(self) -> bool:
        """Whether decisions on one feature leave no number."""
        return any(low > high for own in self.limits.values() for low, high in own.values())

    def block_name(self, block: int) -> str:
        """Name of a block in reports."""
        return self.oracle.block_name(block)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of a block that obeys the decisions, or its outside option."""
        if residual is not None:
            raise ValueError("blocks are restricted at full capacity only")
        limits = self.limits.get(block, {})
        found = self.oracle.restricted_response(block, prices, limits)
        outside = self.oracle.outside(block)
        if outside is None or not self._keeps_outside(limits):
            return found
        if found is None:
            return outside
        sign = 1.0 if self.sense == "max" else -1.0
        return found if sign * found.value > sign * outside.value else outside

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
        if self.is_contradictory:
            return -math.inf if self.sense == "max" else math.inf
        found = self.oracle.bound_within(prices, self.limits)
        return super().bound(prices) if found is None else found

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
        found = float(whole * self.step)
        beyond = found > whole * self.step if self.sense == "min" else found < whole * self.step
        return math.nextafter(found, worse) if beyond else found

    def _keeps_outside(self, limits: Limits) -> bool:
        """Whether the outside option is kept.

        Staying out has no completion and 0 of everything else. One that stands for schedules beyond
        the priced slots may have any features but a completion in those.
        """
        contradict = any(low > high for low, high in limits.values())
        if contradict or window_of(limits, COMPLETES)[1] <= self.oracle.outside_ends_after:
            return False
        return not self.oracle.optional or all(
            low == 0 for feature, (low, _) in limits.items() if feature != COMPLETES
        )
