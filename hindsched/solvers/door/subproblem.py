"""A block's best response from the declarative subproblem instead of the oracle.

The subproblem is the same block as in the offline program; its optimum and the oracle's are equal.
A solver tells no differences below its tolerances and knows no tie rule: where its schedule is not
better than the oracle's, that is taken, whose ties are those of `kernels.ties`. The program stays
as long as its job is undecided: prices and what is left are set.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.models.base import Prices, Subproblem, subproblem
from hindsched.solutions.base import Solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Status
from hindsched.solvers.oracles.base import PlacingOracle, PricingOracle, Response

EXACT = SolveOptions(gap=1e-9)
UNTOLD = 1e-6  # payoffs that differ by less, absolutely or relatively, a solver cannot tell apart
LOST = 1e-4  # what tolerances may add up to in the many terms of a payoff


def solve_subproblem(
    program: Subproblem, prices: Prices, room: Prices | None = None, *more: Any
) -> Any:
    """The block's best schedule at what `set` takes, of the job alone; None if nothing fits.

    `SolveFailed` where the solver proves neither an optimum nor infeasibility.
    """
    program.set(prices, room, *more)
    result = solve_program(program.model, EXACT)
    if result.status == Status.INFEASIBLE:
        return None
    solution = program.extract() if result.status == Status.OPTIMAL else None
    if solution is None:
        name = program.instance.jobs[program.position].name
        raise SolveFailed(f"subproblem of {name}: {result.status}")
    return solution


def model_response(
    oracle: PlacingOracle, block: int, prices: Floats, residual: Floats | None = None
) -> Response | None:
    """`PlacingOracle.best_response` by a subproblem solved once, ties by the oracle's rule."""
    program = subproblem(oracle.instance, block, oracle.formulation)
    left = None if residual is None else oracle.rows.unpack(residual)
    solution = solve_subproblem(program, oracle.rows.unpack(prices), left)
    solved = response_of(oracle, block, solution, prices)
    other = oracle.best_response(block, prices, residual)
    if solved is None or other is None:
        return solved
    size, sign = max(abs(solved.objective), abs(solved.value - solved.objective)), 1
    if oracle.sense == "min":
        sign = -1
    return solved if pays_more(sign * solved.value, sign * other.value, size) else other


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


def pays_more(payoff: float, other: float, size: float) -> bool:
    """Whether a solver's payoff is above that of a known schedule, as far as it can tell.

    `size` is that of their terms. `SolveFailed` if it is below by more than a solver's tolerances
    may add up to: the program is wrong.
    """
    unit = max(1.0, size, abs(other))
    if other - payoff > LOST * unit:
        raise SolveFailed(f"a solver's best payoff is {payoff}, where a schedule pays {other}")
    return payoff - other > UNTOLD * unit
