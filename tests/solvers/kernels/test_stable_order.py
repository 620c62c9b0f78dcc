"""Sorting in kernels is numpy's."""

import numpy as np
import pytest
from numba import njit

from hindsched.solvers.kernels.stable_order import RUN, copy_to, stable_order


@pytest.mark.parametrize("size", [0, 1, 2, RUN - 1, RUN, RUN + 1, 5 * RUN, 700])
def test_order_is_numpys_with_ties_infinite_ends_and_what_is_no_number(size):
    draws = np.random.default_rng(size)
    for values in (1, 3, 10_000):
        keys = draws.integers(0, values, size)
        assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
        mixed = keys.astype(float)
        mixed[draws.random(size) < 0.1] = np.inf
        mixed[draws.random(size) < 0.1] = np.nan
        assert stable_order(mixed).tolist() == np.argsort(mixed, kind="stable").tolist()


def test_a_copy_stays_within_its_slices():
    @njit
    def shift(target, source):
        copy_to(target[1:3], source[2:4])

    target = np.arange(5)
    shift(target, np.arange(10, 15))
    assert target.tolist() == [0, 12, 13, 3, 4]
