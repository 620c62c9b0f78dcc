"""Draws are the same everywhere and have the right shape."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.instances.generators.registry import generate
from hindsched.instances.generators.sampling import Draws, arrival_slots, rounded
from hindsched.instances.oasis.generator import fit_steps

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


def test_draws_have_the_right_shape():
    draws = Draws(0)
    units = [draws.unit() for _ in range(4000)]
    assert np.mean(units) == pytest.approx(0.5, abs=0.02)
    assert 0 <= min(units) < max(units) < 1
    normals = [draws.normal(2, 3) for _ in range(4000)]
    assert np.mean(normals) == pytest.approx(2, abs=0.2)
    assert np.std(normals) == pytest.approx(3, abs=0.15)
    assert np.mean([draws.exponential(5) for _ in range(4000)]) == pytest.approx(5, abs=0.3)
    assert np.bincount([draws.integer(0, 2) for _ in range(3000)]) == pytest.approx(1000, abs=100)
    chosen = [draws.choice("ab", [1, 3]) for _ in range(2000)]
    assert chosen.count("b") == pytest.approx(1500, abs=80)
    assert rounded(1 / 3) == 0.333333333333
    slots = arrival_slots(draws, 500, 48)
    assert slots == sorted(slots)
    assert 1 <= slots[0] <= slots[-1] <= 48


def test_steps_are_fitted_by_a_falling_sigmoid():
    values = (10.0, 8.0, 5.0, 2.0)
    priority, decay, target = fit_steps((0.25, 0.5, 0.75, 1.0), values)
    middles = np.array([0.125, 0.375, 0.625, 0.875])
    fitted = priority / (1 + np.exp(decay * (middles - target)))
    assert fitted == pytest.approx(values, abs=0.5)
