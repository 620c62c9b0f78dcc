"""Online algorithms against the brute-force optimum; the two engines against each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hindsched.online.algorithms.oasis import ALGORITHMS, Oasis
from hindsched.online.simulator import simulate
from hindsched.solvers.subproblem import model_response
from tests.brute_force.oasis import optimum
from tests.strategies.oasis import oasis_instances, regretful_oasis_instances

EXAMPLES = 200
SOLVING = ("dual-price", "reoptimise", "dorm")
"""Algorithms that solve programs: run only where no other one is optimal."""


def mostly_regretful() -> st.SearchStrategy[Any]:
    """Nine in ten instances punish who does not know the future."""
    return st.integers(0, 9).flatmap(
        lambda draw: regretful_oasis_instances() if draw < 9 else oasis_instances()
    )


def is_optimal(instance: Any, name: str, best: float) -> bool:
    result = simulate(instance, name)
    assert result.violations == []
    assert result.objective <= best + 1e-6
    return result.objective >= best - 1e-6


def test_no_algorithm_beats_the_optimum_and_often_none_attains_it() -> None:
    nobody: list[bool] = []

    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(mostly_regretful())
    def compare(instance: Any) -> None:
        best = optimum(instance).value
        cheap = [name for name in ALGORITHMS if name not in SOLVING]
        attained = [name for name in cheap if is_optimal(instance, name, best)]
        if not attained:
            attained = [name for name in SOLVING if is_optimal(instance, name, best)]
        nobody.append(not attained)

    compare()
    assert len(nobody) >= EXAMPLES
    assert sum(nobody) >= 0.2 * len(nobody), sum(nobody)


class BothEngines(Oasis):
    """Takes the oracle's response after checking that the subproblem's payoff equals it."""

    def respond_by_oracle(self, oracle: Any, block: int) -> Any:
        exact = oracle.best_response(block, self.posted_prices, self.residual)
        model = model_response(oracle, block, self.posted_prices, self.residual)
        assert (exact is None) == (model is None)
        if exact is not None:
            assert model.value == pytest.approx(exact.value, abs=1e-6)
        return exact


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(oasis_instances())
def test_engines_agree_at_every_decision(instance: Any) -> None:
    assert simulate(instance, BothEngines(lower_floor=0.1)).violations == []
