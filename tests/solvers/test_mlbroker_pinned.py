"""Data that may not leave its centre, where a quotient in floating point is a worker too few."""

import pytest

from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.families.mlbroker.slot import relocated
from tests.strategies.mlbroker import make

THIRD = 0.3333333333333333
HAIR = [  # capacity, data, workers: a hair more than whole, a whole number, a hair less
    (THIRD, 1.0, 4),
    (0.1, 0.30000000000000004, 4),
    (0.1, 0.3, 3),
    (THIRD, 0.9999999999999999, 3),
    (1e6 / 3, 1e6, 4),
]


def pinned(capacity, data, **job):
    """One job with pinned data in a dear centre and a little elsewhere, two slots."""
    job = {"P": capacity, "D": [[data, capacity / 2]] * 2, "B": 0.1, "c": 0.5, "m": 1, **job}
    given = make(2, 2, 0.5, [(2, 1, 3), (1, 0.5, 3)], [job]).to_dict()
    given["jobs"][0]["pinned_datacenters"] = ["r1"]
    return MlbrokerInstance.parse(given)


@pytest.mark.parametrize(("capacity", "data", "workers"), HAIR)
def test_workers_for_pinned_data_are_exact(capacity, data, workers):
    instance = pinned(capacity, data)
    assert instance.workers_pinned[0, 0].tolist() == [workers, 0]
    assert SlotData.at(instance, 1).pinned.tolist() == [[workers, 0]]
    best = solve(instance)
    assert best.status == "optimal"
    assert (best.solution.workers[0, :, 0] >= workers).all()
    assert solve(instance, "tree").objective == pytest.approx(best.objective)
    assert solve(instance, "milp").objective == pytest.approx(best.objective)


@pytest.mark.parametrize("algorithm", ["mlbroker", "mlbroker-tight", "oasis-style", "central"])
@pytest.mark.parametrize(("capacity", "data", "workers"), HAIR)
def test_algorithms_place_them(algorithm, capacity, data, workers):
    run = simulate(pinned(capacity, data), algorithm)
    assert not run.violations
    assert (run.solution.workers[0, :, 0] >= workers).all()


def test_the_local_search_leaves_them():
    """A worker that a hair of data needs costs twice what it would elsewhere."""
    slot = SlotData.at(pinned(THIRD, 1.0, B=0, c=0), 1)
    found = relocated(slot, 0.0 * slot.data, [[4, 1]], [1], respond=False)
    assert found.workers[0, 0] == 4
