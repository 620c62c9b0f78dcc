"""Trees of gang, edgecloud and mlbroker close at the brute-force optimum, and the kernel agrees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from hindsched.errors import InputError
from hindsched.instances.generators.registry import generate
from hindsched.kernel import gang as gang_kernel
from hindsched.solvers.api import solve
from hindsched.solvers.bounds.branch_and_bound import BranchAndBound
from hindsched.solvers.certificate_file import verify_certificate
from hindsched.solvers.methods.gang.incumbents import incumbents
from hindsched.solvers.pricing.base import build_oracle
from hindsched.solvers.pricing.gang.oracle import tree_rows as gang_rows
from tests.brute_force import gang as gang_brute_force
from tests.kernel.agreement import exact, silent
from tests.strategies.gang import tiny_instances as gang_instances

EXAMPLES = settings(
    deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
MOST_NODES = 400


def grow(oracle, incumbent=None):
    """A tree from prices 0, of at most so many nodes; no clock decides anything."""
    tree = BranchAndBound(oracle, np.zeros(oracle.rows.size), gap=1e-6, incumbent=incumbent)
    tree.run(lambda: None if tree.nodes < MOST_NODES else 0.0)
    return tree


def check_closed(tree, optimum, kernel):
    """Incumbent and bound meet at the optimum; the file says so to both checkers."""
    certificate = tree.certificate()
    assert tree.is_closed, f"{tree.nodes} nodes"
    assert tree.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert not tree.incumbent.violations()
    assert certificate.bound == pytest.approx(optimum, rel=1.1e-6, abs=1e-6)
    instance, data = tree.oracle.instance, certificate.to_dict()
    assert verify_certificate(instance, data).bound == pytest.approx(certificate.bound, rel=1e-12)
    proven = kernel.bound(exact(instance.to_dict()), exact(data), silent)
    assert certificate.bound <= float(proven.high) * (1 + 1e-12) + 1e-12
    assert proven.low <= optimum + 1e-9
    return certificate.num_leaves or 1


@pytest.mark.parametrize("goal", ["completion", "deadlines"])
def test_gang_closes_at_the_optimum(goal):
    formulation = "non-preemptive"
    formulation += "" if goal == "completion" else f",{goal}"
    leaves = []

    @settings(EXAMPLES, max_examples=60)
    @given(instance=gang_instances(most_jobs=4))
    def check(instance):
        optimum = float(gang_brute_force.optimum(instance.to_dict(), "non-preemptive", goal))
        oracle = build_oracle(instance, formulation, rows=gang_rows(instance, formulation)[-1])
        first = min(incumbents(instance, formulation), key=lambda one: one.objective())
        leaves.append(check_closed(grow(oracle, first), optimum, gang_kernel))

    check()
    assert max(leaves) > 1


@pytest.mark.parametrize(
    "formulation", ["preemptive", "elastic,deadlines", "non-preemptive,makespan"]
)
def test_gang_refuses_trees_of_jobs_that_pause_and_of_makespans(formulation):
    instance = generate("gang", seed=1, jobs=2)
    with pytest.raises(InputError, match="cannot restrict"):
        solve(instance, "tree", formulation=formulation, time_limit=1.0)
