"""Objectives and rows of extreme size: powers of two in the door, digits untouched."""

import numpy as np
import pyomo.environ as pyo
import pytest

import hindsched as hs
from hindsched.instances.io import parse_instance
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import compile_program as compiled
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.standard_form import Scaling
from tests.second_opinion import instances

MONEY = 1.25e12


def costly(unit):
    """Two of three, with the cost on a row of its own."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.cost = pyo.Var(bounds=(0, None))
    model.two = pyo.Constraint(expr=sum(model.x.values()) >= 2)
    spent = unit * (3 * model.x[0] + 5 * model.x[1] + 7 * model.x[2])
    model.paid = pyo.Constraint(expr=model.cost >= spent)
    model.least = pyo.Objective(expr=model.cost)
    return model


def test_moderate_programs_are_left_as_they_are():
    scaling = Scaling.of(compiled(costly(1000.0)))
    assert (scaling.rows == 1).all()
    assert (scaling.columns == 1).all()
    assert scaling.objective == 1


def test_integer_columns_are_never_scaled_and_factors_are_powers_of_two():
    program = compiled(costly(3e13))
    scaling = Scaling.of(program)
    assert (scaling.columns[program.integer] == 1).all()
    factors = np.concatenate([scaling.rows, scaling.columns, [scaling.objective]])
    assert (np.frexp(factors)[0] == 0.5).all()
    scaled = abs(scaling.matrix(program.matrix)).data
    assert scaled.max() <= 8
    assert scaled.min() >= 1 / 8


@pytest.mark.parametrize("unit", [1e-7, 1.0, 3e13])
def test_value_bound_and_duals_are_those_of_the_program_as_it_was(unit):
    found = solve_program(costly(unit), SolveOptions())
    assert found.objective == pytest.approx(8 * unit, rel=1e-12)
    assert found.bound == pytest.approx(8 * unit, rel=1e-9)
    model = costly(unit)
    for x in model.x.values():
        x.domain = pyo.UnitInterval
    found = solve_program(model, SolveOptions(), want_duals=True)
    assert found.objective == pytest.approx(8 * unit, rel=1e-9)
    assert found.duals[model.two] == pytest.approx(5 * unit, rel=1e-9)
    assert abs(found.duals[model.paid]) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("seed", [33, 4])
def test_money_times_a_factor_costs_that_factor(seed):
    """At 5e12 HiGHS called a point optimal with a bound beyond a better, checked schedule."""
    plain = instances.mlbroker(seed)
    dear = instances.mlbroker(seed)
    for center in dear["datacenters"]:
        for price in center["prices"].values():
            price["unit_usd"] *= MONEY
            price["discounted_usd"] *= MONEY
    dear["transfer_usd_per_gb"] = [[d * MONEY for d in row] for row in dear["transfer_usd_per_gb"]]
    for job in dear["jobs"]:
        job["deployment_usd"] *= MONEY
    one, other = (
        hs.solve(parse_instance(data), "milp", formulation="paper") for data in (plain, dear)
    )
    assert str(one.status) == str(other.status) == "optimal"
    assert other.objective == pytest.approx(MONEY * one.objective, rel=2e-6)
