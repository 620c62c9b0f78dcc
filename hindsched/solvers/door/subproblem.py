"""A block's best response from the declarative subproblem instead of the oracle.

The subproblem is the same block as in the offline program; its optimum and the oracle's are equal.
A solver tells no differences below its tolerances and knows no tie rule: of schedules that it
cannot tell apart the oracle's is taken, whose ties are those of `kernels.ties`. The Pyomo program
stays, prices and what is left change; it is compiled anew for every solve, which takes no longer
than Pyomo's persistent interfaces do.
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
UNTOLD = 1e-6
"""Payoffs that differ by less, absolutely or relatively, a solver cannot tell apart."""


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
    """`KeptSubproblem.best_response` of a block that is asked once, ties by the oracle's rule."""
    found = KeptSubproblem(oracle, block).best_response(prices, residual)
    other = oracle.best_response(block, prices, residual)
    if found is None or other is None:
        return found
    size = max(abs(found.objective), abs(found.value - found.objective))
    return other if pays_alike(found.value, other.value, size) else found


def pays_alike(found: float, other: float, size: float) -> bool:
    """Whether a solver cannot tell two payoffs apart whose terms have this size."""
    return abs(found - other) <= UNTOLD * max(1.0, size, abs(other))
