import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.io import read
from hindsched.solutions.base import build_solution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.certificates.explain import explain
from tests.searches import searched
from tests.toy_family import PROBLEMS, ToyOracle, ToyServerOracle, install, make, tiny_instances


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    install(monkeypatch)


def check_sum(explanation, sense):
    """Non-negative terms that add up to the gap."""
    terms = [term["term"] for term in explanation.terms()]
    assert min(terms, default=1.0) > 0
    assert terms == sorted(terms, reverse=True)
    gap = explanation.bound - explanation.objective
    gap = gap if sense == "max" else -gap
    size = max(1.0, abs(explanation.bound), sum(terms))
    assert explanation.total() == pytest.approx(gap, abs=1e-9 * size)
    assert explanation.gap == pytest.approx(gap, abs=1e-12 * size)
    assert explanation.to_frame()["term"].sum() == pytest.approx(gap, abs=1e-9 * size)


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
@given(data=st.data())
def test_terms_add_up_at_any_prices(family, formulation, data):
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        instance = data.draw(tiny_instances(family))
        servers = ToyServerOracle(instance, formulation, "servers")
        solution = searched(servers, max_iterations=5)
        if solution is None:
            return
        for layout in ("groups", "servers"):
            oracle = ToyOracle(instance, formulation, layout)
            rng = np.random.default_rng(data.draw(st.integers(0, 9)))
            prices = rng.exponential(1.0, oracle.rows.size) * (rng.random(oracle.rows.size) < 0.6)
            for vector in (prices, np.zeros_like(prices), 1e4 * prices):
                check_sum(explain(solution, certify(oracle, vector)), oracle.sense)


@pytest.mark.parametrize("layout", ["groups", "servers"])
def test_oasis_gap(layout):
    instance = read("tests/data/instances/oasis-t10-i10-h10-s0.json")
    oracle = build_oracle(instance, rows=layout)
    certificate = subgradient_bound(oracle, max_iterations=150).certificate
    found = searched(build_oracle(instance, rows="servers"), max_iterations=100)
    explanation = explain(found, certificate)
    check_sum(explanation, "max")
    data = explanation.to_dict()
    assert data["gap"] == pytest.approx(
        data["from_jobs"] + data["from_parts"] + data["from_idle_capacity"] + data["from_rounding"]
    )
    names = {job.name for job in instance.jobs}
    assert {row["name"].split(" (")[0] for row in data["jobs"]} <= names, "servers are no jobs"
    assert not any("served" in row["name"] for row in data["parts"])
    assert data["jobs"][0]["term"] == max(row["term"] for row in data["jobs"])


def test_a_gap_by_hand_when_minimising():
    # One machine, two jobs of one slot: weights 3 and 1; served in the wrong order: 1 * 1 + 3 * 2.
    instance = make("toymin", [(1, 1, 1, 3), (1, 1, 1, 1)], [1], 3)
    rows = {
        "j1": [{"from": 1, "to": 1, "server": "s0"}],
        "j0": [{"from": 2, "to": 2, "server": "s0"}],
    }
    solution = build_solution(instance, rows)
    assert solution.objective() == 7
    oracle = ToyOracle(instance, "modes", "groups")
    certificate = certify(oracle, np.array([2.0, 1.0, 0.0]))
    # j0: min(3 + 2, 6 + 1, 9) = 5; j1: min(1 + 2, 2 + 1, 3) = 3; minus 3 for the capacity.
    assert certificate.bound == pytest.approx(5)
    explanation = explain(solution, certificate)
    assert [(term["name"], term["term"]) for term in explanation.terms("job", "row")] == [
        ("j0 (served)", 2.0)
    ]
    check_sum(explanation, "min")


def test_idle_capacity_at_a_price_is_named():
    instance = make("toymax", [(1, 1, 1, 6)], [1, 1], 2)
    solution = build_solution(instance, {"j0": [{"from": 1, "to": 1, "server": "s0"}]})
    certificate = certify(ToyOracle(instance, "optional", "servers"), np.array([0, 0, 0.5, 2.0]))
    explanation = explain(solution, certificate)
    assert explanation.gap == pytest.approx(2.5)
    assert [(term["name"], term["slot"]) for term in explanation.terms("row")] == [
        ("capacity s1", 2), ("capacity s1", 1),
    ]  # fmt: skip


def test_what_does_not_belong_together_is_refused(monkeypatch):
    instance = make("toymax", [(1, 1, 1, 6), (1, 1, 1, 6)], [1], 2)
    oracle = ToyOracle(instance, "optional", "groups")
    certificate = certify(oracle, np.zeros(2))
    twice = {f"j{i}": [{"from": 1, "to": 1, "server": "s0"}] for i in (0, 1)}
    with pytest.raises(InputError, match="must be feasible"):
        explain(build_solution(instance, twice), certificate)
    with pytest.raises(InputError, match="formulation"):
        explain(build_solution(instance, {}, "mandatory"), certificate)
    other = make("toymax", [(1, 1, 1, 6)], [1, 1], 3)
    with pytest.raises(InputError, match="instance"):
        explain(build_solution(other, {}), certificate)
    # An oracle that reads the solution wrongly is caught, not believed.
    monkeypatch.setattr(ToyOracle, "use_of", lambda self, solution: [None, None])
    one = build_solution(instance, {"j0": twice["j0"]})
    with pytest.raises(InputError, match="schedules have objective"):
        explain(one, certificate)


def test_a_schedule_that_ends_after_all_priced_slots_is_explained():
    late = 0
    for seed in range(3):
        instance = hs.generate("batchsched", preset="small", seed=seed)
        solution = hs.simulate(instance, "batchsched").solution
        oracle = build_oracle(instance)
        found = explain(solution, certify(oracle, np.zeros(oracle.rows.size)))
        late += (
            solution.objective() > 0
            and max(solution.completion(job.name) for job in instance.jobs) > oracle.slots
        )
        assert found.objective == solution.objective()
    assert late
