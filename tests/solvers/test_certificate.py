import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.io import parse_instance, read, write_json
from hindsched.solutions.base import build_solution, write_solution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.certificates.certificate import (
    KEYS,
    certify,
)
from hindsched.solvers.certificates.explain import explain
from hindsched.solvers.certificates.file import (
    read_certificate,
    verify_certificate,
    write_certificate,
)
from hindsched.solvers.certificates.posted import certificate_of_run
from tests.second_opinion.settle import settle
from tests.toy_family import PROBLEMS, ToyOracle, brute_force, install, make, tiny_instances


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    install(monkeypatch)


ROOT = Path(__file__).parents[2]
INSTANCES = ROOT / "tests/data/instances"
PAGE = ROOT / "docs/reference/certificates.md"


def three_jobs(family="toymax"):
    return make(family, [(1, 1, 1, 6), (1, 1, 1, 6), (1, 2, 1, 8)], [1, 1], 4)


def price_vectors(oracle, seed):
    """Random, adversarial and absurd prices; all of them must give a valid bound."""
    rng = np.random.default_rng(seed)
    size = oracle.rows.size
    one = np.zeros(size)
    if size:
        one[rng.integers(size)] = 1e6
    return [
        np.zeros(size),
        rng.exponential(1.0, size),
        rng.exponential(1.0, size) * (rng.random(size) < 0.2),
        np.full(size, 1e-300),
        np.full(size, 1e9),
        one,
        10.0 ** rng.integers(-12, 7, size).astype(float),
    ]


def is_valid(oracle, bound, optimum):
    return bound >= optimum if oracle.sense == "max" else bound <= optimum


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
@given(data=st.data())
def test_toy_bound_holds_at_any_prices(family, formulation, data):
    instance = data.draw(tiny_instances(family))
    optimum = brute_force(instance, formulation)
    for layout in ("groups", "servers"):
        oracle = ToyOracle(instance, formulation, layout)
        if optimum is None:
            continue
        good = subgradient_bound(oracle, max_iterations=40).prices
        for prices in [good, *price_vectors(oracle, 0)]:
            assert is_valid(oracle, certify(oracle, prices).bound, optimum)


def test_file_form_and_round_trip(tmp_path):
    instance = read(INSTANCES / "oasis-t10-i10-h10-s0.json")
    certificate = subgradient_bound(build_oracle(instance), max_iterations=60).certificate
    write_certificate(certificate, tmp_path / "c.json")
    data = json.loads((tmp_path / "c.json").read_text())
    assert tuple(data) == KEYS
    assert data["format"] == "hindsched-certificate/1"
    assert set(data["prices"]) == {"worker_capacity", "ps_capacity"}
    row = data["prices"]["worker_capacity"][0]
    assert list(row) == ["group", "resource", "from", "to", "price"]
    again = read_certificate(tmp_path / "c.json", instance)
    assert again.bound == certificate.bound
    assert np.array_equal(again.prices, certificate.prices)


@pytest.mark.parametrize("layout", ["groups", "servers"])
def test_the_file_names_its_layout_or_means_the_first(layout):
    instance = three_jobs()
    oracle = ToyOracle(instance, "optional", layout)
    certificate = subgradient_bound(oracle, max_iterations=30).certificate
    data = certificate.to_dict()
    assert data["layout"] == layout
    verified = verify_certificate(instance, data)
    assert verified.certificate.layout == layout
    assert verified.bound == certificate.bound == verified.claimed
    del data["layout"]
    if layout == "groups":
        assert verify_certificate(instance, data).certificate.layout == layout
    else:
        with pytest.raises(InputError, match="must have exactly the keys"):
            verify_certificate(instance, data)


def test_verification_needs_no_solver(tmp_path):
    path = INSTANCES / "oasis-t10-i10-h10-s0.json"
    instance = read(path)
    found = subgradient_bound(build_oracle(instance), max_iterations=40)
    write_certificate(found.certificate, tmp_path / "c.json")
    write_solution(build_solution(instance, {}), tmp_path / "s.json")
    code = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("highspy", "pyomo", "cvxpy", "clarabel", "scipy"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Block())
from hindsched.instances.io import read
from hindsched.solutions.base import read_solution
from hindsched.solvers.certificates.file import read_certificate
from hindsched.solvers.certificates.explain import explain
instance = read({str(path)!r})
certificate = read_certificate({str(tmp_path / "c.json")!r}, instance)
solution = read_solution({str(tmp_path / "s.json")!r}, instance)
print(repr(certificate.bound), repr(explain(solution, certificate).gap))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    bound, gap = run.stdout.split()
    assert float(bound) == found.bound == float(gap)


TAMPERINGS = {
    "bound": (lambda d: d.update(bound=d["bound"] * 0.99), "the prices prove"),
    "price": (lambda d: d["prices"]["capacity"][0].update(price=9.0), "the prices prove"),
    "dropped_price": (lambda d: d["prices"]["capacity"].pop(), "the prices prove"),
    "negative": (lambda d: d["prices"]["capacity"][0].update(price=-1.0), "not be negative"),
    "infinite": (lambda d: d["prices"]["capacity"][0].update(price=math.inf), "finite"),
    "twice": (lambda d: d["prices"]["capacity"].append(d["prices"]["capacity"][0]), "twice"),
    "label": (lambda d: d["prices"]["capacity"][0].update(group="s9"), "label"),
    "row_set": (lambda d: d["prices"].update(memory=[]), "must be one of"),
    "hash": (lambda d: d.update(instance_sha256="0" * 64), "must be"),
    "family": (lambda d: d.update(family="toymin"), "must be toymax"),
    "name": (lambda d: d.update(instance="other"), "must be toy"),
    "formulation": (lambda d: d.update(formulation="mandatory", bound=4.9), "the prices prove"),
    "unknown_formulation": (lambda d: d.update(formulation="best"), "must be one of"),
    "layout": (lambda d: d.update(layout="racks"), "must be groups or servers"),
    "kind": (lambda d: d.update(kind="proof"), "must be one of lagrangian, lp-dual, tree"),
    "sense": (lambda d: d.update(sense="min"), "must be max"),
    "format": (lambda d: d.update(format="hindsched-certificate/2"), "must be hindsched-cert"),
    "missing": (lambda d: d.pop("kind"), "is required"),
    "extra": (lambda d: d.update(note="trust me"), "unknown field"),
    "bound_text": (lambda d: d.update(bound="18"), "must be a number"),
    "bound_inf": (lambda d: d.update(bound=math.inf), "must be finite"),
}


@pytest.mark.parametrize(
    ("name", "named"),
    [(n, True) for n in TAMPERINGS] + [(n, False) for n in TAMPERINGS if "layout" not in n],
)
def test_tampering_is_caught_in_one_line(name, named):
    # One slot of one server for two jobs: the price 4 makes the formulations' bounds differ.
    instance = make("toymax", [(1, 1, 1, 6), (1, 1, 1, 3)], [1], 1)
    oracle = ToyOracle(instance, "optional", "groups")
    data = json.loads(json.dumps(certify(oracle, np.array([4.0])).to_dict()))
    if not named:  # an older file
        data.pop("layout")
    assert verify_certificate(instance, data).bound == pytest.approx(6.0)
    change, complaint = TAMPERINGS[name]
    change(data)
    with pytest.raises(InputError, match=re.escape(complaint)) as caught:
        verify_certificate(instance, data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("named", [True, False])
def test_a_bound_that_is_stated_weaker_is_true_and_is_said(named):
    """Files written by a package that proved less from the same prices stay valid."""
    instance = make("toymax", [(1, 1, 1, 6), (1, 1, 1, 3)], [1], 1)
    data = certify(ToyOracle(instance, "optional", "groups"), np.array([4.0])).to_dict()
    if not named:
        data.pop("layout")
    honest = verify_certificate(instance, data)
    assert not honest.claims_less
    found = verify_certificate(instance, {**data, "bound": 6.1})
    assert (found.bound, found.claimed, found.claims_less) == (honest.bound, 6.1, True)
    assert found.certificate.to_dict() == honest.certificate.to_dict()
    assert not verify_certificate(instance, {**data, "bound": 6.000001}).claims_less


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_certify_refuses_prices_that_prove_nothing(wrong):
    oracle = ToyOracle(three_jobs(), "optional", "groups")
    with pytest.raises(InputError, match=r"slot.*3.*not negative"):
        certify(oracle, np.array([0, 0, wrong, 0]))
    with pytest.raises(InputError, match="shape"):
        certify(oracle, np.zeros(3))


# Validity conditions of a bound. Each test shows the bound breaking without its condition.


def test_condition_a_engines_and_checks_ask_at_full_capacity_only():
    asked = []

    class Watching(ToyOracle):
        def best_response(self, block, prices, residual=None):
            asked.append(residual)
            return super().best_response(block, prices, residual)

    oracle = Watching(three_jobs(), "optional", "groups")
    certify(oracle, subgradient_bound(oracle, max_iterations=20).prices)
    assert asked
    assert all(residual is None for residual in asked)


def test_condition_b_inexact_oracle_is_refused():
    oracle = ToyOracle(three_jobs(), "optional", "groups")
    oracle.exact = False
    with pytest.raises(InputError, match="not exact"):
        certify(oracle, np.zeros(4))
    with pytest.raises(InputError, match="not exact"):
        subgradient_bound(oracle)


def test_runs_without_fitting_prices_are_refused():
    instance = three_jobs()
    solution = build_solution(instance, {})
    silent = SimpleNamespace(instance=instance, solution=solution, prices=None)
    with pytest.raises(InputError, match="must post prices"):
        certificate_of_run(silent)
    odd = SimpleNamespace(instance=instance, solution=solution, prices={"memory": np.zeros(3)})
    with pytest.raises(InputError, match="must be row sets of a layout"):
        certificate_of_run(odd)


# The page that explains certificates: what it says is computed here.


def blocks_of_page():
    text = PAGE.read_text(encoding="utf-8")
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.S)]


def test_page_two_jobs_by_hand(tmp_path):
    instance_data, solution_rows, certificate_data = blocks_of_page()[:3]
    instance = parse_instance(instance_data)
    optimum = settle(instance).value
    assert optimum == 15
    solution = build_solution(instance, solution_rows)
    assert solution.violations() == []
    assert solution.objective() == 14
    oracle = build_oracle(instance)
    assert certify(oracle, np.zeros(oracle.rows.size)).bound == pytest.approx(16)
    write_json(certificate_data, tmp_path / "c.json")
    assert certificate_data["instance_sha256"] == instance.sha256()
    certificate = read_certificate(tmp_path / "c.json", instance)
    assert certificate.bound == pytest.approx(15)
    explanation = explain(solution, certificate)
    assert [term["term"] for term in explanation.terms("job", "row")] == [0.5, 0.5]
    text = PAGE.read_text(encoding="utf-8")
    assert f"15 / 14 = {15 / 14:.4f}" in text
    assert "1.5 + 8.5 + 5 = 15" in text
