"""The engines of prices: near the Lagrangian dual, valid wherever they stop, infeasible said."""

import math
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import evaluate, subgradient_bound
from hindsched.solvers.bounds.schedule_prices import schedule_prices
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import StoppedBy
from hindsched.solvers.families.edgecloud.methods import METHODS
from tests.node_bounds import root_bound
from tests.toy_family import (
    PROBLEMS,
    ToyOracle,
    brute_force,
    lagrangian_dual,
    make,
    tiny_instances,
    toy,
)

each_problem = pytest.mark.parametrize(("family", "formulation"), PROBLEMS)


def outward(oracle, bound, value):
    """By how much a bound is on the safe side of a value."""
    return (bound - value) * (1 if oracle.sense == "max" else -1)


@each_problem
def test_they_come_to_the_lagrangian_dual(family, formulation):
    oracle = toy(family, formulation)
    best = lagrangian_dual(oracle)
    for goal in (None, best * (0.97 if oracle.sense == "max" else 1.03)):
        found = subgradient_bound(oracle, max_iterations=150, target=goal)
        assert 0 <= outward(oracle, found.bound, best) <= 0.01 * abs(best)
    found = root_bound(oracle)
    assert found.bound == pytest.approx(best, rel=1e-5)
    assert outward(oracle, found.bound, best) >= -1e-9 * abs(best)


@each_problem
@given(data=st.data())
def test_any_stop_gives_a_valid_bound(family, formulation, data):
    instance = data.draw(tiny_instances(family))
    optimum = brute_force(instance, formulation)
    if optimum is None:
        return
    oracle = ToyOracle(instance, formulation, "groups")
    found = subgradient_bound(
        oracle,
        max_iterations=data.draw(st.integers(0, 12)),
        start_prices=np.zeros(oracle.rows.size),
    )
    assert outward(oracle, found.bound, optimum) >= 0
    assert found.bound == oracle.bound(found.prices)


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


def test_time_limit_and_interrupt_keep_the_best_bound():
    oracle = build_oracle(hs.named_instance("oasis-t10-i10-h5-s1"))
    late = subgradient_bound(oracle, SolveOptions(time_limit=0.0))
    assert late.stopped_by is StoppedBy.TIME_LIMIT
    assert 250.338 <= late.bound < math.inf
    told = []

    def interrupt_the_third(bound, objective, seconds, message):
        told.append(bound)
        if len(told) == 3:
            signal.raise_signal(signal.SIGINT)

    options = SolveOptions(time_limit=600.0, gap=0.0)
    cut = subgradient_bound(oracle, options, on_progress=interrupt_the_third)
    assert cut.stopped_by is StoppedBy.INTERRUPTED
    assert 250.338 <= cut.bound <= min(told) * (1 + 1e-6)


@pytest.mark.parametrize("prices", [None, np.ones(3)])
def test_jobs_none_of_which_has_a_schedule_are_worth_nothing(prices):
    """The master then has no columns at all, which HiGHS does not call optimal."""
    oracle = ToyOracle(make("toymax", [(1, 9, 1, 6)], [1], 3), "optional", "groups")
    assert root_bound(oracle, prices).bound == pytest.approx(0, abs=1e-8)


def test_jobs_that_cannot_be_served_together_end_with_the_best_bound():
    """Two unit jobs, both mandatory, for one server and one slot: no penalty makes room."""
    oracle = ToyOracle(make("toymin", [(1, 1, 1, 1), (1, 1, 1, 1)], [1], 1), "modes", "groups")
    assert root_bound(oracle).bound >= 2 - 1e-6


def test_prices_over_whole_schedules_are_found_in_as_many_rounds_as_it_takes():
    """Some thirty here; with twenty the bound of these prices was 2.7 % above."""
    instance = hs.generate("astraea", seed=1, jobs=14, horizon=8, servers=4)
    oracle = build_oracle(instance.with_jobs(instance.jobs[:7]), rows="servers")
    prices = schedule_prices(oracle, oracle.rows.capacity)
    assert oracle.bound(prices) == pytest.approx(669.9630071)  # of the LP over all schedules


@pytest.mark.parametrize("family", ["batchsched", "astraea"])
@pytest.mark.parametrize("seed", range(2))
def test_prices_over_whole_schedules_are_the_best_on_their_ray(family, seed):
    instance = hs.generate(family, seed=seed, jobs=5)
    oracle = build_oracle(instance, rows="servers")
    residual = np.floor(0.7 * oracle.rows.capacity)
    prices = schedule_prices(oracle, residual)
    assert (prices >= 0).all()

    def bound(at):
        responses = [oracle.best_response(j, at, residual) for j in range(len(instance.jobs))]
        values = [0.0 if r is None else r.value for r in responses]
        if oracle.optional:
            return at @ residual + sum(max(0.0, value) for value in values)
        return sum(values) - at @ residual

    for factor in (0.0, 0.5, 0.9, 1.1, 2.0):
        best, other = bound(prices), bound(factor * prices)
        assert outward(oracle, other, best) >= -1e-6 * (1 + abs(best))
    alone = build_oracle(instance.with_jobs(instance.jobs[:1]), rows="servers")
    if family == "astraea":
        assert not schedule_prices(alone, alone.rows.capacity).any()


def test_bounds_of_edgecloud_begin_from_the_duals_of_its_linear_program():
    """Where no cloud takes what waits, a search from no prices is far behind after its first."""
    instance, bounds = hs.generate("edgecloud", seed=4, cloud_workers=0, jobs=12), []
    METHODS["bound"](instance, "no-migration", SolveOptions(), lambda *told: bounds.append(told[0]))
    assert bounds[0] >= hs.solve(instance, method="relaxation").bound - 1e-6
