"""Programs, oracle, engines and online algorithms against the brute force, on one set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.models.oasis import offline as models
from hindsched.online.oasis.algorithms import ALGORITHMS, Oasis
from hindsched.online.simulator import simulate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.subproblem import model_response
from tests.brute_force.oasis import capacity_binds, optimum
from tests.strategies.oasis import oasis_instances, regretful_oasis_instances

EXAMPLES = settings().max_examples
SOLVING = ("dual-price", "reoptimise", "dorm")
"""Algorithms that solve programs: run only where no other one is optimal."""


def mostly_regretful() -> st.SearchStrategy[Any]:
    """Nine in ten instances punish who does not know the future."""
    return st.integers(0, 9).flatmap(
        lambda draw: regretful_oasis_instances() if draw < 9 else oasis_instances()
    )


class BothEngines(Oasis):
    """Takes the oracle's response after checking that the subproblem's payoff equals it."""

    def respond_by_oracle(self, oracle: Any, block: int) -> Any:
        exact = oracle.best_response(block, self.posted_prices, self.residual)
        model = model_response(oracle, block, self.posted_prices, self.residual)
        assert (exact is None) == (model is None)
        if exact is not None:
            assert model.value == pytest.approx(exact.value, abs=1e-6)
        return exact


def check_programs(instance: Any, best: float) -> None:
    """Both forms on real servers equal the optimum; the relaxation is never below it."""
    for form in ("printed", "strong"):
        model = models.build_offline(instance, form=form)
        result = solve_program(model.pyomo, SolveOptions(gap=1e-7))
        assert result.objective == pytest.approx(best, abs=1e-5)
        solution = model.extract()
        assert solution is not None
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(best, abs=1e-5)
        relaxed = models.build_offline(instance, form=form, relax=True)
        assert solve_program(relaxed.pyomo).objective >= best - 1e-6


def is_optimal(instance: Any, name: str, best: float) -> bool:
    result = simulate(instance, name)
    assert result.violations == []
    assert result.objective <= best + 1e-6
    return result.objective >= best - 1e-6


@pytest.mark.timeout(3000)
def test_relaxation_program_and_algorithms_stand_in_order_on_one_set() -> None:
    """LP >= MILP = brute force >= every algorithm; often a capacity binds and none is optimal."""
    binds: list[bool] = []
    nobody: list[bool] = []

    @settings(max_examples=EXAMPLES)
    @given(mostly_regretful())
    def compare(instance: Any) -> None:
        best = optimum(instance).value
        binds.append(capacity_binds(instance, best))
        check_programs(instance, best)
        assert simulate(instance, BothEngines(lower_floor=0.1)).violations == []
        cheap = [name for name in ALGORITHMS if name not in SOLVING]
        attained = [name for name in cheap if is_optimal(instance, name, best)]
        if not attained:
            attained = [name for name in SOLVING if is_optimal(instance, name, best)]
        nobody.append(not attained)

    compare()
    assert len(nobody) >= EXAMPLES
    assert sum(binds) >= 0.3 * len(binds), sum(binds)
    assert sum(nobody) >= 0.2 * len(nobody), sum(nobody)
