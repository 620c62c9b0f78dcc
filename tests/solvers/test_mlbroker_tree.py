"""mlbroker's ``auto`` and its tree; data that may not leave its centre, by a hair."""

import math

import numpy as np
import pytest

from hindsched.instances.mlbroker.generator import GENERATOR, generate
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.families.mlbroker import nodes
from hindsched.solvers.families.mlbroker.methods import lagrangian_certificate
from hindsched.solvers.families.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.oracles.decisions import Feature
from hindsched.solvers.tree.node_program import Split
from tests.strategies.mlbroker import make


def small(ending):
    return next(item for item in GENERATOR.suites["small"]() if item.name.endswith(ending))


def node(instance, decisions=(), cutoff=math.inf):
    """A node's bounds, program and splits."""
    oracle = MlbrokerOracle(instance, "tight")
    made = nodes.TierNodes(oracle, 0.0)
    prices = lagrangian_certificate(instance, iterations=10, oracle=oracle).prices
    return made, made.bound(decisions, prices, cutoff, lambda: None)


@pytest.mark.parametrize("seed", range(8))
def test_sides_are_never_worth_less_than_their_node(seed):
    """Whatever is decided, a node's bound rises, and one side of every split has the optimum."""
    draws = np.random.default_rng(seed)
    instance = generate("small", seed, jobs=3, horizon=3)
    optimum = solve(instance, "milp").objective
    made, root = node(instance)
    assert root.bound <= optimum + 1e-6 * optimum
    for _ in range(6):
        job, r = int(draws.integers(len(instance.jobs))), int(draws.integers(3))
        record = instance.jobs[job]
        t = int(draws.integers(record.arrival - 1, record.departure))
        name = (WORKERS, PS, TIER)[int(draws.integers(3))]
        split = Split(job, Feature(name, (r, t)), int(draws.integers(2)), 0, 0.0, 1.0)
        if name == TIER:
            k = int(draws.integers(len(instance.resources)))
            split = Split(len(instance.jobs), Feature(TIER, (r, k, t)), 0, 0, 0.0, 1.0)
        sides = [made.bound((side,), root.prices, math.inf, lambda: None) for side in split.sides]
        assert min(side.bound for side in sides) <= optimum + 1e-6 * optimum
        assert all(side.bound >= root.bound - 1e-6 * optimum for side in sides)


@pytest.mark.parametrize(
    ("ending", "most_leaves"), [("r3-t4-j5-s1", 5), ("r3-t3-j4-s0", 150), ("r3-t4-j4-s1", 80)]
)
def test_trees_of_the_suite_prove_the_optimum(ending, most_leaves):
    """A centre that a job holds without a use is split, too: else the first would not end."""
    instance = small(ending)
    found = solve(instance, "tree", time_limit=60)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(solve(instance, "milp").objective)
    assert found.certificate.num_leaves <= most_leaves


@pytest.fixture
def torn():
    """An instance whose prices alone do not close the gap."""
    return small("r3-t3-j4-s0")


def test_an_optimum_of_the_program_is_certified_by_a_tree(torn):
    found = solve(torn, work_limit=6000)
    assert found.method == "bound+search+milp"
    assert found.status == "optimal"
    assert found.proof == "certificate"
    assert found.certificate.num_leaves > 1
    assert found.certified_bound == found.certificate.bound


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
