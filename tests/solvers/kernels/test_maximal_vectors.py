"""Maximal sums of vectors against all sums compared with one another."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.arrays import Ints
from hindsched.solvers.kernels.oasis.maximal_vectors import maximal_sums

WITHOUT_END = 10**15


def by_definition(first: Ints, second: Ints, most: Ints) -> set[tuple[int, ...]]:
    """Sums, cut off, below which no other one lies."""
    sums = np.minimum(first[:, None] + second[None], most).reshape(-1, most.size)
    unique = np.unique(sums, axis=0)
    return {tuple(one) for one in unique.tolist() if (unique >= one).all(axis=1).sum() == 1}


def drawn(seed: int) -> tuple[Ints, Ints, Ints]:
    """Draw two lists and limits; every fifth time they need both words."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 9))
    most = random.integers(0, 1 << random.integers(1, 14 if seed % 5 == 0 else 7), size)
    lists = (random.integers(0, most + 2, (random.integers(1, 30), size)) for _ in range(2))
    first, second = lists
    return first, second, most


@pytest.mark.parametrize("seed", range(60))
def test_sums_are_the_maximal_ones_the_largest_first(seed: int) -> None:
    first, second, most = drawn(seed)
    found, compared = maximal_sums(first, second, most, len(first) * len(second), WITHOUT_END)
    assert len(found) == len(set(map(tuple, found.tolist())))
    assert set(map(tuple, found.tolist())) == by_definition(first, second, most)
    assert (np.diff(found.sum(axis=1)) <= 0).all()
    assert compared <= (len(first) * len(second)) ** 2


@pytest.mark.parametrize("seed", range(10))
def test_there_are_none_beyond_a_limit_or_an_effort(seed: int) -> None:
    first, second, most = drawn(seed)
    found, compared = maximal_sums(first, second, most, 1000, WITHOUT_END)
    assert np.array_equal(maximal_sums(first, second, most, len(found), compared)[0], found)
    assert not len(maximal_sums(first, second, most, len(found) - 1, WITHOUT_END)[0])
    if compared:
        assert not len(maximal_sums(first, second, most, 1000, compared - 1)[0])


@pytest.mark.parametrize(
    ("places", "units", "number"),
    [(8, 2**14 - 1, 1), (9, 2**14 - 1, 0), (1, 10**6, 1), (1, 2**62, 0)],
)
def test_counts_must_fit_into_their_words(places: int, units: int, number: int) -> None:
    nothing, one = np.zeros((1, places), dtype=np.int64), np.full((1, places), units)
    found, _ = maximal_sums(nothing, one, one[0], 9, WITHOUT_END)
    assert found.tolist() == one.tolist() * number
