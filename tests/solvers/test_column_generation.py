import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import SolveFailed
from hindsched.instances.io import read
from hindsched.solvers.bounds import column_generation
from hindsched.solvers.bounds.column_generation import column_generation_bound
from hindsched.solvers.bounds.lagrangian import subgradient_bound
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
def test_meets_the_lagrangian_dual(family, formulation):
    oracle = toy(family, formulation)
    best = lagrangian_dual(oracle)
    found = column_generation_bound(oracle)
    assert found.stopped_by is StoppedBy.CONVERGED
    assert found.bound == pytest.approx(best, rel=1e-5)
    assert found.details["master_value"] == pytest.approx(best, rel=1e-5)
    assert (found.bound - best) * (1 if oracle.sense == "max" else -1) >= -1e-9 * abs(best)


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 0.9])
def test_smoothing_changes_the_way_not_the_value(smoothing, monkeypatch):
    monkeypatch.setattr(column_generation, "SMOOTHING", smoothing)
    oracle = toy("toymax", "optional", seed=4)
    found = column_generation_bound(oracle, start_prices=np.zeros(oracle.rows.size))
    assert found.bound == pytest.approx(lagrangian_dual(oracle), rel=1e-5)


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
@given(data=st.data())
def test_any_stop_gives_a_valid_bound(family, formulation, data):
    instance = data.draw(tiny_instances(family))
    iterations = data.draw(st.integers(0, 6))
    optimum = brute_force(instance, formulation)
    oracle = ToyOracle(instance, formulation, "groups")
    if optimum is None:
        return
    found = column_generation_bound(
        oracle, max_iterations=iterations, start_prices=np.zeros(oracle.rows.size)
    )
    assert found.bound >= optimum if oracle.sense == "max" else found.bound <= optimum


def test_at_least_as_good_as_the_subgradient_on_oasis():
    oracle = build_oracle(read("tests/data/instances/oasis-t10-i10-h25-s0.json"))
    found = column_generation_bound(oracle, SolveOptions(time_limit=30.0))
    other = subgradient_bound(oracle, max_iterations=200)
    assert found.stopped_by is StoppedBy.CONVERGED
    assert 182.359 <= found.bound <= other.bound + 1e-4


def test_time_limit_and_interrupt_keep_the_best_bound():
    oracle = build_oracle(read("tests/data/instances/oasis-t10-i10-h5-s1.json"))
    late = column_generation_bound(oracle, SolveOptions(time_limit=0.0))
    assert late.stopped_by is StoppedBy.TIME_LIMIT
    assert late.bound >= 250.338
    told = []

    def interrupt_once(bound, objective, seconds, message):
        if not told:
            signal.raise_signal(signal.SIGINT)
        told.append(bound)

    cut = column_generation_bound(
        oracle, SolveOptions(time_limit=600.0), on_progress=interrupt_once
    )
    assert cut.stopped_by is StoppedBy.INTERRUPTED
    assert cut.bound <= told[0] * (1 + 1e-6)
    assert cut.bound >= 250.338


def test_infeasible_problems():
    instance = make("toymin", [(1, 1, 5, 1)], [1], 3)
    with pytest.raises(SolveFailed, match="no schedule"):
        column_generation_bound(ToyOracle(instance, "modes", "groups"))


def test_nothing_to_schedule():
    found = column_generation_bound(ToyOracle(make("toymax", [], [1], 3), "optional", "groups"))
    assert found.bound == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("prices", [None, np.ones(3)])
def test_jobs_none_of_which_has_a_schedule_are_worth_nothing(prices):
    """The master then has no columns at all, which HiGHS does not call optimal."""
    oracle = ToyOracle(make("toymax", [(1, 9, 1, 6)], [1], 3), "optional", "groups")
    found = column_generation_bound(oracle, start_prices=prices)
    assert found.bound == pytest.approx(0, abs=1e-8)
    assert found.stopped_by is StoppedBy.CONVERGED


def test_jobs_that_cannot_be_served_together_end_with_the_best_bound():
    """Two unit jobs, both mandatory, for one server and one slot: no penalty makes room."""
    oracle = ToyOracle(make("toymin", [(1, 1, 1, 1), (1, 1, 1, 1)], [1], 1), "modes", "groups")
    found = column_generation_bound(oracle)
    assert found.stopped_by is StoppedBy.INFEASIBLE
    assert found.bound >= 2 - 1e-6
    assert found.details["master_value"] is None
