"""Certified means that the exact kernel accepts what would be written."""

from dataclasses import replace
from fractions import Fraction

import pytest

import hindsched as hs
from hindsched.analysis import exact
from hindsched.analysis.exact import has_kernel, proof_of
from hindsched.analysis.ratio import optimum_of
from hindsched.instances.io import parse_instance
from hindsched.kernel import Interval, Refused
from hindsched.solvers.door.status import StoppedBy


@pytest.fixture(scope="module")
def result():
    return hs.solve(hs.generate("oasis", jobs=2, horizon=5, seed=3), "bound")


def test_the_kernel_reads_the_certificate(result):
    assert (result.proof, proof_of(result)) == ("certificate", "certificate")


def test_what_the_kernel_has_no_time_for_is_only_checked_fast(result):
    assert proof_of(result, seconds=0.001) == "checked fast"


def test_nobody_waits_long_for_the_kernel_after_ctrl_c(result, monkeypatch):
    steps = []

    def bound(instance, certificate, limits):
        steps.append(limits["steps"])
        raise Refused("too much work (--limit steps=... raises it)")

    monkeypatch.setattr(exact.kernel, "bound", bound)
    for stopped_by in (StoppedBy.TIME_LIMIT, StoppedBy.INTERRUPTED):
        assert proof_of(replace(result, stopped_by=stopped_by)) == "checked fast"
    seconds = (exact.QUICK_SECONDS, exact.INTERRUPTED_SECONDS)
    assert steps == [exact.STEPS_A_SECOND * each for each in seconds]


def test_a_job_of_a_million_chunks_is_read_by_the_kernel():
    data = hs.generate("oasis", jobs=2, horizon=5, seed=3).to_dict()
    data["jobs"][0]["chunks"] = 1_000_000
    assert proof_of(hs.solve(parse_instance(data), "bound")) == "certificate"


def test_without_a_certificate_nobody_asks_the_kernel(result, monkeypatch):
    monkeypatch.setattr(exact.kernel, "bound", lambda *_: pytest.fail("asked"))
    assert proof_of(replace(result, certificate=None)) == "solver"
    assert proof_of(replace(result, bound=None)) == "none"


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
