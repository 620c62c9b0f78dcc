"""Trees of gang, edgecloud and mlbroker close at the brute-force optimum, and the kernel agrees."""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.catalogue import suite
from hindsched.instances.generators.registry import generate
from hindsched.kernel import edgecloud as edgecloud_kernel
from hindsched.kernel import gang as gang_kernel
from hindsched.kernel import mlbroker as mlbroker_kernel
from hindsched.kernel import trees
from hindsched.kernel.reading import Refused
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.families.gang.replay import incumbents
from hindsched.solvers.families.mlbroker.methods import find_schedule
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.tree.branch_and_bound import BranchAndBound
from hindsched.solvers.tree.method import node_program, tree_rows
from tests.brute_force import edgecloud as edgecloud_brute_force
from tests.brute_force import gang as gang_brute_force
from tests.brute_force import mlbroker as mlbroker_brute_force
from tests.kernel.agreement import (
    exact,
    fast_leaf,
    kernel_leaf,
    random_decisions,
    random_prices,
    silent,
)
from tests.strategies.edgecloud import tiny_instances as edgecloud_instances
from tests.strategies.gang import tiny_instances as gang_instances
from tests.strategies.mlbroker import instances as mlbroker_instances

EXAMPLES = settings(
    deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
MOST_NODES = 400


def grow(oracle, incumbent=None, nodes=MOST_NODES):
    """A tree from prices 0, of at most so many nodes; no clock decides anything."""
    tree = BranchAndBound(
        oracle, np.zeros(oracle.rows.size), gap=1e-6, incumbent=incumbent,
        program=node_program(oracle.instance.family),
    )  # fmt: skip
    tree.run(lambda: None if tree.nodes < nodes else 0.0)
    return tree


def check_closed(tree, optimum, kernel, tolerance=1e-9):
    """Incumbent and bound meet at the optimum; the file says so to both checkers."""
    certificate = tree.certificate()
    assert tree.is_closed, f"{tree.nodes} nodes"
    assert tree.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert not tree.incumbent.violations()
    assert certificate.bound == pytest.approx(optimum, rel=1.1e-6, abs=1e-6)
    instance, data = tree.oracle.instance, certificate.to_dict()
    if tree.oracle.step is not None or not certificate.num_leaves:
        again = verify_certificate(instance, data).bound
        assert again == pytest.approx(certificate.bound, rel=1e-12)
    proven = kernel.bound(exact(instance.to_dict()), exact(data), silent)
    assert certificate.bound <= float(proven.high) * (1 + 1e-12) + 1e-12
    assert proven.low <= optimum + tolerance
    return certificate.num_leaves or 1


@pytest.mark.parametrize("goal", ["completion", "deadlines"])
def test_gang_closes_at_the_optimum(goal):
    formulation = "non-preemptive"
    formulation += "" if goal == "completion" else f",{goal}"
    leaves = []

    @settings(EXAMPLES, max_examples=60)
    @given(instance=gang_instances(most_jobs=4).map(lambda one: one.with_fields(placement="pool")))
    def check(instance):
        optimum = float(gang_brute_force.optimum(instance.to_dict(), "non-preemptive", goal))
        oracle = build_oracle(instance, formulation)
        first = min(incumbents(instance, formulation), key=lambda one: one.objective())
        leaves.append(check_closed(grow(oracle, first), optimum, gang_kernel))

    check()
    assert max(leaves) > 1 or goal == "deadlines"


@pytest.mark.parametrize(
    "formulation", ["preemptive", "elastic,deadlines", "non-preemptive,makespan"]
)
def test_gang_refuses_trees_of_jobs_that_pause_and_of_makespans(formulation):
    instance = generate("gang", seed=1, jobs=2)
    with pytest.raises(InputError, match="cannot restrict"):
        solve(instance, "tree", formulation=formulation, time_limit=1.0)


@pytest.mark.parametrize("storage", [False, True])
def test_edgecloud_closes_at_the_optimum(storage):
    """Also where no leaf may round its bound up, which leaves more to the branching."""
    leaves = []

    @settings(EXAMPLES, max_examples=40)
    @given(instance=edgecloud_instances(clouds=(None, 0), storage=storage))
    def check(instance):
        optimum = edgecloud_brute_force.optimum(instance)
        if optimum == np.inf:
            return
        for step in (Fraction(1), None):
            oracle = build_oracle(instance)
            oracle.step = step
            tree = grow(oracle)
            if tree.is_closed:  # groups do not tell who works when, so that some stay open
                leaves.append(check_closed(tree, optimum, edgecloud_kernel))

    check()
    assert len(leaves) > 20


def test_mlbroker_closes_at_the_optimum():
    leaves = []

    @settings(EXAMPLES, max_examples=60)
    @given(instance=mlbroker_instances())
    def check(instance):
        optimum = mlbroker_brute_force.optimum(instance.to_dict())
        tree = grow(build_oracle(instance), find_schedule(instance, "tight"))
        # The brute force's transport is scipy's, which leaves 1e-9 of the data behind.
        leaves.append(check_closed(tree, optimum, mlbroker_kernel, tolerance=1e-6))

    check()
    assert max(leaves) > 1


def test_placements_are_split_where_many_small_fees_are_open_together():
    """Fees alone take some 1,600 nodes, which is more than the kernel reads in time."""
    (instance,) = (one for one in suite("mlbroker", "small") if "r3-t4-j4-s0" in one.name)
    best = solve(instance, "milp").solution
    tree = grow(build_oracle(instance), best, nodes=900)
    assert tree.is_closed
    assert tree.certificate().num_leaves < 400


@pytest.mark.parametrize(
    ("family", "instances", "rows"),
    [
        ("gang", gang_instances(), "intervals"),
        ("edgecloud", edgecloud_instances(storage=True), "groups"),
        ("mlbroker", mlbroker_instances(), "servers"),
    ],
)
def test_leaves_are_the_kernels_on_the_safe_side(family, instances, rows, monkeypatch):
    """Restricted best responses at random prices and decisions: the two paths agree, unrounded."""
    monkeypatch.setattr(trees, "ceiling", lambda number: number)
    empty = []

    @settings(EXAMPLES, max_examples=60)
    @given(instance=instances, seed=st.integers(0, 2**32))
    def check(instance, seed):
        if rows not in tree_rows(instance, instance.formulations[0]):
            return
        oracle = build_oracle(instance, rows=rows)
        oracle.step = None
        prices, decisions = random_prices(oracle, seed), random_decisions(oracle, seed)
        fast = fast_leaf(oracle, decisions, prices)
        found = kernel_leaf(oracle, rows, decisions, prices)
        empty.append(found is None)
        assert (fast is None) == (found is None)
        if fast is not None:
            size = 1 + float(np.abs(oracle.price_terms(prices)).sum()) + abs(fast)
            size += 100 * float(prices.sum()) * (family == "mlbroker")
            few = family == "edgecloud" and any((instance.cloud.workers or {}).values())
            assert fast <= found.high
            assert few or float(found.low) - fast <= 3e-9 * size

    check()
    assert not all(empty)
    assert any(empty)


@pytest.fixture(scope="module", params=["gang", "edgecloud", "mlbroker"])
def open_tree(request):
    """A tree of some leaves on an instance of suite ``small``, closed or not."""
    instance = suite(request.param, "small")[2]
    tree = grow(build_oracle(instance), nodes=9)
    certificate = tree.certificate()
    assert certificate.num_leaves >= 2
    return instance, certificate.to_dict()


def first_row(data):
    """The first price of the leaf with most prices."""
    leaf = max(data["prices"], key=lambda leaf: sum(map(len, leaf["prices"].values())))
    return next(rows[0] for rows in leaf["prices"].values() if rows)


TAMPERINGS = {
    "bound": lambda d: d.update(bound=d["bound"] * 1.01),
    "leaf": lambda d: d["prices"][0].update(bound=d["prices"][0]["bound"] * 1.01),
    "called empty": lambda d: d["prices"][0].update(bound=None, prices={}),
    "missing": lambda d: d["prices"].pop(),
    "twice": lambda d: d["prices"].append(copy.deepcopy(d["prices"][0])),
    "another split": lambda d: d["prices"][0]["decisions"][0].update(at_most=77),
    "unknown feature": lambda d: d["prices"][0]["decisions"][0].update(of="luck"),
    "unknown job": lambda d: d["prices"][0]["decisions"][0].update(job="nobody"),
    "unknown key": lambda d: first_row(d).update(note=1),
    "negative price": lambda d: first_row(d).update(price=-1.0),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampered_trees_are_refused_by_both(open_tree, name):
    instance, data = open_tree
    kernel = {"gang": gang_kernel, "edgecloud": edgecloud_kernel, "mlbroker": mlbroker_kernel}
    proven = kernel[instance.family].bound(exact(instance.to_dict()), exact(data), silent)
    assert verify_certificate(instance, data).bound <= float(proven.high) * (1 + 1e-12)
    changed = copy.deepcopy(data)
    TAMPERINGS[name](changed)
    with pytest.raises(InputError):
        verify_certificate(instance, changed)
    if name == "bound":
        changed["prices"][0]["bound"] = 1e6  # the kernel's caller checks the whole's
    with pytest.raises((Refused, LookupError)):
        kernel[instance.family].bound(exact(instance.to_dict()), exact(changed), silent)
