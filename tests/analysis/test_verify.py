"""``verify``: what is recomputed, from objects and from files, and what is refused."""

import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.solutions.base import build_solution


@pytest.fixture(scope="module")
def instance():
    return hs.named_instance("oasis-t10-i10-h25-s0")


@pytest.fixture(scope="module")
def solution(instance):
    return hs.simulate(instance, "oasis").solution


@pytest.fixture(scope="module")
def certificate(instance):
    return hs.solve(instance, "bound", options={"time_limit": 1}).certificate


def test_objects_and_files_give_the_same(instance, solution, certificate, tmp_path):
    hs.write_solution(solution, tmp_path / "s.json")
    hs.write_certificate(certificate, tmp_path / "c.json")
    from_objects = hs.verify(instance, solution, certificate)
    from_files = hs.verify(instance, tmp_path / "s.json", tmp_path / "c.json")
    from_data = hs.verify(instance, solution, certificate.to_dict())
    assert from_objects == from_files == from_data
    assert from_objects.is_feasible
    assert from_objects.objective == solution.objective()
    assert from_objects.bound == pytest.approx(certificate.bound, rel=1e-9)
    expected = (from_objects.bound - from_objects.objective) / from_objects.bound
    assert from_objects.gap == pytest.approx(expected)


def test_without_a_certificate_there_is_no_bound(instance, solution):
    checked = hs.verify(instance, solution)
    assert (checked.bound, checked.gap) == (None, None)


def test_an_infeasible_solution_has_no_gap(instance, certificate):
    rows = {"j1": [{"from": 1, "to": 1, "workers": {"w1": 500}, "ps": {}}]}
    checked = hs.verify(instance, build_solution(instance, rows), certificate)
    assert not checked.is_feasible
    assert checked.violations
    assert checked.gap is None


def test_another_instance(instance, solution, certificate):
    other = hs.named_instance("oasis-t10-i10-h5-s1")
    with pytest.raises(InputError, match="must be of the same instance"):
        hs.verify(other, solution)
    mine = build_solution(other, {})
    with pytest.raises(InputError, match="instance_sha256"):
        hs.verify(other, mine, certificate)


def test_a_bound_that_the_prices_do_not_prove(instance, solution, certificate):
    data = certificate.to_dict()
    data["bound"] -= 1.0
    with pytest.raises(InputError, match="the prices prove"):
        hs.verify(instance, solution, data)
