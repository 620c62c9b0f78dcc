"""Certified means that the exact kernel accepts what would be written."""

from dataclasses import replace

import pytest

import hindsched as hs
from hindsched.analysis import exact
from hindsched.analysis.exact import ExactCheck, has_kernel, proof_of
from hindsched.analysis.ratio import optimum_of


@pytest.fixture(scope="module")
def result():
    return hs.solve(hs.generate("oasis", jobs=2, horizon=5, seed=3), "bound")


def test_the_kernel_reads_the_certificate(result):
    assert (result.proof, proof_of(result)) == ("certificate", "certificate")


def test_what_the_kernel_has_no_time_for_is_only_checked_fast(result):
    assert proof_of(result, seconds=0.001) == "checked fast"


def test_without_a_certificate_nobody_asks_the_kernel(result, monkeypatch):
    monkeypatch.setattr(exact, "exact_check", lambda *_, **__: pytest.fail("asked"))
    assert proof_of(replace(result, certificate=None)) == "solver"
    assert proof_of(replace(result, bound=None)) == "none"


def test_a_bound_that_the_kernel_refuses_is_loud(result):
    better = replace(result.certificate, bound=result.certificate.bound * 0.9)
    with pytest.raises(hs.SolveFailed, match=r"certificate.json: bound: states more"):
        proof_of(replace(result, certificate=better, bound=better.bound))


def test_a_solution_that_beats_its_bound_is_loud_and_both_are_named(result, monkeypatch):
    said = ExactCheck(1, ("feasible", "contradiction: objective 9 beats the bound 8"))
    monkeypatch.setattr(exact, "exact_check", lambda *_, **__: said)
    with pytest.raises(hs.SolveFailed, match="contradiction: objective 9 beats the bound 8"):
        proof_of(result)


def test_a_family_without_a_kernel_is_checked_fast(result, monkeypatch):
    monkeypatch.setattr(exact, "has_kernel", lambda family: False)
    assert proof_of(result) == "checked fast"
    assert has_kernel("oasis")
    assert not has_kernel("tollbooth")


@pytest.mark.parametrize(("proof", "excess"), [("certificate", 1e-8), ("solver", 1e-5)])
def test_an_online_schedule_beyond_the_bound_is_a_contradiction(proof, excess):
    known = optimum_of("max", 1e-3, 2e-3, "feasible", proof=proof)
    assert known.improved(2e-3, "luck").status == "optimal"
    with pytest.raises(hs.SolveFailed, match=rf"luck reaches .* bound 0\.002 \({proof}\)"):
        known.improved(2e-3 * (1 + excess), "luck")
