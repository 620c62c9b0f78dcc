"""Certified means that the exact kernel accepts what would be written."""

from dataclasses import replace
from fractions import Fraction

import pytest

import hindsched as hs
from hindsched.analysis import verify as exact
from hindsched.analysis.verify import Verification, exact_check, proof_of
from hindsched.errors import InputError
from hindsched.kernel import Interval
from hindsched.solutions.base import build_solution


@pytest.fixture(scope="module")
def result():
    return hs.solve(hs.generate("oasis", jobs=2, horizon=5, seed=3), "bound")


def test_the_kernel_reads_the_certificate(result):
    assert (result.proof, proof_of(result)) == ("certificate", "certificate")


def test_a_bound_that_the_kernel_refuses_is_loud(result):
    better = replace(result.certificate, bound=result.certificate.bound * 0.9)
    with pytest.raises(hs.SolveFailed, match="the exact kernel proves"):
        proof_of(replace(result, certificate=better, bound=better.bound))


def test_a_solution_that_beats_its_bound_is_loud_and_both_are_named(result, monkeypatch):
    low, run = Fraction(-9), hs.simulate(result.instance, "oasis")
    result = replace(result, solution=run.solution)
    monkeypatch.setattr(exact.kernel, "bound", lambda *_: Interval(low, low))
    with pytest.raises(hs.SolveFailed, match="contradiction: the objective beats the bound"):
        proof_of(result)


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
    assert exact_check(instance, tmp_path / "s.json", tmp_path / "c.json", seconds=1e-4) is None


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


def test_a_solution_that_beats_the_bound(instance, solution, certificate, monkeypatch):
    beats = Verification("i", "batchsched", "modes", "min", 9.0, [], bound=10.0, kind="lagrangian")
    assert beats.is_contradiction
    assert not Verification("i", "oasis", "standard", "max", 9.0, [], bound=10.0).is_contradiction
    monkeypatch.setattr(Verification, "is_contradiction", True)
    with pytest.raises(hs.SolveFailed, match=r"is better than the bound .*one of the two must"):
        hs.verify(instance, solution, certificate)
