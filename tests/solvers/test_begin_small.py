"""Small relaxations begin without presolve, in the simplex that their zero point suggests."""

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.standard_form import compile_program


def packing(least=0.0):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), bounds=(0, 2))
    model.room = pyo.Constraint(expr=pyo.quicksum(model.x.values()) <= 4)
    model.least = pyo.Constraint(expr=model.x[0] + model.x[1] >= least)
    model.worth = pyo.Objective(
        expr=pyo.quicksum((i + 1) * model.x[i] for i in model.x), sense=pyo.maximize
    )
    return compile_program(model)


def chosen(solver):
    names = ("presolve", "simplex_strategy", "simplex_scale_strategy")
    return tuple(solver.highs.getOptionValue(name)[1] for name in names)


@pytest.mark.parametrize(("least", "options"), [(0.0, ("off", 4, 0)), (1.0, ("off", 1, 2))])
def test_chooses_by_the_zero_point(least, options):
    program = packing(least)
    solver = HighsProgram(program, SolveOptions())
    solver.begin_small()
    assert chosen(solver) == options
    np.testing.assert_allclose(program.sign * solver.solve().bound, 10.0)


def test_options_of_the_caller_stay():
    assert highspy.Highs().getOptionValue("simplex_strategy")[1] == 1
    own = SolveOptions(solver_options={"simplex_scale_strategy": 1, "presolve": "on"})
    solver = HighsProgram(packing(), own)
    solver.begin_small()
    assert chosen(solver) == ("on", 4, 1)
