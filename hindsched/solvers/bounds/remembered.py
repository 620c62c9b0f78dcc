"""Bounds of many restrictions of one oracle, block by block.

Leaves of a tree differ in a few decisions, and a bound is a sum over blocks: a block whose limits
were asked for at these prices before is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hindsched.arrays import Floats
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.oracles.decisions import BranchDecision, Feature
from hindsched.solvers.oracles.restricted import RestrictedOracle

Asked = tuple[int, frozenset[tuple[Feature, tuple[int, int]]]]
"""A block and its limits."""


class RememberedBounds:
    """Bounds on what obeys decisions, as `RestrictedOracle.bound`.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of the whole problem.
    """

    def __init__(self, oracle: BlockOracle) -> None:
        self._oracle = oracle
        self._adds_up = type(oracle).bound_within is BlockOracle.bound_within
        self._known: dict[bytes, tuple[list[float], dict[Asked, float]]] = {}

    def __call__(self, decisions: Sequence[BranchDecision], prices: Floats) -> float:
        """Bound at `prices` on what obeys `decisions`, rounded outward."""
        restricted = RestrictedOracle(self._oracle, decisions)
        if not self._adds_up or restricted.is_contradictory:
            return restricted.bound(prices)
        key = prices.tobytes()
        if key not in self._known:
            self._known[key] = restricted.price_terms(prices).tolist(), {}
        terms, values = self._known[key]
        asked: list[Asked] = [
            (block, frozenset(restricted.limits.get(block, {}).items()))
            for block in range(restricted.num_blocks)
        ]
        new = [one for one in asked if one not in values]
        fresh = restricted.values_of([block for block, _ in new], prices)
        values.update(zip(new, fresh, strict=True))
        return restricted.round_outward([*terms, *(values[one] for one in asked)])
