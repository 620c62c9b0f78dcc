"""Counts from decimals are exact: near ties, exact ties, and sizes where floats tell nothing."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hindsched.instances.decimals import (
    common_step,
    exactly,
    how_many_fit,
    how_many_left,
    loosened,
    same_ceilings,
    times,
    whole_units,
)
from hindsched.instances.modes import ps_for

HAIRS = (0.0, 1e-9, -1e-9, 1e-12, -1e-12, 1e-15)
near_ties = st.builds(
    lambda whole, tenths, hair: (whole + tenths / 10) + hair,
    st.integers(1, 40),
    st.sampled_from((0, 0, 3, 5, 7)),
    st.sampled_from(HAIRS),
)
anything = st.one_of(near_ties, st.floats(1e-9, 1e9), st.floats(0.01, 10))


@given(top=anything, bottom=anything, most=st.integers(1, 3000))
@example(top=2.000000001, bottom=2, most=4)
@example(top=1.999999999, bottom=2, most=1)
@example(top=1e-9, bottom=1e9, most=7)
@example(top=372383370.5, bottom=9.418828699627264, most=11)
def test_a_quotient_in_floats_has_the_ceilings_of_the_decimals(top, bottom, most):
    quotient = same_ceilings(top, bottom, most)
    for n in {0, 1, most, *range(1, most, max(1, most // 20))}:
        due = math.ceil(n * exactly(top) / exactly(bottom))
        if due < 2**40:
            assert math.ceil(n * quotient - 1e-9) == due, n
            assert ps_for(n, quotient) == max(1, due)


@given(
    capacity=st.lists(st.one_of(anything, st.just(0.0)), min_size=1, max_size=5),
    demand=st.one_of(anything, st.just(0.0)),
    most=st.integers(0, 10**6),
)
@example(capacity=[0.3, 0.30000000000000004, 0.29999999999999993], demand=0.1, most=9)
@example(capacity=[4], demand=2.000000001, most=9)
def test_how_many_fit_is_exact(capacity, demand, most):
    due = [min(most, exactly(c) // exactly(demand)) if demand else most for c in capacity]
    fit = how_many_fit(np.array([capacity], float).T, np.array([float(demand)]), most)
    assert fit.tolist() == due


def test_what_is_left_forgives_rounding_and_nothing_else():
    free = np.array([[0.3 - 0.1 - 0.1]])  # 0.09999999999999998
    assert how_many_left(loosened(free, np.array([[0.3]])), np.array([0.1]), 9).tolist() == [1]
    assert how_many_left(loosened(free, np.array([[0.3]])), np.array([0.1 + 1e-12]), 9) == [0]
    assert how_many_left(loosened(free, np.array([[0.3]])), np.array([0.0]), 9) == [9]


@given(
    st.lists(st.tuples(st.integers(0, 9), anything), min_size=1, max_size=6),
    anything,
)
@example([(3, 0.1)], 0.3)
@example([(2, 2.000000001)], 4)
@example([(3, 1e-15), (1, 1e15)], 1e15)
def test_whole_units_add_up_exactly(units, capacity):
    amounts = np.array([[amount] for _, amount in units], float)
    room, sizes = whole_units(np.array([[capacity]], float), amounts)
    total = sum(
        times(np.array([count]), whole) for (count, _), whole in zip(units, sizes, strict=True)
    )
    due = sum(n * exactly(amount) for n, amount in units)
    assert Fraction(int(total[0]), int(room[0, 0])) == due / exactly(capacity)


def test_many_large_counts_do_not_overflow():
    (amounts,) = whole_units(np.array([[1e15, 0.001]]))
    product = times(np.full((2, 1), 10**7), amounts)
    assert product.tolist() == [[10**22, 10**7]] * 2


@given(st.lists(anything, min_size=1, max_size=5))
def test_the_common_step_divides_all_and_nothing_larger_does(numbers):
    exact = [exactly(number) for number in numbers]
    step = common_step(exact)
    whole = [number / step for number in exact]
    assert all(number.denominator == 1 for number in whole)
    assert math.gcd(*(int(number) for number in whole)) == 1
