"""What a result says of its bound: proven by prices, by the solver's word alone, or not at all."""

from dataclasses import replace

import pytest

import hindsched as hs


@pytest.fixture(scope="module")
def bounded():
    instance = hs.named_instance("oasis-t10-i10-h25-s0")
    return hs.solve(instance, "bound", options={"time_limit": 1.0})


def test_a_bound_by_prices_is_certified(bounded):
    data = bounded.to_dict()
    assert (bounded.proof, data["certified"]) == ("certificate", True)
    assert data["certified_bound"] == data["bound"] == bounded.certificate.bound


def test_a_better_bound_by_the_solver_is_not(bounded):
    better = replace(bounded, bound=bounded.bound - 0.01)
    data = better.to_dict()
    assert (better.proof, data["certified"]) == ("solver", False)
    assert data["certified_bound"] == bounded.bound > data["bound"]


def test_without_a_certificate_it_is_the_solver_s_word(bounded):
    data = replace(bounded, certificate=None).to_dict()
    assert (data["certified"], data["certified_bound"]) == (False, None)
    assert replace(bounded, certificate=None).proof == "solver"


def test_without_a_bound_nothing_is_proven(bounded):
    nothing = replace(bounded, bound=None)
    assert (nothing.proof, nothing.to_dict()["certified"]) == ("none", False)
