"""Enclosures against `decimal` at 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.kernel.exact import Interval, decimal, exp, log, power, sigmoid, utility

WIDTH = Fraction(1, 2**100)
rationals = st.fractions(-80, 80, max_denominator=10**6)
positive = st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**9)


def encloses(found: Interval, expected: Decimal) -> bool:
    """Whether an enclosure is narrow and holds a number known to 60 digits."""
    rounding = abs(Fraction(expected)) / 10**58 + Fraction(1, 10**90)
    assert found.high - found.low <= WIDTH * max(1, found.high)
    return (
        found.low <= Fraction(expected) + rounding and Fraction(expected) - rounding <= found.high
    )


def as_decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


@given(rationals)
def test_exp_and_sigmoid(x):
    with localcontext(prec=70):
        value = as_decimal(x).exp()
        assert encloses(exp(x), value)
        assert encloses(sigmoid(x), 1 / (1 + value))


@given(positive, st.fractions(0, 6, max_denominator=1000))
def test_log_and_power(base, exponent):
    with localcontext(prec=70):
        value = as_decimal(base)
        assert encloses(log(base), value.ln())
        assert encloses(power(base, exponent), (value.ln() * as_decimal(exponent)).exp())


def test_whole_exponents_are_exact():
    assert power(Fraction(2, 3), Fraction(3)) == Interval(Fraction(8, 27), Fraction(8, 27))
    assert utility({"kind": "power", "scale": 4, "exponent": 0}, 9).low == 1


@pytest.mark.parametrize("size", [10**3, 10**5, 10**40])
def test_far_out_sigmoids_stay_between_0_and_1(size):
    late, early = sigmoid(Fraction(size)), sigmoid(Fraction(-size))
    assert 0 <= late.low <= late.high <= WIDTH
    assert 1 - WIDTH <= early.low <= early.high <= 1


def test_utilities_that_rise_are_refused():
    for record in (
        {"kind": "linear", "slope": 1, "intercept": 0},
        {"kind": "sigmoid", "priority": 1, "decay": -1, "target": 0},
        {"kind": "sigmoid", "priority": -1, "decay": 1, "target": 0},
        {"kind": "power", "scale": 1, "exponent": -1},
        {"kind": "power", "scale": 0, "exponent": 1},
    ):
        with pytest.raises(ValueError, match="must not rise"):
            utility(record, 1)
    with pytest.raises(ValueError, match="must not rise"):
        utility({"kind": "power", "scale": 2, "exponent": 1}, 0)
    with pytest.raises(ValueError, match="beyond"):
        exp(Fraction(10**6))


@given(st.fractions(-(10**12), 10**12, max_denominator=10**12), st.integers(1, 40))
def test_decimals_are_rounded_outward(number, digits):
    low, high = (Fraction(decimal(number, up=up, digits=digits)) for up in (False, True))
    assert low <= number <= high
    assert high - low <= 10 * abs(number) / Fraction(10) ** (digits - 1)
    if number.denominator == 1 and abs(number) < 10**digits:
        assert low == high
