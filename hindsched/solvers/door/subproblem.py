"""A block's best response by its declarative subproblem: an integer program decides.

The subproblem is the same block as in the offline program. Among schedules whose payoffs a solver
cannot tell apart the one tie rule (`kernels.ties`) decides, by further solves of the same program:
what has been decided stays as a row. The oracle is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.models.base import Prices, Subproblem, Terms, subproblem
from hindsched.solutions.base import Solution
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import believe
from hindsched.solvers.door.result import Answer, Status
from hindsched.solvers.door.standard_form import (
    LinearProgram,
    TriviallyInfeasibleError,
    compile_program,
)
from hindsched.solvers.oracles.base import PlacingOracle, PricingOracle, Response

EXACT = SolveOptions(
    gap=1e-9,
    solver_options={"mip_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9},
)
INDISTINCT = 1e-8
"""Share of the size of its terms by which an objective may differ from its optimum and be equal: a
solver tells no smaller differences."""


def solve_subproblem(
    program: Subproblem, prices: Prices, room: Prices | None = None, *more: Any
) -> Any:
    """The block's best schedule at what `set` takes, of the job alone; None if nothing fits.

    `SolveFailed` where the solver proves neither an optimum nor infeasibility.
    """
    program.set(prices, room, *more)
    try:
        compiled = compile_program(program.model)
    except TriviallyInfeasibleError:
        return None
    answer = solve_in_turn(compiled, program.ties())
    if answer.status is Status.INFEASIBLE:
        return None
    solution = None
    if answer.status is Status.OPTIMAL and answer.point is not None:
        compiled.load(answer.point)
        solution = program.extract()
    if solution is None:
        name = program.instance.jobs[program.position].name
        raise SolveFailed(f"subproblem of {name}: {answer.status}")
    return solution


def solve_in_turn(program: LinearProgram, ties: Iterable[Terms]) -> Answer:
    """Solve a program, then minimise the ties, one after the other, among what is optimal."""
    place = {id(variable): at for at, variable in enumerate(program.columns)}
    highs = HighsProgram(program, EXACT)
    answer = believe(program, highs.solve())
    for terms in ties:
        point = answer.point
        if answer.status is not Status.OPTIMAL or point is None:
            break
        size, cost = float(np.abs(program.cost * point).sum()), np.zeros(len(place))
        for variable, value in terms:
            if id(variable) in place:
                cost[place[id(variable)]] += value
        program = replace(
            program, cost=cost, offset=0.0,
            matrix=sp.csc_array(sp.vstack([program.matrix, sp.csc_array(program.cost[None])])),
            row_lower=np.append(program.row_lower, -np.inf),
            row_upper=np.append(program.row_upper, program.cost @ point + INDISTINCT * size),
            rows=[*program.rows, program.objective],
        )  # fmt: skip
        highs.turn_to(program, point, size)
        answer = believe(program, highs.solve())
    return answer


def model_response(
    oracle: PlacingOracle, block: int, prices: Floats, residual: Floats | None = None
) -> Response | None:
    """`PlacingOracle.best_response` by a subproblem; of the oracle its rows alone are read."""
    program = subproblem(oracle.instance, block, oracle.formulation)
    left = None if residual is None else oracle.rows.unpack(residual)
    solution = solve_subproblem(program, oracle.rows.unpack(prices), left)
    return response_of(oracle, block, solution, prices)


def response_of(
    oracle: PricingOracle, block: int, solution: Solution | None, prices: Floats
) -> Response | None:
    """A solution of a subproblem as the block's response at `prices`."""
    response = None if solution is None else oracle.use_of(solution)[block]
    if response is None:
        return None
    cost = float(prices[response.rows] @ response.amounts)
    value = response.objective - cost if oracle.sense == "max" else response.objective + cost
    return replace(response, value=value)
