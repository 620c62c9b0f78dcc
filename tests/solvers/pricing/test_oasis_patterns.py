"""The layout ``patterns``: what one server holds; `tests.kernel.test_optima` has its bounds."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.decimals import exactly
from hindsched.solvers.families.oasis.patterns import _pack
from hindsched.solvers.kernels.oasis.maximal_patterns import server_patterns


@given(
    capacity=st.lists(st.integers(0, 9), min_size=2, max_size=2),
    demand=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=4),
    hair=st.lists(st.sampled_from((0, 1, -1)), min_size=10, max_size=10),
    most=st.lists(st.integers(1, 4), min_size=4, max_size=4),
)
def test_patterns_hold_exactly_what_a_server_does(capacity, demand, hair, most):
    """Also where amounts lie less than rounding beside each other: 4, and 2 + 3 x 2.0 / 3."""
    drawn = iter(hair)
    hairs = Fraction(1, 10**15)
    exact = [[Fraction(d, 3) // hairs * hairs + next(drawn) * hairs * (d > 0) for d in unit]
             for unit in demand]  # fmt: skip
    room = np.array(capacity, float)
    demands = np.array([[float(str(float(d))) for d in unit] for unit in exact])
    read = [[exactly(d) for d in unit] for unit in demands.tolist()]
    most = np.array(most[: len(demand)])
    chosen, found = _pack(room, demands, most)
    fits = [
        np.array(count)
        for count in itertools.product(*(range(most[job] + 1) for job in chosen))
        if all(
            sum(n * read[job][r] for n, job in zip(count, chosen, strict=True)) <= capacity[r]
            for r in range(2)
        )
    ]
    maximal = {
        tuple(one.tolist())
        for one in fits
        if not any(np.all(other >= one) and np.any(other > one) for other in fits)
    }
    assert {tuple(row) for row in found.tolist()} == maximal
    assert len(found) == len(maximal)


def test_rounding_of_many_steps_loses_no_pattern_that_fills_a_server() -> None:
    # 16, 10 and 23 units fill the server to the last digit, 2,000 steps into the enumeration.
    capacity, demand = np.array([64.633341]), np.array([[0.2], [0.01], [2.666667]])
    found = server_patterns(capacity, demand, np.array([57, 22, 44]), 2000)
    assert found is not None
    assert [16, 10, 23] in found.tolist()


def test_a_server_of_few_patterns_and_endless_dead_ends_has_none() -> None:
    # Thirteen: twelve jobs exclude each other, and each needs what four others have alone.
    demand, most = np.zeros((16, 5)), np.ones(16, dtype=np.int64)
    demand[range(4), range(4)], most[:4] = 1.0, 100
    demand[4:, :4], demand[4:, 4] = 30.0, 1.0
    assert server_patterns(np.array([100.0] * 4 + [1.0]), demand, most, 100) is None


def test_a_server_with_room_for_everything_has_one_pattern() -> None:
    # Trying every smaller number of units beside it would take 13^30 steps.
    demand, most = np.ones((30, 2)), np.full(30, 12)
    found = server_patterns(np.array([360.0, 1000.0]), demand, most, 2000)
    assert found is not None
    assert found.tolist() == [[12] * 30]
