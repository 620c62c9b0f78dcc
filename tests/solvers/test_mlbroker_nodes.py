"""mlbroker's tree: its nodes' programs, its splits, and the optima that it proves."""

import math
from threading import Event

import numpy as np
import pytest

from hindsched.instances.mlbroker.generator import SUITES, generate
from hindsched.solvers.door.api import solve
from hindsched.solvers.families.mlbroker import nodes
from hindsched.solvers.families.mlbroker.bound import lagrangian_certificate
from hindsched.solvers.families.mlbroker.oracle import PS, TIER, WORKERS, MlbrokerOracle
from hindsched.solvers.oracles.decisions import Feature
from hindsched.solvers.tree.branching import Split


def small(ending):
    return next(one for one in SUITES["small"]() if one.name.endswith(ending))


def node(instance, decisions=(), cutoff=math.inf):
    """A node's bounds, program and splits."""
    oracle = MlbrokerOracle(instance, "tight")
    made = nodes.TierNodes(oracle, 0.0, Event())
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


def test_fees_that_are_paid_in_part_are_split_or_what_tightens_them():
    made, found = node(small("r3-t4-j4-s0"))
    splits = made.candidates(found.shares)
    assert {split.feature.name for split in splits} >= {TIER, WORKERS}
    balances = [split.balance for split in splits]
    assert balances == sorted(balances, reverse=True)


@pytest.mark.parametrize(
    ("ending", "most_leaves"),
    [("r3-t4-j5-s1", 5), ("r3-t3-j4-s0", 150), ("r3-t4-j4-s1", 80)],
)
def test_trees_of_the_suite_prove_the_optimum(ending, most_leaves):
    """A centre that a job holds without a use is split, too: else the first would not end."""
    instance = small(ending)
    found = solve(instance, "tree", time_limit=60)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(solve(instance, "milp").objective)
    assert found.certificate.num_leaves <= most_leaves
