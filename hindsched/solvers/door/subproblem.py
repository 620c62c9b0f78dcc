"""A block's best response from the declarative subproblem instead of the oracle.

The subproblem is the same block as in the offline program; its optimum and the oracle's are equal,
and schedules where the optimum is unique.
"""

from __future__ import annotations

from dataclasses import replace

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.models.base import subproblem
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.status import Status
from hindsched.solvers.oracles.base import BlockOracle, Response

EXACT = SolveOptions(gap=1e-9)


def model_response(
    oracle: BlockOracle,
    block: int,
    prices: Floats,
    residual: Floats | None = None,
    options: SolveOptions = EXACT,
) -> Response | None:
    """Best schedule of one block, by its integer program.

    Parameters
    ----------
    oracle : BlockOracle
        With one row a server; names the rows of `prices` and `residual`.
    block, prices, residual
        As for `BlockOracle.best_response`.
    options : SolveOptions
        How to solve; without a time limit.

    Returns
    -------
    Response or None
        As the oracle's, also in that None says that nothing fits.

    Raises
    ------
    SolveFailed
        If the solver proves neither an optimum nor infeasibility.
    """
    program = subproblem(oracle.instance, block, oracle.formulation)
    left = None if residual is None else oracle.rows.unpack(residual)
    program.set(oracle.rows.unpack(prices), left)
    result = solve_program(program.model, options)
    if result.status == Status.INFEASIBLE:
        return None
    if result.status != Status.OPTIMAL:
        raise SolveFailed(f"subproblem of {oracle.block_name(block)}: {result.status}")
    solution = program.extract()
    response = None if solution is None else oracle.use_of(solution)[block]
    if response is None:
        raise SolveFailed(f"subproblem of {oracle.block_name(block)}: its point is no schedule")
    cost = float(prices[response.rows] @ response.amounts)
    value = response.objective - cost if oracle.sense == "max" else response.objective + cost
    return replace(response, value=value)
