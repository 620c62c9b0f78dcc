"""Trees in the kernel: leaves by the package's restricted oracles, covers, known optima."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hindsched
from hindsched.kernel import trees
from hindsched.kernel.exact import Interval, point
from hindsched.kernel.reading import RefusedFile, load
from hindsched.kernel.trees import NEVER
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.file import certify_tree
from hindsched.solvers.oracles.decisions import COMPLETES, BranchDecision, Feature
from tests.kernel.agreement import KERNELS, bound_of, checked, kernel_bound
from tests.strategies.batchsched import instance as batchsched

DATA = Path(__file__).parent / "data"
KNOWN = Path(hindsched.__file__).parent / "instances" / "known"
OPTIMA = {
    "oasis-t10-i10-h5-s1": 250.338,
    "oasis-t10-i10-h25-s0": 182.359,
    "batchsched-ps-j5-s200": 243,
    "batchsched-rar-j5-s200": 251,
    "astraea-j5-s40": 347.643944,
}


@pytest.mark.parametrize("name", sorted(OPTIMA))
def test_known_optima_are_proven(name):
    instance, _ = load(str(KNOWN / f"{name}.json"))
    family = KERNELS[instance["family"]]
    solution, _ = load(str(DATA / f"{name}.solution.json.gz"))
    certificate, _ = load(str(DATA / f"{name}.certificate.json.gz"))
    verdict = checked(family, instance, solution)
    proven = bound_of(family, instance, certificate)
    assert not verdict.violations
    sign = 1 if family.Problem.sense == "max" else -1
    gap = sign * (proven.high - verdict.objective.low)
    assert gap + Fraction(1, 10**12) >= 0
    assert gap <= verdict.objective.low / 10**6
    assert float(verdict.objective.low) == pytest.approx(OPTIMA[name], abs=1e-3)


def leaf(*decisions, bound=5, prices=None):
    return {"decisions": list(decisions), "bound": bound, "prices": prices or {}}


def decision(k, upper, of="completion", job="j", **axes):
    return {"job": job, "of": of, **axes, "at_most" if upper else "at_least": k}


def prove(*leaves, found=lambda prices, limits: point(5), sense="max"):
    data = {"kind": "tree", "sense": sense, "prices": list(leaves)}
    features = {"completion": (), "workers": [("server", {"a", "b"})]}

    def price(prices):
        decided = {}

        def respond(position, limits):
            decided["jk"[position]] = limits
            return found(prices, decided) if position else point(0)

        return point(0), respond

    return trees.certificate_bound(data, price, features, ["j", "k"])


LOW, HIGH = decision(3, True), decision(4, False)


def test_the_worst_leaf_is_the_bound_and_limits_are_intersected():
    seen = []

    def found(prices, limits):
        seen.append(limits)
        return point(prices["value"])

    deeper = decision(2, True), decision(3, False)
    leaves = (
        leaf(LOW, deeper[0], bound=7, prices={"value": 7}),
        leaf(LOW, deeper[1], bound=9, prices={"value": 8}),
        leaf(HIGH, bound=6, prices={"value": 6}),
    )
    assert prove(*leaves, found=found) == point(8)
    key = ("completion",)
    assert [limits["j"][key] for limits in seen] == [(0, 2), (3, 3), (4, NEVER)]
    least = [leaf(LOW, bound=1, prices={"value": 7}), leaf(HIGH, bound=1, prices={"value": 6})]
    assert prove(*least, found=found, sense="min") == point(6)


@pytest.mark.parametrize(
    ("says", "leaves"),
    [
        ("other side", [leaf(LOW)]),
        ("other side", [leaf(LOW, decision(1, True, job="k")), leaf(HIGH)]),
        ("split differently", [leaf(LOW), leaf(decision(5, False))]),
        ("split differently", [leaf(LOW), leaf(decision(4, False, job="k"))]),
        ("split differently", [leaf(LOW), leaf(decision(4, False, of="workers", server="a"))]),
        ("holds other leaves", [leaf(LOW), leaf(HIGH), leaf()]),
        ("holds other leaves", [leaf(LOW), leaf(LOW), leaf(HIGH)]),
        ("unknown job", [leaf(decision(3, True, job="x"))]),
        ("unknown server", [leaf(decision(3, True, of="workers", server="x"))]),
        ("whole number", [leaf(LOW), leaf(decision(0, False))]),
        ("whole number", [leaf(decision(Fraction(7, 2), True))]),
        ("keys", [leaf({"job": "j", "of": "completion", "at_most": 3, "at_least": 4})]),
        ("keys", [leaf(decision(3, True, of="workers"))]),
        ("more than what is proven", [leaf(LOW, bound=4), leaf(HIGH)]),
        ("every job has a schedule", [leaf(LOW, bound=None), leaf(HIGH)]),
    ],
)
def test_trees_that_prove_nothing_are_refused(says, leaves):
    with pytest.raises(RefusedFile, match=says):
        prove(*leaves)


def test_an_empty_list_and_empty_leaves_are_refused():
    for leaves in ([], [leaf(LOW, bound=None), leaf(HIGH, bound=None)]):
        with pytest.raises((RefusedFile, LookupError)):
            prove(*leaves, found=lambda prices, limits: None)
    nothing = point(0), lambda *_: None
    with pytest.raises(RefusedFile, match="infeasible"):
        trees.certificate_bound({"kind": "lagrangian", "prices": {}}, lambda _: nothing, {}, ["j"])


def test_a_leaf_whose_decisions_contradict_each_other_has_no_schedule():
    """Whatever the family answers: it is not asked."""
    high, low = decision(7, False), decision(3, True)
    other = decision(6, True), decision(4, False)
    leaves = [leaf(high, low, bound=None), leaf(high, other[1]), leaf(other[0])]
    assert prove(*leaves) == point(5)
    with pytest.raises(RefusedFile, match="every job has a schedule"):
        prove(leaf(high, low, bound=None), leaf(high, other[1], bound=None), leaf(other[0]))


def test_a_caterpillar_thousands_deep_is_linear():
    depth = 600
    sides = [decision(k, True, of="workers", server="a") for k in range(depth, 0, -1)]
    others = [decision(side["at_most"] + 1, False, of="workers", server="a") for side in sides]
    leaves = [leaf(*sides[:i], others[i]) for i in range(depth)] + [leaf(*sides)]
    assert prove(*leaves) == Interval(Fraction(5), Fraction(5))
    with pytest.raises(RefusedFile, match="other side"):
        prove(*leaves[:-1])


def test_admitted_is_the_split_at_never():
    inside, outside = {"job": "j", "admitted": True}, {"job": "j", "admitted": False}
    assert prove(leaf(inside), leaf(outside)) == point(5)
    limits = trees._decision(outside, {}, {"j"}, "x")
    assert limits == ("j", ("completion",), NEVER, NEVER)
    assert trees.keeps_outside({("completion",): (4, NEVER), ("workers", "a"): (0, 3)})
    assert not trees.keeps_outside({("completion",): (0, NEVER - 1)})
    assert not trees.keeps_outside({("workers", "a"): (1, NEVER)})


def test_a_job_that_must_run_slowly_may_still_end_behind_the_priced_slots():
    """Its slow mode ends after all slots that the package looks at, in a leaf that allows that."""
    job = {"arrival": 1, "weight": 1, "epochs": 1, "chunks": 6, "minibatches": 1}
    job |= {"minibatch_slots": [1], "gradient_mb": 0, "reduce_slots": 0}
    one = batchsched("ring-allreduce", [(6, 6)], [(1, 1)], [], [job])
    oracle = build_oracle(one, rows="servers")
    workers = BranchDecision.at_most(0, Feature("workers"), 1)
    ends = BranchDecision.at_most(0, COMPLETES, 20)
    assert oracle.slots + 2 < 6  # one worker needs 6 slots, six workers 1
    later = BranchDecision.at_least(0, COMPLETES, 21)
    leaves = [(workers, ends), (workers, later)]
    leaves.append((BranchDecision.at_least(0, Feature("workers"), 2),))
    tree = certify_tree(oracle, [(leaf, np.zeros(oracle.rows.size)) for leaf in leaves])
    assert [leaf.bound is None for leaf in tree.leaves] == [False] * 3
    assert kernel_bound(one, tree.to_dict()) == point(2)
