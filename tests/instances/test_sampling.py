"""Draws are the same everywhere."""

from __future__ import annotations

import pytest

from hindsched.instances.generators.registry import generate
from hindsched.instances.generators.sampling import Draws

CHECKSUMS = {
    ("small", 0): "3f866a3321997bfcf370498c0945aa2611cf1737051e4fbf4105be66ebf55591",
    ("paper", 0): "bb6c655edf46e763957291f9858c5938383e99ec8098d6fad4185a3dc3e0a2da",
    ("testbed", 0): "37109fe4037ad3ea667ea1d1140901b53ba7bedc27fe7a23036ae4d3548c4885",
}


@pytest.mark.parametrize(("preset", "seed"), list(CHECKSUMS))
def test_a_seed_gives_the_same_bytes_everywhere(preset, seed):
    assert generate("oasis", preset, seed).sha256() == CHECKSUMS[preset, seed]


def test_draws_are_pinned():
    draws = Draws(1, "a", "b")
    assert [draws.integer(1, 6) for _ in range(8)] == [6, 6, 6, 2, 1, 6, 6, 5]
    assert draws.unit() == 0.9019386481289914
    assert draws.log_uniform(0.001, 0.1) == 0.0702672736788
    assert draws.normal() == 0.0917864942985
    assert Draws(1, "ab").word() != Draws(1, "a", "b").word()
