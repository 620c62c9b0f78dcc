"""Which rows of an infeasible program conflict, as HiGHS finds it for the linear relaxation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo

from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Status
from hindsched.solvers.door.standard_form import compile_program

STRATEGY = highspy.IisStrategy.kIisStrategyFromLp, highspy.IisStrategy.kIisStrategyIrreducible


def find_conflict(model: pyo.ConcreteModel, time_limit: float = 30.0) -> list[Any]:
    """Find constraints of an infeasible model that cannot hold together, fractions allowed.

    Without any one of them the others can. Empty if the linear relaxation has a point, or if the
    time is too short.
    """
    program = compile_program(model)
    continuous = np.zeros_like(program.integer)
    relaxed = replace(program, cost=0 * program.cost, offset=0.0, integer=continuous)
    highs = HighsProgram(relaxed, SolveOptions())
    highs.highs.setOptionValue("iis_strategy", sum(map(int, STRATEGY)))
    if highs.solve(time_limit).status is not Status.INFEASIBLE:
        return []
    _, found = highs.highs.getIis()
    return list({id(program.rows[row]): program.rows[row] for row in found.row_index_}.values())
