"""The same cases for every solver behind the door; one that is not installed is skipped."""

from __future__ import annotations

import importlib.util
import sys

import pyomo.environ as pyo
import pytest

from hindsched.errors import InputError
from hindsched.solvers.door.options import SOLVERS, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Status, StoppedBy
from tests.knapsack import knapsack

NEEDS = {"scip": "pyscipopt", "gurobi": "gurobipy"}
WITH_DUALS = ("highs",)


def is_installed(solver: str) -> bool:
    need = NEEDS.get(solver)
    if need is None:
        return True
    return importlib.util.find_spec(need) is not None


def require(name):
    if not is_installed(name):
        pytest.skip(f"solver {name} is not installed")
    return name


@pytest.fixture(params=SOLVERS)
def solver(request):
    return require(request.param)


@pytest.fixture(params=WITH_DUALS)
def dual_solver(request):
    return require(request.param)


def production(sense, *, whole=False, flip=False):
    """Optimum 22 at (2, 6), unique; `flip` writes it as a minimisation of the negation."""
    model = pyo.ConcreteModel()
    domain = pyo.NonNegativeIntegers if whole else pyo.NonNegativeReals
    model.x = pyo.Var(domain=domain)
    model.y = pyo.Var(domain=domain)
    model.machine = pyo.Constraint(expr=2 * model.x + model.y <= 10)
    model.labour = pyo.Constraint(expr=model.x + model.y <= 8)
    model.contract = pyo.Constraint(expr=model.x + 3 * model.y >= 1)
    model.range = pyo.Constraint(expr=(-5, model.x - model.y, 50))
    value = 3 * model.x + 2 * model.y + 4
    model.objective = pyo.Objective(expr=-value if flip else value, sense=sense)
    return model


def cover(sense):
    """``min 5x + 4y`` over ``x + 2y >= 6``, ``3x + y >= 8``: optimum 18 at (2, 2)."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.NonNegativeReals)
    model.y = pyo.Var(domain=pyo.NonNegativeReals)
    model.first = pyo.Constraint(expr=model.x + 2 * model.y >= 6)
    model.second = pyo.Constraint(expr=3 * model.x + model.y >= 8)
    cost = 5 * model.x + 4 * model.y
    model.objective = pyo.Objective(expr=cost if sense == pyo.minimize else -cost, sense=sense)
    return model


def hard():
    """A program that takes any solver more than a few seconds."""
    return knapsack(items=70, rows=40, seed=1)


def options(solver, **more):
    return SolveOptions(solver=solver, **more)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("flip", [False, True])
def test_optimal(solver, whole, flip):
    sense = pyo.minimize if flip else pyo.maximize
    model = production(sense, whole=whole, flip=flip)
    result = solve_program(model, options(solver))
    assert result.status is Status.OPTIMAL
    assert result.stopped_by is StoppedBy.GAP
    expected = -22.0 if flip else 22.0
    assert result.has_point
    assert result.objective == pytest.approx(expected)
    assert result.bound == pytest.approx(expected)
    assert (model.x.value, model.y.value) == pytest.approx((2, 6))
    if not whole:
        assert result.bound == result.objective, "trap 6: the bound of an LP is its objective"
    else:
        assert isinstance(model.x.value, int)
    assert result.backend.startswith(solver)


@pytest.mark.parametrize("whole", [False, True])
def test_infeasible_leaves_no_stale_values(solver, whole):
    model = production(pyo.maximize, whole=whole)
    model.x.value, model.y.value = 1, 1
    model.no = pyo.Constraint(expr=model.x - 2 * model.y >= 20)
    result = solve_program(model, options(solver))
    assert result.status is Status.INFEASIBLE
    assert result.stopped_by is StoppedBy.INFEASIBLE
    assert (result.has_point, result.objective, result.bound) == (False, None, None)
    assert model.x.value is None
    assert model.y.value is None


@pytest.mark.parametrize("whole", [False, True])
def test_unbounded_is_told_from_infeasible(solver, whole):
    model = production(pyo.maximize, whole=whole)
    model.machine.deactivate()
    model.labour.deactivate()
    result = solve_program(model, options(solver))
    assert result.status is Status.UNBOUNDED
    assert (result.has_point, result.objective, result.bound) == (False, None, None)
    assert model.x.value is None


def test_time_limit_without_an_incumbent(solver):
    model = hard()
    for i in range(70):
        model.x[i].value = 1  # not feasible: no start, and must not survive
    # A parity that no solver sees at once: no feasible point is at hand within no time.
    model.k = pyo.Var(domain=pyo.Integers, bounds=(0, 10**6))
    model.parity = pyo.Constraint(
        expr=pyo.quicksum((2 * i + 1001) * model.x[i] for i in range(70)) == 2 * model.k + 20011
    )
    result = solve_program(model, options(solver, time_limit=0.0))
    assert result.stopped_by in (StoppedBy.TIME_LIMIT, StoppedBy.GAP)
    if result.stopped_by is StoppedBy.TIME_LIMIT and not result.has_point:
        assert result.status is Status.NO_SOLUTION
        assert result.objective is None
        assert model.x[0].value is None
    else:
        assert solver == "gurobi", "its root is not timed"
        assert result.objective == pytest.approx(pyo.value(model.objective))


def test_time_limit_with_an_incumbent_keeps_it_and_the_bound(solver):
    model = hard()
    for limit in (1.0, 4.0, 16.0):  # a busy machine may leave a solver no time for a point
        result = solve_program(model, options(solver, time_limit=limit))
        if result.has_point:
            break
    assert result.status is Status.FEASIBLE
    assert result.stopped_by is StoppedBy.TIME_LIMIT
    assert result.objective == pytest.approx(pyo.value(model.objective))
    assert result.objective > 0
    assert result.bound > result.objective, "upper when maximising"
    assert all(model.x[i].value in (0, 1) for i in range(70))


def test_a_start_is_never_lost(solver):
    model = hard()
    for i in range(70):
        model.x[i].value = 1 if i == 3 else 0
    value = pyo.value(model.objective)
    result = solve_program(model, options(solver, time_limit=0.0), start=True)
    assert result.has_point
    assert result.objective >= value > 0
    assert result.status is Status.FEASIBLE


@pytest.mark.parametrize("name", ["x", "rows", "both"])
def test_empty(solver, name):
    model = pyo.ConcreteModel()
    if name != "both":
        model.x = pyo.Var(bounds=(1, 5))
        model.objective = pyo.Objective(expr=2 * model.x + 1, sense=pyo.maximize)
    if name == "rows":
        model.x.fix(2)
        model.row = pyo.Constraint(expr=model.x <= 3)
    result = solve_program(model, options(solver))
    assert result.status is Status.OPTIMAL
    assert result.objective == {"x": 11, "rows": 5, "both": 0}[name]
    assert result.bound == result.objective
    assert ("without a solver" in result.backend) == (name != "x")


def test_duals_have_one_sign_convention(dual_solver):
    for flip, sign in ((False, 1), (True, -1)):
        model = production(pyo.minimize if flip else pyo.maximize, flip=flip)
        result = solve_program(model, options(dual_solver), want_duals=True)
        # One more machine hour: (2, 6) moves by (1, -1), worth 1; one of labour: (-1, 2), worth 1.
        duals = {row.name: result.duals[row] for row in (model.machine, model.labour)}
        assert duals == pytest.approx({"machine": sign, "labour": sign})
        assert result.duals[model.contract] == pytest.approx(0)
        assert result.duals[model.range] == pytest.approx(0)
        assert result.reduced_costs[model.x] == pytest.approx(0)
        model = cover(pyo.maximize if flip else pyo.minimize)
        result = solve_program(model, options(dual_solver), want_duals=True)
        duals = [result.duals[model.first], result.duals[model.second]]
        assert duals == pytest.approx([sign * 7 / 5, sign * 6 / 5])


OPTIONS = {
    "no-such-option": 1, "mip_rel_gapp": 1e-3, "presolve": "sometimes", "simplex_strategy": "dual",
    "threads": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_a_solver_does_not_take_is_an_error(solver, name):
    if solver != "highs" and name != "no-such-option":
        pytest.skip("an option of HiGHS")
    model = production(pyo.maximize, whole=True)
    with pytest.raises(InputError, match=rf"solver_options\.{name}"):
        solve_program(model, options(solver, solver_options={name: OPTIONS[name]}))
    if solver == "highs":
        own = options(solver, solver_options={"mip_max_nodes": 1}, time_limit=60)
        assert solve_program(knapsack(), own).stopped_by is StoppedBy.ITERATION_LIMIT


def test_a_time_limit_by_the_solver_s_own_name_is_not_lost():
    """HiGHS's own limit is set anew for every run: given as a solver option it had no effect."""
    with pytest.raises(InputError, match=r"solver_options\.time_limit: 5.*time_limit of the solve"):
        solve_program(hard(), options("highs", solver_options={"time_limit": 5}))


@pytest.mark.parametrize("name", ["scip", "gurobi"])
def test_a_missing_solver_is_named(name, monkeypatch):
    for module in ("pyscipopt", "gurobipy"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="is not installed"):
        solve_program(production(pyo.maximize), options(name))
