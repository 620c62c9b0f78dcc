import math
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import SolveFailed
from hindsched.instances.io import read
from hindsched.solvers.bounds.lagrangian import (
    Subgradient,
    evaluate,
    subgradient_bound,
)
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.oracles.base import build_oracle
from tests.toy_family import (
    PROBLEMS,
    ToyOracle,
    brute_force,
    lagrangian_dual,
    make,
    tiny_instances,
    toy,
)


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
def test_comes_close_to_the_lagrangian_dual(family, formulation):
    oracle = toy(family, formulation)
    best = lagrangian_dual(oracle)
    target = best * (0.97 if oracle.sense == "max" else 1.03)
    for goal in (None, target):
        found = subgradient_bound(oracle, max_iterations=150, target=goal)
        outward = (found.bound - best) * (1 if oracle.sense == "max" else -1)
        assert 0 <= outward <= 0.01 * abs(best)


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
@given(data=st.data())
def test_any_stop_gives_a_valid_bound(family, formulation, data):
    instance = data.draw(tiny_instances(family))
    iterations = data.draw(st.integers(0, 25))
    optimum = brute_force(instance, formulation)
    oracle = ToyOracle(instance, formulation, "groups")
    if optimum is None:
        return
    found = subgradient_bound(oracle, max_iterations=iterations)
    assert found.bound >= optimum if oracle.sense == "max" else found.bound <= optimum
    assert found.bound == oracle.bound(found.prices)


def test_bounds_that_are_told_only_improve():
    bounds = []
    found = subgradient_bound(
        toy("toymax", "optional"),
        max_iterations=120,
        on_progress=lambda bound, *_: bounds.append(bound),
    )
    assert len(bounds) > 5
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(found.bound)


def test_subgradient_is_capacity_minus_use():
    # phi(q) >= phi(p) + (b - use(p)) . (q - p) for all q: the definition, both senses.
    rng = np.random.default_rng(3)
    for family, formulation in PROBLEMS:
        oracle = toy(family, formulation)
        sign = 1 if oracle.sense == "max" else -1
        p = rng.exponential(0.3, oracle.rows.size)
        at_p = evaluate(oracle, p)
        slope = oracle.rows.capacity - at_p.use
        for _ in range(5):
            q = rng.exponential(0.3, oracle.rows.size)
            assert sign * evaluate(oracle, q).bound >= sign * at_p.bound + slope @ (q - p) - 1e-7


def test_prices_stay_non_negative_except_on_equalities():
    oracle = toy("toymin", "equality")
    prices = subgradient_bound(oracle, max_iterations=100).prices
    assert np.all(prices[~oracle.rows.free] >= 0)
    assert np.any(prices[oracle.rows.free] < 0)


def test_target_reached_stops_by_gap():
    instance = make("toymax", [(1, 1, 1, 6), (1, 1, 1, 5)], [1], 2)
    optimum = brute_force(instance, "optional")
    found = subgradient_bound(
        ToyOracle(instance, "optional", "groups"), SolveOptions(gap=0.01), target=optimum
    )
    assert found.stopped_by is StoppedBy.GAP
    assert optimum <= found.bound <= optimum * 1.011


def test_time_limit_zero_returns_a_bound_at_once():
    oracle = toy("toymax", "optional")
    found = subgradient_bound(oracle, SolveOptions(time_limit=0.0))
    assert found.stopped_by is StoppedBy.TIME_LIMIT
    assert math.isfinite(found.bound)


def test_interrupt_returns_the_best_bound_so_far():
    oracle = build_oracle(read("tests/data/instances/oasis-t10-i10-h10-s0.json"))
    tried = []

    def interrupt_the_fifth(bound, objective, seconds, message):
        tried.append(bound)
        if len(tried) == 5:
            signal.raise_signal(signal.SIGINT)

    options = SolveOptions(time_limit=600.0, gap=0.0)
    found = subgradient_bound(oracle, options, on_progress=interrupt_the_fifth)
    assert found.stopped_by is StoppedBy.INTERRUPTED
    assert len(tried) == 5
    assert found.bound == pytest.approx(min(tried))
    assert found.bound >= 287.06


def test_infeasible_mandatory_job_fails_with_one_line():
    instance = make("toymin", [(1, 1, 5, 1)], [1], 3)
    with pytest.raises(SolveFailed, match="no schedule"):
        subgradient_bound(ToyOracle(instance, "modes", "groups"))


def test_nothing_to_schedule():
    for family, formulation in PROBLEMS:
        found = subgradient_bound(ToyOracle(make(family, [], [1], 3), formulation, "groups"))
        assert found.bound == pytest.approx(0, abs=1e-8)
        assert found.stopped_by is StoppedBy.CONVERGED


def test_start_prices():
    oracle = toy("toymax", "optional")
    first = subgradient_bound(oracle, max_iterations=80)
    search = Subgradient(oracle, first.prices)
    assert search.best.bound == pytest.approx(first.bound)
    for _ in range(20):
        search.step(None)
    assert search.best.bound <= first.bound
