"""Hot re-solves: equal to fresh ones, and only what changed is touched."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest

from hindsched.errors import InputError, SolveFailed
from hindsched.solvers.door import persistent
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.persistent import PersistentProgram
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.status import Status
from tests.knapsack import knapsack


def priced(jobs=12, rows=8):
    model = pyo.ConcreteModel()
    model.price = pyo.Param(range(rows), mutable=True, initialize=0.0)
    model.room = pyo.Param(range(rows), mutable=True, initialize=5.0)
    model.most = pyo.Param(mutable=True, initialize=1.0)
    model.x = pyo.Var(range(jobs), bounds=(0, model.most))
    use = {(r, j): (3 * r + 5 * j) % 7 for r in range(rows) for j in range(jobs)}
    model.use = pyo.Expression(
        range(rows), rule=lambda m, r: pyo.quicksum(use[r, j] * m.x[j] for j in range(jobs))
    )
    model.row = pyo.Constraint(range(rows), rule=lambda m, r: m.use[r] <= m.room[r])
    value = pyo.quicksum((2 + j % 5) * model.x[j] for j in range(jobs))
    paid = pyo.quicksum(model.price[r] * model.use[r] for r in range(rows))
    model.objective = pyo.Objective(expr=value - paid, sense=pyo.maximize)
    return model


@pytest.mark.parametrize("whole", [False, True])
def test_hot_re_solves_equal_fresh_ones(whole):
    rng = np.random.default_rng(0)
    model, fresh = priced(), priced()
    if whole:
        for m in (model, fresh):
            m.x.domain = pyo.Integers
    hot = PersistentProgram(model)
    objectives = set()
    for _ in range(15):
        prices, rooms = rng.uniform(0, 0.15, 8), rng.integers(6, 25, 8)
        most = int(rng.integers(1, 3))
        for m in (model, fresh):
            m.most.set_value(most)
            for r in range(8):
                m.price[r].set_value(prices[r])
                m.room[r].set_value(rooms[r])
        hot.update()
        result, expected = hot.solve(want_duals=True), solve_program(fresh, want_duals=True)
        assert result.status is expected.status is Status.OPTIMAL
        assert result.objective == pytest.approx(expected.objective, abs=1e-7)
        assert pyo.value(model.objective) == pytest.approx(result.objective)
        assert (result.duals is None) == whole
        objectives.add(round(result.objective, 6))
    assert len(objectives) > 10


def test_a_hot_program_can_become_infeasible_and_feasible_again():
    model = priced()
    model.least = pyo.Constraint(expr=pyo.quicksum(model.x[j] for j in range(12)) >= model.room[0])
    model.room[0].set_value(1)
    hot = PersistentProgram(model)
    first = hot.solve()
    model.room[0].set_value(13)
    hot.update()
    assert hot.solve().status is Status.INFEASIBLE
    assert model.x[0].value is None
    model.room[0].set_value(1)
    hot.update()
    assert hot.solve().objective == pytest.approx(first.objective)


def test_a_forgotten_update_is_noticed():
    model = priced()
    hot = PersistentProgram(model)
    assert hot.solve().status is Status.OPTIMAL
    model.price[3].set_value(0.2)
    result = hot.solve()
    assert (result.status, result.has_point) == (Status.FAILED, False)
    hot.update()
    assert hot.solve().status is Status.OPTIMAL


def test_costs_can_be_given_as_arrays():
    model = priced()
    hot = PersistentProgram(model)
    full = hot.solve().objective
    cost, offset = hot.program.cost, hot.program.offset
    hot.set_cost(cost / 2, offset + 1)
    assert hot.solve().objective == pytest.approx(full / 2 - 1)
    hot.update()
    assert hot.solve().objective == pytest.approx(full)


def test_the_incumbent_of_an_earlier_solve_is_not_offered_again():
    model = knapsack()
    model.room = pyo.Param(mutable=True, initialize=80)
    model.some = pyo.Constraint(expr=pyo.quicksum(model.x[i] for i in range(80)) <= model.room)
    hot = PersistentProgram(model, SolveOptions(gap=0.05))
    assert hot.solve().has_point
    model.room.set_value(5)
    hot.update()
    result = hot.solve(time_limit=0.0)
    assert (result.status, result.has_point) == (Status.NO_SOLUTION, False)
    assert model.x[0].value is None


def test_a_change_of_the_matrix_is_not_overlooked():
    model = priced()
    model.factor = pyo.Param(mutable=True, initialize=1.0)
    model.scaled = pyo.Constraint(expr=model.factor * model.x[0] + model.x[1] <= 1)
    hot = PersistentProgram(model)
    model.factor.set_value(2.0)
    with pytest.raises(SolveFailed, match="matrix"):
        hot.update()


def test_only_highs_is_kept_hot():
    with pytest.raises(InputError, match="highs"):
        PersistentProgram(priced(), SolveOptions(solver="glpk"))


def affine(price=1.0, least=1.0, most=3.0):
    """Params in the objective (alone and times a variable), both sides, a bound and a constant."""
    model = pyo.ConcreteModel()
    model.price = pyo.Param(range(2), mutable=True, initialize=price)
    model.least = pyo.Param(mutable=True, initialize=least)
    model.most = pyo.Param(mutable=True, initialize=most)
    model.x = pyo.Var(range(3), bounds=(0, 9))
    model.x[2].setub(2 * model.most)
    model.sum = pyo.Constraint(
        expr=(model.least, sum(model.x[i] for i in range(3)), 4 + model.most)
    )
    model.pair = pyo.Constraint(expr=model.x[0] - model.x[1] + model.least / 2 >= -model.most)
    paid = sum((1 + i) * model.price[i] * model.x[i] for i in range(2))
    model.cost = pyo.Objective(expr=paid - 0.3 * model.x[2] + 5 * model.price[0] - model.least)
    return model


def test_only_what_a_param_or_bound_changed_is_touched(monkeypatch):
    model = affine()
    hot = PersistentProgram(model)
    compiled = []
    monkeypatch.setattr(persistent, "compile_program", lambda m: compiled.append(m))
    rng = np.random.default_rng(4)
    for step in range(40):
        price, least, most = rng.uniform(-1, 2), rng.uniform(0, 2), rng.uniform(1, 4)
        if step % 3:
            for i in range(2):
                model.price[i].set_value(price)
        if step % 2:
            model.least.set_value(least)
            model.most.set_value(most)
        if step % 5 == 0:
            model.x[0].setub(float(rng.uniform(1, 9)))
        hot.update()
        found = hot.solve(want_duals=True)
        fresh = affine(pyo.value(model.price[0]), pyo.value(model.least), pyo.value(model.most))
        fresh.x[0].setub(model.x[0].ub)
        monkeypatch.undo()
        expected = solve_program(fresh, want_duals=True)
        monkeypatch.setattr(persistent, "compile_program", lambda m: compiled.append(m))
        assert found.objective == pytest.approx(expected.objective, abs=1e-9)
        assert found.duals[model.sum] == pytest.approx(expected.duals[fresh.sum], abs=1e-9)
    assert compiled == []


def test_fixing_a_variable_is_read_anew_or_refused():
    model = affine()
    hot = PersistentProgram(model)
    model.x[0].fix(1.0)
    assert hot.solve().status is Status.FAILED
    with pytest.raises(SolveFailed, match="matrix"):
        hot.update()


def test_a_param_that_enters_otherwise_than_linearly_is_read_anew():
    model = affine()
    model.curved = pyo.Constraint(expr=model.x[0] + model.x[1] <= model.most**2)
    hot = PersistentProgram(model)
    model.most.set_value(1.5)
    hot.update()
    fresh = affine(most=1.5)
    fresh.curved = pyo.Constraint(expr=fresh.x[0] + fresh.x[1] <= 1.5**2)
    assert hot.solve().objective == pytest.approx(solve_program(fresh).objective)
