"""The rows of fair shares are those that CVXPY makes of the printed programs, number by number."""

import cvxpy as cp
import numpy as np
import pytest
from hindsched.online.baselines.finish_time import finish_time_printed, worst_by_chain
from hindsched.solvers.door.cones import Cones
from hindsched.solvers.door.inequalities import Inequalities

from hindsched.errors import SolveFailed
from hindsched.online.baselines.fair_shares import (
    Present,
    all_of_the_time,
    finish_time_program,
    finish_time_shares,
    max_min_program,
    max_min_shares,
    sum_program,
)


def drawn(seed: int) -> Present:
    """One to nine jobs on one to five resources, some of which nobody or only some use."""
    draws = np.random.default_rng(seed)
    jobs, resources = draws.integers(1, 10), draws.integers(1, 6)
    use = draws.random((resources, jobs)) * (draws.random((resources, jobs)) < 0.7)
    if draws.random() < 0.5:  # ties: whole shares of a few servers
        use = np.round(use * 8) / 8
    work = draws.integers(1, 50, jobs).astype(float)
    return Present(use, work, work + draws.integers(0, 5, jobs), draws.integers(0, 9, jobs) * 1.0)


def max_min_printed(present: Present) -> cp.Problem:
    x = cp.Variable(len(present.left), nonneg=True)
    least = cp.min(cp.multiply(1 / present.equal, x))
    return cp.Problem(cp.Maximize(least), [x <= 1, present.use @ x <= 1])


def sum_printed(present: Present, least: np.ndarray) -> cp.Problem:
    x = cp.Variable(len(least))
    return cp.Problem(cp.Maximize(cp.sum(x)), [x >= least, x <= 1, present.use @ x <= 1])


def check_same(own: Inequalities, printed: cp.Problem) -> None:
    data, _, _ = printed.get_problem_data(cp.HIGHS, ignore_dpp=True)
    assert data["dims"].zero == 0
    assert np.array_equal(own.cost, data["c"])
    assert np.array_equal(own.matrix, data["A"].toarray())
    assert np.count_nonzero(own.matrix) == data["A"].nnz
    assert np.array_equal(own.right, data["b"])
    lower = data["lower_bounds"]
    assert np.array_equal(own.lower, np.full(len(own.cost), -np.inf) if lower is None else lower)
    assert data["upper_bounds"] is None or np.all(np.isposinf(data["upper_bounds"]))


@pytest.mark.parametrize("seed", range(40))
def test_rows_and_answers_are_those_of_cvxpy(seed):
    present = drawn(seed)
    printed = max_min_printed(present)
    check_same(max_min_program(present), printed)
    printed.solve(solver=cp.HIGHS, ignore_dpp=True)
    worst = printed.objective.args[0].value
    shares = max_min_shares(present)
    assert np.array_equal(shares, np.minimum(1.0, float(worst) * present.equal))
    least = (1 - 1e-4) * shares
    last = sum_printed(present, least)
    check_same(sum_program(present, least), last)
    last.solve(solver=cp.HIGHS, ignore_dpp=True)
    expected = np.clip(last.variables()[0].value, least, 1.0).round(6)
    assert np.array_equal(all_of_the_time(present, least), expected)


@pytest.mark.parametrize("seed", range(40))
def test_finish_times_are_those_of_cvxpy(seed):
    present = drawn(seed)
    alone = present.total / present.equal
    own = finish_time_program(present, alone)
    printed = finish_time_printed(present.use, present.left, alone, present.waited)
    data, _, _ = printed.get_problem_data(cp.CLARABEL, ignore_dpp=True)
    assert (data["dims"].zero, data["dims"].soc) == (0, [3] * own.triples)
    assert np.array_equal(own.cost, data["c"])
    assert np.array_equal(own.matrix, data["A"].toarray())
    assert np.count_nonzero(own.matrix) == data["A"].nnz
    assert np.array_equal(own.right, data["b"])
    worst = worst_by_chain(present.use, present.left, alone, present.waited)
    expected = np.minimum(1.0, present.left / (worst * alone - present.waited))
    assert np.array_equal(finish_time_shares(present), expected)


def test_a_point_that_clarabel_does_not_call_solved_is_found_by_the_chain(monkeypatch):
    present = drawn(3)
    expected = finish_time_shares(present)
    monkeypatch.setattr(Cones, "solve", lambda self, **settings: None)
    assert np.array_equal(finish_time_shares(present), expected)
    monkeypatch.setattr(Cones, "solve", lambda self, **settings: 2 * np.ones(len(self.cost)))
    assert np.array_equal(finish_time_shares(present), expected)


def test_shares_that_do_not_fit_are_refused():
    present = Present(np.array([[0.9, 0.9]]), np.ones(2), np.ones(2), np.zeros(2))
    with pytest.raises(SolveFailed, match="Infeasible"):
        all_of_the_time(present, np.array([0.9, 0.9]))
