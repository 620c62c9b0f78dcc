"""What is printed of an interval's ends holds of the ends."""

from decimal import ROUND_CEILING, ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.analysis.interval import Interval, percent_rounded, rounded_down, rounded_up

NUMBERS = st.floats(1e-9, 1e12) | st.floats(1, 1.001)
LAST_BITS = 1e-11
"""Rounding to 12 digits first, against the last bits of a division."""


@given(NUMBERS)
def test_ends_are_rounded_outward(value):
    assert float(rounded_down(value)) <= value * (1 + LAST_BITS)
    assert float(rounded_up(value)) >= value * (1 - LAST_BITS)
    assert float(rounded_up(value)) - float(rounded_down(value)) <= value * 1.0001e-3


@given(st.floats(1.00000001, 1.001))
def test_just_above_one_is_told_from_one(value):
    assert float(rounded_up(value)) > 1
    assert float(rounded_up(value)) - 1 <= 2.001 * (value - 1)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((1.0, 1.0), "1"),
        ((1.0, 1.0000000007), "1"),
        ((44.99996, 45.0), "45"),
        ((44.99, 45.0), "[44.99, 45]"),
        ((1.19996, 1.20004), "[1.199, 1.201]"),
        ((1.0, 1.00004), "[1, 1.00004]"),
        ((1 / 0.1, 10.000000000000002), "10"),
        ((250.338, None), "[250.3, ?]"),
        ((0.0, 0.000123456), "[0, 0.0001235]"),
        ((0.0, 0.0), "0"),
        ((1.0, float("inf")), "[1, inf]"),
        ((float("inf"), float("inf")), "inf"),
        ((float("inf"), None), "inf"),
        ((None, None), "unknown"),
    ],
)
def test_intervals(ends, text):
    assert str(Interval(*ends)) == text


@pytest.mark.parametrize("share", [1e300, 1e26, float("inf")])
def test_shares_beyond_counting_are_written(share):
    assert float(percent_rounded(share, ROUND_CEILING)[:-1]) == pytest.approx(100 * share)


@given(st.floats(0, 1))
def test_shares_are_rounded_to_the_side_on_which_they_hold(share):
    assert float(percent_rounded(share, ROUND_FLOOR)[:-1]) <= share * 100 + LAST_BITS
    assert float(percent_rounded(share, ROUND_CEILING)[:-1]) >= share * 100 - LAST_BITS
