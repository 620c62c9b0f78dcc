"""Tree certificates: what covers the root, what is recomputed, and every tampering caught."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.io import read
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import build_solution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import Subgradient
from hindsched.solvers.certificates.certificate import KEYS
from hindsched.solvers.certificates.explain import explain
from hindsched.solvers.certificates.file import certify_tree, verify_certificate
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER, BranchDecision, Feature
from hindsched.solvers.oracles.restricted import RestrictedOracle
from tests.toy_family import ToyOracle, make

ROOT = Path(__file__).parents[2]
PATH = ROOT / "tests/data/instances/oasis-t10-i10-h25-s0.json"
OPTIMUM = 182.358776424672


@pytest.fixture(scope="module")
def instance():
    return read(PATH)


@pytest.fixture(scope="module")
def tree(instance):
    """Four leaves: j1 out, j1 late, j1 early and j2 so or so; one more is empty."""
    oracle = build_oracle(instance)
    leaves = (
        (BranchDecision.at_least(0, COMPLETES, NEVER),),
        (BranchDecision.at_most(0, COMPLETES, NEVER - 1), BranchDecision.at_least(0, COMPLETES, 4)),
        (
            BranchDecision.at_most(0, COMPLETES, NEVER - 1),
            BranchDecision.at_most(0, COMPLETES, 3),
            BranchDecision.at_most(1, Feature("workers", (0, 4)), 1),
        ),
        (
            BranchDecision.at_most(0, COMPLETES, NEVER - 1),
            BranchDecision.at_most(0, COMPLETES, 3),
            BranchDecision.at_least(1, Feature("workers", (0, 4)), 2),
            BranchDecision.at_most(0, COMPLETES, 0),
        ),
        (
            BranchDecision.at_most(0, COMPLETES, NEVER - 1),
            BranchDecision.at_most(0, COMPLETES, 3),
            BranchDecision.at_least(1, Feature("workers", (0, 4)), 2),
            BranchDecision.at_least(0, COMPLETES, 1),
        ),
    )
    priced = []
    for decisions in leaves:
        search = Subgradient(RestrictedOracle(oracle, decisions))
        while search.iterations < 60 and not search.is_infeasible:
            search.step(OPTIMUM)
        priced.append((decisions, search.best.prices))
    return certify_tree(oracle, priced)


def test_the_worst_leaf_bounds_the_optimum(instance, tree):
    bounds = [leaf.bound for leaf in tree.leaves]
    assert bounds[3] is None
    assert tree.bound == max(bound for bound in bounds if bound is not None)
    # Some leaf lies below the optimum, so that only all of them together are a bound.
    assert min(bound for bound in bounds if bound is not None) < OPTIMUM <= tree.bound


def test_file_form_and_round_trip(instance, tree):
    data = json.loads(json.dumps(tree.to_dict()))
    assert tuple(data) == KEYS
    assert data["kind"] == "tree"
    assert [list(leaf) for leaf in data["prices"]] == [["decisions", "bound", "prices"]] * 5
    assert data["prices"][0]["decisions"] == [{"job": "j1", "admitted": False}]
    assert data["prices"][2]["decisions"][1:] == [
        {"job": "j1", "of": "completion", "at_most": 3},
        {"job": "j2", "of": "workers", "group": "w1", "slot": 5, "at_most": 1},
    ]
    assert data["prices"][3] == {**data["prices"][3], "bound": None, "prices": {}}
    assert data["layout"] == "groups"
    verified = verify_certificate(instance, data)
    assert verified.certificate.layout == "groups"
    assert verified.bound == tree.bound == verified.claimed
    assert verified.certificate.to_dict() == tree.to_dict()
    data.pop("layout")  # an older file
    assert verify_certificate(instance, data).certificate.to_dict() == tree.to_dict()


def raise_price(leaf):
    leaf["prices"]["worker_capacity"][0]["price"] *= 2


TAMPERINGS = {
    "bound": (lambda d: d.update(bound=d["bound"] * 0.99), "the leaves prove"),
    "price": (lambda d: raise_price(d["prices"][1]), "the prices prove"),
    "price_of_the_best_leaf": (lambda d: raise_price(d["prices"][0]), "the prices prove"),
    "leaf_bound": (lambda d: d["prices"][0].update(bound=1.0), "the prices prove"),
    "called_empty": (lambda d: d["prices"][0].update(bound=None), "every job has a schedule"),
    "empty_with_prices": (
        lambda d: d["prices"][3].update(prices=d["prices"][0]["prices"]),
        "has no prices",
    ),
    "missing_first": (lambda d: d["prices"].pop(0), "no leaf has the other side"),
    "missing_middle": (lambda d: d["prices"].pop(2), "no leaf has the other side"),
    "missing_last": (lambda d: d["prices"].pop(), "no leaf has the other side"),
    "twice": (lambda d: d["prices"].append(d["prices"][0]), "must not hold other leaves"),
    "root_too": (
        lambda d: d["prices"].append({**d["prices"][0], "decisions": []}),
        "must not hold other leaves",
    ),
    "gap": (
        lambda d: d["prices"][1]["decisions"][1].update(at_least=5),
        "must split what prices[1]'s splits",
    ),
    "overlap": (
        lambda d: d["prices"][1]["decisions"][1].update(at_least=3),
        "must split what prices[1]'s splits",
    ),
    "another_job": (
        lambda d: d["prices"][2]["decisions"][2].update(job="j3"),
        "must split what prices[2]'s splits",
    ),
    "same_side": (
        lambda d: d["prices"][0]["decisions"][0].update(admitted=True),
        "no leaf has the other side",
    ),
    "one_decision_more": (
        lambda d: d["prices"][0]["decisions"].append(
            {"job": "j2", "of": "completion", "at_most": 3}
        ),
        "no leaf has the other side",
    ),
    "one_decision_less": (
        lambda d: d["prices"][2]["decisions"].pop(),
        "must not hold other leaves",
    ),
    "order": (lambda d: d["prices"][2]["decisions"].reverse(), "must split what"),
    "unknown_feature": (
        lambda d: d["prices"][1]["decisions"][1].update(of="luck"),
        "must be one of completion",
    ),
    "no_leaves": (lambda d: d.update(prices=[]), "must be the list of leaves"),
    "hash": (lambda d: d.update(instance_sha256="0" * 64), "must be"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_caught_in_one_line(instance, tree, name):
    data = json.loads(json.dumps(tree.to_dict()))
    change, complaint = TAMPERINGS[name]
    change(data)
    with pytest.raises(InputError, match=re.escape(complaint)) as caught:
        verify_certificate(instance, data)
    assert "\n" not in str(caught.value)


def test_a_tree_and_leaves_that_state_less_than_they_prove_are_true(instance, tree):
    data = json.loads(json.dumps(tree.to_dict()))
    data["bound"] *= 1.01
    data["prices"][0]["bound"] *= 1.02
    assert data["prices"][3]["bound"] is None
    data["prices"][3]["bound"] = 1e9  # no solution is there: any bound holds
    found = verify_certificate(instance, data)
    assert found.claims_less
    assert found.certificate.to_dict() == tree.to_dict()


def test_an_inexact_oracle_proves_nothing(instance):
    oracle = build_oracle(instance)
    oracle.exact = False
    with pytest.raises(InputError, match="not exact"):
        certify_tree(oracle, [((), np.zeros(oracle.rows.size))])


def test_nothing_but_empty_leaves_is_no_bound():
    # The job needs two slots and must be served; two slots there are, from slot 1 on.
    toy = ToyOracle(make("toymin", [(2, 2, 1, 1)], [1], 2), "modes", "servers")
    sides = (BranchDecision.at_most(0, COMPLETES, 1), BranchDecision.at_least(0, COMPLETES, 2))
    with pytest.raises(SolveFailed, match="no leaf has a schedule"):
        certify_tree(toy, [((side,), np.zeros(toy.rows.size)) for side in sides])


def test_a_tree_is_explained_by_prices_and_says_so(instance, tree):
    solution = build_solution(instance, {})
    told = explain(solution, tree)
    assert told.note is not None
    assert "\n" not in told.note
    assert "tree of 5 leaves" in told.note
    assert told.total() == pytest.approx(told.gap, abs=1e-9 * told.bound)
    assert told.bound >= OPTIMUM
    assert told.to_dict()["note"] == told.note


def test_the_example_of_the_documentation_is_true():
    page = (ROOT / "docs/reference/certificates.md").read_text()
    blocks = [json.loads(text) for text in re.findall(r"```json\n(\{.*?)```", page, re.DOTALL)]
    (instance,) = (data for data in blocks if data.get("name") == "no-halves")
    (certificate,) = (data for data in blocks if data.get("kind") == "tree")
    instance = OasisInstance.parse(instance)
    assert verify_certificate(instance, certificate).bound == pytest.approx(10.0, abs=1e-7)
    oracle = build_oracle(instance)
    gpu = np.zeros(oracle.rows.size)
    for price, bound in ((15.0, 16.0), (14.0, 16.2), (16.0, 16.4)):
        gpu[0] = price
        assert oracle.bound(gpu) == pytest.approx(bound, abs=1e-6)
