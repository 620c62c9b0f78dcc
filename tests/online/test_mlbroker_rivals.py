"""mlbroker's rivals: slots worked by hand, and laws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given

from hindsched.online.simulator import simulate
from tests.strategies.mlbroker import instances, make, two_jobs


@pytest.mark.parametrize("name", ["local", "central", "oasis-style"])
def test_k7_nobody_alone_earns_the_discount(name):
    assert simulate(two_jobs(0.5), name).objective == pytest.approx(64)
    assert simulate(two_jobs(1), name).objective == pytest.approx(64)


@pytest.mark.parametrize("name", ["mlbroker-tight", "mlbroker-cheaper"])
def test_k7_together_they_do(name):
    assert simulate(two_jobs(0.5), name).objective == pytest.approx(62)
    assert simulate(two_jobs(1), name).objective == pytest.approx(64)


def three_centers():
    """One job, 10 GB at r1 and 3 GB at r2, workers of 4 GB; r3 is cheap but far."""
    job = {"n": 2, "m": 1, "P": 4, "B": 1, "c": 1, "D": [[10, 3, 0]]}
    return make(3, 1, 0.5, [(3, 3, 0), (4, 4, 0), (2, 2, 0)], [job])


def test_local_by_hand():
    """3 workers at r1, 1 at r2, the PS anywhere: 18 + 8, the PS, its launch and exchanges."""
    result = simulate(three_centers(), "local", seed=4)
    assert result.solution.workers[0, 0].tolist() == [3, 1, 0]
    ps = int(result.solution.ps[0, 0])
    price, launches = (3, 4, 2)[ps], 2 + (ps == 2)
    remote = {0: 1, 1: 3, 2: 4}[ps]
    assert result.objective == pytest.approx(18 + 8 + price + launches + 0.5 * remote)
    places = {int(simulate(three_centers(), "local", seed=s).solution.ps[0, 0]) for s in range(20)}
    assert places == {0, 1, 2}


def test_central_by_hand():
    """4 workers and the PS: r1 27 + 1.5, r2 36 + 5, r3 18 + 6.5, each and 1 to launch."""
    result = simulate(three_centers(), "central")
    assert result.solution.workers[0, 0].tolist() == [0, 0, 4]
    assert result.objective == pytest.approx(18 + 6.5 + 1)


def test_oasis_style_by_hand():
    """Best of all placements of 4 workers at full prices, by enumeration."""
    result = simulate(three_centers(), "oasis-style")
    best = min(
        simulated_cost(workers, ps)
        for workers in itertools.product(range(5), repeat=3)
        if sum(workers) == 4
        for ps in range(3)
    )
    assert result.objective == pytest.approx(best)


def simulated_cost(workers, ps):
    from hindsched.solutions.mlbroker.solution import MlbrokerSolution

    solution = MlbrokerSolution(three_centers(), np.array([[workers]]), np.array([[ps]]))
    return solution.objective() if solution.is_feasible() else math.inf


@given(instance=instances(centers=3, slots=3, jobs=3, kinds=2, pins=False))
def test_laws_of_the_rivals(instance):
    local = simulate(instance, "local").solution
    assert local.costs.by_cost["transfer"] == 0
    for index in range(len(instance.jobs)):
        assert len(set(local.ps[index][instance.alive[index]].tolist())) == 1
    central = simulate(instance, "central").solution
    assert central.costs.by_cost["communication"] == 0
    assert (central.workers.sum(axis=2) == instance.workers_needed)[instance.alive].all()
    # with full prices only, nobody does better against itself than its best response
    oasis = simulate(instance, "oasis-style").solution
    first = int(np.flatnonzero(instance.alive.any(axis=0))[0])
    assert full_price(instance, oasis, first) <= full_price(instance, central, first) + 1e-9


def full_price(instance, solution, slot):
    """Cost of a slot if the lower tier did not exist."""
    costs, w = solution.costs, instance.weights
    jobs = w[0] * costs.transfer + w[2] * costs.deployment + w[3] * costs.communication
    return float(jobs[:, slot].sum() + w[1] * (instance.unit_price * costs.used[slot]).sum())


def test_oasis_style_marginal():
    found = simulate(two_jobs(0.5), "oasis-style", settings={"prices": "marginal"})
    assert found.objective == pytest.approx(62)
