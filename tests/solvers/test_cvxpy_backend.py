"""Convex programs: the chain, its log, refused points, duals, and the traps of CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest

from hindsched.solvers.door.convex import DEFAULT_CHAIN, LINEAR_CHAIN, ConvexStep, solve_convex
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Status, StoppedBy


def entropy(limit=1.0):
    x = cp.Variable(4, nonneg=True)
    target = np.array([0.1, 0.2, 0.3, 0.9])
    objective = cp.Minimize(cp.sum(cp.kl_div(x, target)) + cp.sum(x))
    return cp.Problem(objective, [cp.sum(x) >= limit]), x


def test_a_convex_program_is_solved_by_the_first_step():
    problem, x = entropy()
    result = solve_convex(problem)
    assert (result.status, result.stopped_by) == (Status.OPTIMAL, StoppedBy.GAP)
    assert result.backend == "clarabel"
    assert [step.name for step in result.details["steps"]] == ["clarabel"]
    # min sum x ln(x/a) + a subject to sum x = 1: x = a / sum a.
    target = np.array([0.1, 0.2, 0.3, 0.9])
    assert x.value == pytest.approx(target / target.sum(), abs=1e-5)
    assert result.objective == pytest.approx(np.log(1 / 1.5) + 1.5, abs=1e-6)
    assert result.details["residual"] <= 1e-5
    # The derivative of ln(b/1.5) b + 1.5 at b = 1.
    assert result.duals[problem.constraints[0]] == pytest.approx(np.log(1 / 1.5) + 1, abs=1e-3)


def test_a_failed_step_is_logged_and_the_next_one_answers(caplog):
    stalls = ConvexStep("stalls", cp.CLARABEL, {"max_iter": 1})
    problem, _ = entropy()
    result = solve_convex(problem, chain=[stalls, *DEFAULT_CHAIN])
    assert result.status is Status.OPTIMAL
    assert [step.name for step in result.details["steps"]] == ["stalls", "clarabel"]
    assert result.details["steps"][0].refused
    assert "stalls" in caplog.text


def test_a_chain_that_ends_without_a_point_has_failed():
    stalls = ConvexStep("stalls", cp.CLARABEL, {"max_iter": 1})
    problem, x = entropy()
    x.value = np.ones(4)
    result = solve_convex(problem, chain=[stalls])
    assert result.status is Status.FAILED
    assert (result.has_point, result.objective) == (False, None)
    assert x.value is None, "no stale value"
    assert result.duals is None


def test_a_point_that_violates_a_constraint_is_refused(monkeypatch):
    problem, x = entropy()
    solve = cp.Problem.solve

    def lie(self, **settings):
        solve(self, **settings)
        x.value = x.value / 2

    monkeypatch.setattr(cp.Problem, "solve", lie)
    result = solve_convex(problem)
    assert result.status is Status.FAILED
    assert all("violates" in step.refused for step in result.details["steps"])


@pytest.mark.parametrize("kind", ["linear", "convex"])
def test_infeasible_and_unbounded(kind):
    x = cp.Variable(2)
    extra = cp.sum(cp.exp(x)) if kind == "convex" else 0
    problem = cp.Problem(cp.Minimize(cp.sum(x) + extra), [x >= 1, cp.sum(x) <= 1])
    result = solve_convex(problem)
    assert (result.status, result.has_point) == (Status.INFEASIBLE, False)
    assert x.value is None
    free = cp.Variable(2)
    extra = cp.sum(cp.exp(free)) if kind == "convex" else 0
    problem = cp.Problem(cp.Maximize(cp.sum(free) - extra + 2 * cp.sum(free)), [free >= 0])
    if kind == "convex":
        problem = cp.Problem(cp.Minimize(cp.sum(free) + cp.exp(free[0])), [free[1] <= 0])
    result = solve_convex(problem)
    assert (result.status, result.has_point) == (Status.UNBOUNDED, False)
    assert free.value is None


@pytest.mark.parametrize("chain", [LINEAR_CHAIN, DEFAULT_CHAIN[:1]], ids=["highs", "clarabel"])
@pytest.mark.parametrize("sense", ["max", "min"])
def test_duals_are_those_of_pyomo(sense, chain):
    x = cp.Variable(2, nonneg=True)
    value = 3 * x[0] + 2 * x[1] - 0.5 * x[0]
    sign = 1 if sense == "max" else -1
    goal = cp.Maximize(value) if sense == "max" else cp.Minimize(-value)
    rows = [2 * x[0] + x[1] <= 10, x[0] + x[1] <= 8, x[1] >= 6.5, x[0] - 0.25 * x[1] == -1]
    convex = solve_convex(cp.Problem(goal, rows), chain=chain)

    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], domain=pyo.NonNegativeReals)
    y = model.x
    model.row = pyo.ConstraintList()
    model.row.add(2 * y[0] + y[1] <= 10)
    model.row.add(y[0] + y[1] <= 8)
    model.row.add(y[1] >= 6.5)
    model.row.add(y[0] - 0.25 * y[1] == -1)
    value = sign * (2.5 * y[0] + 2 * y[1])
    pyomo_sense = pyo.maximize if sense == "max" else pyo.minimize
    model.objective = pyo.Objective(expr=value, sense=pyomo_sense)
    linear = solve_program(model, want_duals=True)
    assert convex.objective == pytest.approx(linear.objective, rel=1e-6)
    expected = [linear.duals[model.row[i]] for i in (1, 2, 3, 4)]
    assert [float(convex.duals[row]) for row in rows] == pytest.approx(expected, abs=1e-5)
    assert sum(abs(dual) > 0.1 for dual in expected) >= 2
