import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.io import read
from hindsched.limits import OutOfTime, check_time, time_limit
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.search import NeighbourhoodSearch
from tests.searches import searched
from tests.toy_family import (
    PROBLEMS,
    ToyServerOracle,
    brute_force,
    install,
    make,
    random_instance,
    tiny_instances,
)


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    install(monkeypatch)


def priced(instance, formulation=None):
    """Oracle on servers with the prices of the aggregated bound."""
    groups = build_oracle(instance, formulation)
    found = subgradient_bound(groups, max_iterations=60)
    return build_oracle(instance, formulation, rows="servers"), groups.prices_on_servers(
        found.prices
    )


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
@given(data=st.data())
def test_solutions_are_feasible_and_never_beat_the_optimum(family, formulation, data):
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        instance = data.draw(tiny_instances(family))
        optimum = brute_force(instance, formulation)
        oracle = ToyServerOracle(instance, formulation, "servers")
        found = searched(oracle, max_iterations=30)
    if optimum is None:
        assert found is None
    elif found is not None:
        assert found.violations() == []
        worse = (
            optimum - found.objective() if oracle.sense == "max" else found.objective() - optimum
        )
        assert worse >= -1e-9


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
def test_finds_the_optimum_of_small_problems(family, formulation):
    jobs = [(1, 2, 1, 9), (1, 1, 2, 5), (2, 1, 1, 7), (1, 1, 1, 3)]
    instance = make(family, jobs, [2, 1], 7)
    oracle, prices = priced(instance, formulation)
    found = searched(oracle, prices=prices, max_iterations=300)
    assert found.objective() == pytest.approx(brute_force(instance, formulation))


def test_a_large_instance_is_within_a_fifth_of_the_bound_at_once():
    """On 100 jobs of which few fit, which order they are inserted in makes the difference."""
    oracle, prices = priced(read("tests/data/instances/oasis-t100-i100-h50-s0.json"))
    found = searched(oracle, prices=prices)
    assert found.objective() > 1384 / 1.2


def test_starts_from_a_given_solution_and_keeps_its_placement():
    rng = np.random.default_rng(2)
    instance = random_instance("toymax", rng, jobs=20, servers=3, horizon=20)
    oracle, prices = priced(instance)
    good = searched(oracle, prices=prices, max_iterations=60)
    kept = searched(oracle, start=good, max_iterations=0)
    assert kept.assignments() == good.assignments()
    more = searched(oracle, prices=prices, start=good, max_iterations=60)
    assert more.objective() >= good.objective()


def test_only_who_gave_a_check_is_stopped_between_jobs_and_keeps_the_old_prices():
    oracle, prices = priced(
        random_instance("toymax", np.random.default_rng(2), jobs=5, servers=2, horizon=9)
    )
    with time_limit(-1.0):
        search = NeighbourhoodSearch(oracle, prices)
        with pytest.raises(OutOfTime):
            search.set_prices(0 * prices, check_time)
        search.construct()
        with pytest.raises(OutOfTime):
            NeighbourhoodSearch(oracle, prices, check=check_time)
    alike = searched(oracle, prices=prices, max_iterations=0)
    assert search.objective == pytest.approx(alike.objective())
