"""Certificates of trees hold no decision that their leaves could do without."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.instances.generators.registry import suites
from hindsched.solvers.bounds.trimming import trimmed
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import BranchDecision, Feature
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree.certificate import check_cover

DEEPEST = 4


def sides(depth, number=0):
    """Both sides of a split on the feature of a depth."""
    lower = BranchDecision.at_most(0, Feature("n", (depth,)), number)
    return lower, lower.other


@st.composite
def trees(draw, decisions=()):
    """Leaves of a random tree, those below any node next to each other; prices tell the depth."""
    depth = len(decisions)
    if depth == DEEPEST or draw(st.integers(0, 3)) == 0:
        return [(decisions, np.array([float(depth)]))]
    both = sides(depth, draw(st.integers(0, 2)))
    return [leaf for side in both for leaf in draw(trees((*decisions, side)))]


def depths(decisions):
    return {decision.feature.index[0] for decision in decisions}


@given(trees(), st.sets(st.integers(0, DEEPEST - 1)))
def test_only_needed_decisions_are_left(leaves, needed):
    def closes(decisions, prices):
        return {depth for depth in needed if depth < prices[0]} <= depths(decisions)

    found = trimmed(leaves, closes)
    check_cover([decisions for decisions, _ in found], "leaves")
    assert len(found) <= len(leaves)
    assert all(closes(*leaf) for leaf in found)
    assert all(depths(decisions) <= needed for decisions, _ in found)


def test_no_more_is_tried_than_allowed():
    leaves = [(decisions, np.zeros(1)) for decisions in product(*map(sides, range(DEEPEST)))]
    tried = []

    def closes(decisions, prices):
        tried.append(decisions)
        return True

    kept = trimmed(leaves, closes, most_trials=3)
    assert len(tried) == 3
    check_cover([decisions for decisions, _ in kept], "leaves")
    assert [decisions for decisions, _ in trimmed(leaves, closes)] == [()]


@pytest.mark.parametrize("name", ["oasis-small-t8-j8-h8-d4-s0", "oasis-small-t8-j8-h14-d4-s0"])
def test_every_decision_of_a_closed_tree_is_needed_on_both_sides(name):
    instance = next(item for item in suites("oasis")["small"]() if item.name == name)
    result = hs.solve(instance, "tree", work_limit=3000)
    tree = result.certificate
    assert result.proof == "certificate"
    oracle = build_oracle(instance, rows=tree.layout)
    needed = set()
    for leaf in tree.leaves:
        for depth in range(len(leaf.decisions)):
            others = leaf.decisions[:depth] + leaf.decisions[depth + 1 :]
            if RestrictedOracle(oracle, others).bound(leaf.prices) > tree.bound:
                needed.add(leaf.decisions[: depth + 1])
    assert needed == {
        leaf.decisions[: depth + 1] for leaf in tree.leaves for depth in range(len(leaf.decisions))
    }
