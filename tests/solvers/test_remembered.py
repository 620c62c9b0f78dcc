"""Bounds that remember blocks are those of the restricted oracle, and ask no block twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.solvers.bounds.remembered import RememberedBounds
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER, BranchDecision
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree.method import tree_rows

FAMILIES = ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker", "gang")


@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_are_those_of_the_restricted_oracle(family: str) -> None:
    instance = hs.generate(family, seed=3)
    rows = tree_rows(instance, instance.formulations[0])
    if not rows:
        pytest.skip("blocks of this family are not restricted")
    oracle = build_oracle(instance, rows=rows[0])
    ends = st.integers(1, instance.horizon) | st.just(NEVER - 1)
    splits = st.tuples(st.integers(0, oracle.num_decided - 1), ends, st.booleans())
    remembered = RememberedBounds(oracle)
    random = np.random.default_rng(0)
    prices = [random.uniform(0.0, 1.0, oracle.rows.size), np.zeros(oracle.rows.size)]

    @given(st.lists(splits, max_size=4), st.booleans())
    def same(drawn: list[tuple[int, int, bool]], free: bool) -> None:
        """Contradictions are drawn as well, and the same limits again and again."""
        decisions = tuple(
            BranchDecision.at_most(block, COMPLETES, end)
            if upper
            else BranchDecision.at_least(block, COMPLETES, end + 1)
            for block, end, upper in drawn
        )
        at = prices[free]
        assert remembered(decisions, at) == RestrictedOracle(oracle, decisions).bound(at)

    same()


def test_a_block_is_asked_once_for_the_same_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = hs.generate("oasis", seed=3)
    oracle = build_oracle(instance, rows="groups")
    asked: list[int] = []
    answer = oracle.restricted_response

    def spy(block, prices, limits):  # type: ignore[no-untyped-def]
        asked.append(block)
        return answer(block, prices, limits)

    monkeypatch.setattr(oracle, "restricted_response", spy)
    remembered = RememberedBounds(oracle)
    prices = np.ones(oracle.rows.size)
    first, second = (BranchDecision.at_most(job, COMPLETES, instance.horizon) for job in (0, 1))
    remembered((first, second), prices)
    assert sorted(asked) == list(range(oracle.num_blocks))
    asked.clear()
    remembered((first,), prices)
    assert asked == [1]
    remembered((first,), prices)
    remembered((second, first), prices)
    assert asked == [1]
