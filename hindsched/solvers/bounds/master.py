"""The restricted master program of column generation (Dantzig-Wolfe), over any pricing oracle.

It chooses among schedules of the blocks that were priced so far

    max sum f_s x_s,  sum_s A_s x_s <= b,  sum_{s of j} x_s <= 1   ("= 1" for a mandatory block),

and its duals on the linking rows are the next prices. Rows are scaled by their capacity. A
mandatory block can be bought off at a price that grows while anything is bought off at the optimum,
so the master is always feasible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import highspy
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject
from hindsched.solvers.door.highs import Stop
from hindsched.solvers.door.standard_form import objective_factor
from hindsched.solvers.door.work import count_work, interrupted
from hindsched.solvers.oracles.base import PricingOracle, Response
from hindsched.solvers.oracles.decisions import Feature

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # HiGHS's names of the two
OPTIONS: JsonObject = {
    "output_flag": False, "threads": 1, "solver": "simplex", "simplex_strategy": PRIMAL_SIMPLEX,
    "presolve": "off",
}  # fmt: skip
"""Warm primal simplex was the fastest on the oasis masters; columns are added, rows are not."""
HIGHEST_COST = 1e15  # what HiGHS is given; it takes 1e20 for infinite
LIMITS = (highspy.HighsModelStatus.kIterationLimit, highspy.HighsModelStatus.kInterrupt)


@dataclass(eq=False)
class Column:
    """A schedule of a block as a column of the master."""

    block: int  # position of the block
    response: Response  # the schedule
    rows: np.ndarray  # linking rows that it uses, without duplicates
    amounts: Floats  # its use of each
    features: Mapping[Feature, int] | None = None  # what decisions limit; None: not asked, outside

    @classmethod
    def of(cls, block: int, response: Response) -> Column:
        """Read a best response."""
        rows, inverse = np.unique(response.rows, return_inverse=True)
        amounts = np.bincount(inverse, weights=response.amounts, minlength=rows.size)
        return cls(block, response, rows, np.asarray(amounts, dtype=float))

    @cached_property
    def key(self) -> tuple[int, float, bytes, bytes]:
        """By which a schedule that is known already is told."""
        rounded = self.amounts.round(9).tobytes()
        return self.block, self.response.objective, self.rows.tobytes(), rounded


class Basis(NamedTuple):
    """Where the simplex method of a `Master` ended."""

    columns: list[Column]  # the basic ones
    bought: list[Any]  # status of every column that buys off
    rows: list[Any]  # status of every row


class Master:
    """The restricted master program in HiGHS, minimising ``-f`` (or ``c``).

    Mandatory blocks are bought off at `penalty`. `capacity` is what is left of the capacities,
    by default all; `iterations` limits those of the simplex method in a solve.
    """

    def __init__(
        self, oracle: PricingOracle, penalty: float, capacity: Floats | None = None,
        iterations: int | None = None,
    ) -> None:  # fmt: skip
        self.oracle, self.penalty = oracle, penalty
        self._stop = Stop(interrupted())
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self.scale = oracle.rows.scale
        self.columns: list[Column] = []
        self._known: set[object] = set()
        self._largest, self._factor = 0.0, 1.0  # of costs, which HiGHS gets in moderate numbers
        self._strategy_changed = False
        rows, blocks, optional = oracle.rows, oracle.num_blocks, oracle.optional
        right = (rows.capacity if capacity is None else capacity) / self.scale
        lower = np.full(rows.size, -highspy.kHighsInf)
        block_lower = np.full(blocks, -highspy.kHighsInf if optional else 1.0)
        highs = highspy.Highs()
        limit = {} if iterations is None else {"simplex_iteration_limit": iterations}
        for name, value in {**OPTIONS, **limit}.items():
            if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolveFailed(f"HiGHS {highs.version()} refuses {name} = {value}")
        lower, upper = np.append(lower, block_lower), np.append(right, np.ones(blocks))
        starts, nothing = np.zeros(lower.size, dtype=np.int32), np.zeros(0, dtype=np.int32)
        highs.addRows(lower.size, lower, upper, 0, starts, nothing, np.zeros(0))
        self._stop.listen(highs)
        self._highs = highs
        self._num_bought = 0 if optional else blocks
        for block in range(self._num_bought):
            self._add(self._cost_of_buying, np.array([rows.size + block]), np.ones(1))

    @property
    def _cost_of_buying(self) -> float:
        return min(self.penalty * self._factor, HIGHEST_COST)

    def _add(self, cost: float, index: np.ndarray, values: Floats) -> None:
        index = index.astype(np.int32)
        status = self._highs.addCol(cost, 0.0, highspy.kHighsInf, index.size, index, values)
        if status == highspy.HighsStatus.kError:
            raise SolveFailed("HiGHS refuses a column of the master program")

    def add(self, column: Column) -> bool:
        """Add a column if it is new; return whether it was."""
        if column.key in self._known:
            return False
        self._known.add(column.key)
        rows, amounts, implied = column.rows, column.amounts, self.oracle.implied
        if implied is not None:  # by other rows
            rows, amounts = rows[~implied[rows]], amounts[~implied[rows]]
        cost = -self.sign * column.response.objective
        self._scale_costs(abs(cost))
        index = np.append(rows, self.oracle.rows.size + column.block)
        self._add(cost * self._factor, index, np.append(amounts / self.scale[rows], 1.0))
        self.columns.append(column)
        return True

    def _scale_costs(self, largest: float) -> None:
        """Pass all costs anew where further ones call for another factor."""
        self._largest = max(self._largest, largest)
        factor = objective_factor(np.array(self._largest))
        if factor != self._factor:
            self._factor = factor
            self.set_penalty(self.penalty)
            cost = np.array([-self.sign * each.response.objective for each in self.columns])
            index = np.arange(cost.size, dtype=np.int32) + self._num_bought
            self._highs.changeColsCost(index.size, index, factor * cost)

    def solve(self, seconds: float | None) -> tuple[float, Floats, bool] | None:
        """Value, prices and whether nothing is bought off; None if a limit ended the solve.

        Where a warm basis leads the solver astray it begins again from a cold one.
        """
        try:
            return self._solve(seconds)
        except SolveFailed:
            self._highs.clearSolver()
            return self._solve(seconds)

    def _solve(self, seconds: float | None) -> tuple[float, Floats, bool] | None:
        if not self.columns and not self._num_bought:
            return 0.0, np.zeros(self.oracle.rows.size), True  # HiGHS solves no empty program
        count_work()
        self._stop.after(seconds)
        self._highs.run()
        if self._strategy_changed:
            self._highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)
            self._strategy_changed = False
        status = self._highs.getModelStatus()
        if status in LIMITS:
            return None
        solution = self._highs.getSolution()
        if status != highspy.HighsModelStatus.kOptimal or not solution.dual_valid:
            text = self._highs.modelStatusToString(status)
            raise SolveFailed(f"the master program ended with {text}")
        value = -self.sign * self._highs.getInfo().objective_function_value / self._factor
        duals = -np.array(solution.row_dual)[: self.oracle.rows.size] / self.scale / self._factor
        bought = np.array(solution.col_value[: self._num_bought])
        return value, np.maximum(duals, 0.0), not np.any(bought > 1e-7)

    def keep(self, kept: Sequence[bool]) -> None:
        """Drop all columns but some."""
        index = np.flatnonzero(~np.array(kept, dtype=bool)).astype(np.int32)
        self._highs.deleteCols(index.size, index + self._num_bought)
        self.columns = [column for column, stays in zip(self.columns, kept, strict=True) if stays]
        self._known = {column.key for column in self.columns}

    def switch(self, on: np.ndarray) -> None:
        """Allow some columns, shape (len(columns),), and force the others to 0."""
        index = np.arange(on.size, dtype=np.int32) + self._num_bought
        upper = np.where(on, highspy.kHighsInf, 0.0)
        self._highs.changeColsBounds(index.size, index, np.zeros(on.size), upper)

    def basis(self) -> Basis:
        """Where the last solve ended."""
        basis = self._highs.getBasis()
        basic = highspy.HighsBasisStatus.kBasic
        statuses = zip(self.columns, basis.col_status[self._num_bought :], strict=True)
        columns = [column for column, status in statuses if status == basic]
        return Basis(columns, basis.col_status[: self._num_bought], basis.row_status)

    def begin_at(self, basis: Basis) -> None:
        """Begin the next solve at a basis, by the dual simplex method: bounds have changed."""
        basic, lower = highspy.HighsBasisStatus.kBasic, highspy.HighsBasisStatus.kLower
        basic_keys = {column.key for column in basis.columns}
        known = [column.key in basic_keys for column in self.columns]
        start = highspy.HighsBasis()
        start.col_status = basis.bought + [basic if kept else lower for kept in known]
        start.row_status = basis.rows
        start.valid = True
        start.alien = sum(known) < len(basic_keys)
        self._highs.setBasis(start)
        self._highs.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
        self._strategy_changed = True

    def column_values(self) -> Floats:
        """Values of the columns at the last optimum, shape (len(columns),)."""
        return np.array(self._highs.getSolution().col_value)[self._num_bought :]

    def set_capacity(self, capacity: Floats) -> None:
        """What is left of the capacities from now on; infinite where a row is to hold nothing."""
        index = np.arange(capacity.size, dtype=np.int32)
        lower = np.full(capacity.size, -highspy.kHighsInf)
        self._highs.changeRowsBounds(index.size, index, lower, capacity / self.scale)

    def set_penalty(self, penalty: float) -> None:
        """Price at which mandatory blocks are bought off from now on."""
        self.penalty = penalty
        index = np.arange(self._num_bought, dtype=np.int32)
        cost = np.full(index.size, self._cost_of_buying)
        self._highs.changeColsCost(index.size, index, cost)
