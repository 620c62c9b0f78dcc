"""A block's best response from the declarative subproblem instead of the oracle.

The subproblem is the same block as in the offline program; its optimum and the oracle's are equal,
and schedules where the optimum is unique. The Pyomo program stays, prices and what is left change;
it is compiled anew for every solve, which takes no longer than Pyomo's persistent interfaces do.
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


class KeptSubproblem:
    """One block's integer program, solved again and again at other prices.

    Parameters
    ----------
    oracle : BlockOracle
        With one row a server; names the rows of prices and of what is left.
    block : int
        Position of the block.
    options : SolveOptions
        How to solve; without a time limit.
    """

    def __init__(self, oracle: BlockOracle, block: int, options: SolveOptions = EXACT) -> None:
        self.oracle, self.block, self.options = oracle, block, options
        self.program = subproblem(oracle.instance, block, oracle.formulation)

    def best_response(self, prices: Floats, residual: Floats | None = None) -> Response | None:
        """Best schedule of the block, as `BlockOracle.best_response`; None if nothing fits.

        Raises
        ------
        SolveFailed
            If the solver proves neither an optimum nor infeasibility.
        """
        oracle, name = self.oracle, f"subproblem of {self.oracle.block_name(self.block)}"
        left = None if residual is None else oracle.rows.unpack(residual)
        self.program.set(oracle.rows.unpack(prices), left)
        result = solve_program(self.program.model, self.options)
        if result.status == Status.INFEASIBLE:
            return None
        if result.status != Status.OPTIMAL:
            raise SolveFailed(f"{name}: {result.status}")
        solution = self.program.extract()
        response = None if solution is None else oracle.use_of(solution)[self.block]
        if response is None:
            raise SolveFailed(f"{name}: its point is no schedule")
        cost = float(prices[response.rows] @ response.amounts)
        value = response.objective - cost if oracle.sense == "max" else response.objective + cost
        return replace(response, value=value)


def model_response(
    oracle: BlockOracle, block: int, prices: Floats, residual: Floats | None = None
) -> Response | None:
    """`KeptSubproblem.best_response` of a block that is asked once."""
    return KeptSubproblem(oracle, block).best_response(prices, residual)
