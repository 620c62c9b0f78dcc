"""The ratio interval: directions, absent ends, reasons, contradictions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.analysis.bounds import written_down, written_up
from hindsched.analysis.ratio import (
    Bounds,
    Ratio,
    competitive_ratio,
    optimum_of,
    ratio_spread,
)
from hindsched.errors import SolveFailed

numbers = st.floats(0.01, 1e6)
NUMBERS = st.floats(1e-9, 1e12) | st.floats(1, 1.001)
LAST_BITS = 1e-11
"""Rounding to 12 digits first, against the last bits of a division."""


def maximum(lower, upper, status="feasible"):
    return optimum_of("max", lower, upper, status, proof="certificate")


def minimum(lower, upper, status="feasible"):
    return optimum_of("min", upper, lower, status, proof="solver")


@given(st.tuples(numbers, numbers, numbers, numbers).map(sorted), st.booleans())
def test_interval_holds_the_true_ratio(ends, maximising):
    # Maximising: ALG <= lower <= true <= upper. Minimising: the mirror image.
    first, second, third, fourth = ends
    if maximising:
        algorithm, lower, true, upper = first, second, third, fourth
        ratio = competitive_ratio(maximum(lower, upper), algorithm)
        value, difference = true / algorithm, true - algorithm
    else:
        lower, true, upper, algorithm = first, second, third, fourth
        ratio = competitive_ratio(minimum(lower, upper), algorithm)
        value, difference = algorithm / true, true - algorithm
    slack = 1 + 1e-12
    assert ratio.interval.lower <= value * slack
    assert value <= ratio.interval.upper * slack
    assert ratio.interval.lower >= 1 / slack
    assert ratio.difference.lower <= difference + 1e-9
    assert difference <= ratio.difference.upper + 1e-9
    assert ratio.reason is None


def test_who_earns_nothing_has_ratio_infinity():
    ratio = competitive_ratio(maximum(5.0, 7.0), 0.0)
    assert ratio.is_infinite
    assert ratio.to_dict() == {
        "ratio": {"lower": "inf", "upper": "inf"},
        "difference": {"lower": 5.0, "upper": 7.0},
        "reason": "earns nothing",
        "starred": False,
    }
    assert str(ratio.interval) == "inf"


def test_who_earns_nothing_where_nothing_is_to_be_earned_is_perfect():
    assert competitive_ratio(maximum(0.0, 0.0, "optimal"), 0.0).interval == Bounds(1.0, 1.0)
    perhaps = competitive_ratio(maximum(0.0, 7.0), 0.0)
    assert perhaps.interval == Bounds(1.0, math.inf)
    assert not perhaps.is_infinite


def test_the_quotient_outside_the_feasible_set_is_starred():
    ratio = competitive_ratio(minimum(10.0, 12.0), 8.0, in_feasible_set=False, violations=3)
    assert ratio.interval == Bounds(8 / 12, 8 / 10)
    assert ratio.starred
    assert ratio.reason == "may do what the offline problem forbids"
    assert ratio.difference == Bounds(2.0, 4.0)


def test_no_ratio_with_violations_or_a_failed_run():
    assert not competitive_ratio(maximum(1.0, 2.0), 1.0, violations=2).exists
    failed = competitive_ratio(maximum(1.0, 2.0), None)
    assert failed.to_dict()["difference"] == {"lower": None, "upper": None}
    assert failed.reason == "the run failed"


def test_absent_ends_stay_absent():
    no_solution = competitive_ratio(maximum(None, 8.0), 4.0)
    assert no_solution.interval == Bounds(None, 2.0)
    no_bound = competitive_ratio(maximum(8.0, None), 4.0)
    assert no_bound.interval == Bounds(2.0, None)
    assert no_bound.reason == "the optimum has no upper bound"
    no_cost_bound = competitive_ratio(minimum(0.0, 8.0), 16.0)
    assert no_cost_bound.interval == Bounds(2.0, None)
    assert no_cost_bound.reason == "the optimum has no positive lower bound"


def test_an_optimum_of_cost_zero():
    ratio = competitive_ratio(minimum(0.0, 0.0, "optimal"), 3.0)
    assert ratio.is_infinite
    assert ratio.difference == Bounds(-3.0, -3.0)
    assert competitive_ratio(minimum(0.0, 0.0, "optimal"), 0.0).interval == Bounds(1.0, 1.0)
    assert not competitive_ratio(minimum(-4.0, -3.0), 1.0).exists


def test_an_online_schedule_improves_the_optimum():
    better = maximum(10.0, 20.0).improved(12.0, "oasis")
    assert (better.interval, better.best, better.status) == (
        Bounds(12.0, 20.0),
        "oasis",
        "feasible",
    )
    assert maximum(10.0, 20.0).improved(9.0, "oasis").best == "offline"
    cheaper = minimum(10.0, 20.0).improved(15.0, "edgecloud")
    assert (cheaper.interval, cheaper.best) == (Bounds(10.0, 15.0), "edgecloud")
    assert maximum(None, None, "no_solution").improved(1.0, "x").interval == Bounds(1.0, None)


@pytest.mark.parametrize(
    ("optimum", "objective"),
    [(maximum(10.0, 20.0), 20.000001), (minimum(10.0, 20.0), 9.9)],
)
def test_a_schedule_beyond_a_proven_bound_is_an_error(optimum, objective):
    with pytest.raises(SolveFailed, match="beyond the proven bound"):
        optimum.improved(objective, "oasis")


def test_spread_over_seeds():
    ratios = [Ratio(Bounds(1.0, 2.0), Bounds()), Ratio(Bounds(3.0, 6.0), Bounds())]
    assert ratio_spread(ratios) == (Bounds(1.0, 3.0), Bounds(2.0, 6.0))
    with_absent = [*ratios, Ratio(Bounds(), Bounds(1.0, 1.0), "the run failed")]
    assert ratio_spread(with_absent) == (Bounds(), Bounds())


@given(NUMBERS)
def test_ends_are_rounded_outward(value):
    assert float(written_down(value)) <= value * (1 + LAST_BITS)
    assert float(written_up(value)) >= value * (1 - LAST_BITS)
    assert float(written_up(value)) - float(written_down(value)) <= value * 1.0001e-3


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
    assert str(Bounds(*ends)) == text
