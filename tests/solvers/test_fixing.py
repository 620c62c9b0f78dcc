"""Fixing by prices: what is cut off holds nothing better than the incumbent."""

import numpy as np
from hypothesis import given

from hindsched.solvers.bounds.fixing import fixings
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree.branch_and_bound import BranchAndBound
from hindsched.solvers.tree.node_program import NodeProgram
from tests.brute_force import oasis as oasis_brute_force
from tests.strategies.oasis import oasis_instances


def root_of(instance):
    """Program, prices and answers of a root, and its bound."""
    oracle = build_oracle(instance, "standard", rows="servers")
    tree = BranchAndBound(oracle, np.zeros(oracle.rows.size), gap=1e-6)
    program = NodeProgram(oracle, tree.root.bound, tree._interrupted)
    return oracle, program, program.bound((), tree.root.prices, None, lambda: None)


def test_the_other_side_of_every_fixing_is_bounded_by_what_it_says():
    decided = []

    @given(oasis_instances())
    def check(instance):
        if not instance.jobs:
            return
        oracle, program, found = root_of(instance)
        optimum = oasis_brute_force.optimum(instance).value
        bars = {optimum + 1e-6, (optimum + found.bound) / 2, found.bound - 1e-9}
        for bar in bars:
            closed = list(
                fixings(
                    oracle, (), found.prices, found.answers, program.completions,
                    lambda bound, bar=bar: bound <= bar,
                )
            )  # fmt: skip
            for decision, bound in closed:
                other = RestrictedOracle(oracle, (decision.other,))
                assert other.bound(found.prices) == bound <= bar
                assert {decision.split} == {decision.other.split}
            decided.extend(closed)

    check()
    assert len(decided) > 20
