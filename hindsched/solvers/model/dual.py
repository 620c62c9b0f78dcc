"""The paper's dual as a model that a user holds; rows of schedules are added as they are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.json_types import Keywords
from hindsched.models.base import DualProgram, Prices
from hindsched.solutions.base import Violation
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import Status
from hindsched.solvers.model.held import HeldPyomo
from hindsched.solvers.model.result import ModelResult, solve_declared
from hindsched.solvers.oracles.base import BlockOracle, build_oracle

MOST_ROUNDS = 1_000
"""Rounds of row generation after which a dual is given up."""


@dataclass(frozen=True)
class DualResult:
    """An optimal point of a paper's dual.

    Parameters
    ----------
    result : ModelResult
        The solve.
    prices : dict
        Prices of the capacities by the oracle's row sets.
    payoffs : ndarray
        Payoff of each job.
    violations : list of Violation
        Constraints of the dual that the point breaks, over all schedules; empty if it is feasible.
    rows : int
        Rows of schedules that were added on the way.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.model(hs.generate("oasis", jobs=2, horizon=6)).dual().solve().violations
    []
    """

    result: ModelResult
    prices: dict[str, Floats]
    payoffs: Floats
    violations: list[Violation]
    rows: int

    @property
    def objective(self) -> float | None:
        """The dual's optimum, which bounds the primal one where the point is feasible."""
        return self.result.objective


class DualModel(HeldPyomo[DualProgram]):
    """The paper's dual, as `Model.dual` returns it.

    Parameters
    ----------
    program : DualProgram
        The declarative program.

    Examples
    --------
    >>> import hindsched as hs
    >>> dual = hs.model(hs.generate("oasis", jobs=2, horizon=6)).dual()
    >>> dual.solve().objective >= 0
    True
    """

    def solve(
        self, options: SolveOptions | Keywords | None = None, **option_keywords: object
    ) -> DualResult:
        """Solve it; a dual with a row a schedule gets the rows that best responses break.

        Raises
        ------
        SolveFailed
            If there is no optimum, or rows do not come to an end.
        """
        chosen = SolveOptions.of(options, **option_keywords)
        program = self.program
        oracle = None
        if program.grows:
            oracle = build_oracle(program.instance, program.formulation, rows="servers")
        added = 0
        for _ in range(MOST_ROUNDS):
            result = solve_declared(program, chosen)
            if result.status is not Status.OPTIMAL:
                raise SolveFailed(f"{program.title}: {result.status}")
            best = None if oracle is None else _best_payoffs(oracle)
            violations = program.violations(best)
            new = 0 if oracle is None or not violations else _add_broken_rows(program, oracle)
            added += new
            if not new:
                return DualResult(result, program.prices(), program.payoffs(), violations, added)
        raise SolveFailed(f"{program.title}: row generation has not ended")


def _best_payoffs(oracle: BlockOracle) -> Callable[[Prices], list[float | None]]:
    def best(prices: Prices) -> list[float | None]:
        flat = oracle.rows.pack(prices)
        responses = [oracle.best_response(block, flat) for block in range(oracle.num_blocks)]
        return [None if response is None else response.value for response in responses]

    return best


def _add_broken_rows(program: DualProgram, oracle: BlockOracle) -> int:
    """Add the row of each job's best schedule that earns more than the job's payoff."""
    flat = oracle.rows.pack(program.prices())
    added = 0
    for block, payoff in enumerate(program.payoffs().tolist()):
        response = oracle.best_response(block, flat)
        if response is None or response.value <= payoff + 1e-7 * max(1.0, abs(payoff)):
            continue
        use = np.zeros(oracle.rows.size)
        np.add.at(use, response.rows, response.amounts)
        program.add_row(block, response.objective, oracle.rows.unpack(use))
        added += 1
    return added
