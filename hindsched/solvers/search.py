"""Feasible solutions by dual-guided insertion and large-neighbourhood search, for any family.

The oracle does all the work that a family must know: with one linking row a server
(``build_oracle(..., rows="servers")``) and residual capacities, a best response is the best
schedule of one job that still fits. The search only decides which jobs to take out and in which
order to put jobs back:

- insertion: jobs in the order of their worth at the dual prices relative to their worth in an empty
  cluster, each at its best response to (a multiple of) the prices;
- improvement: take out a few jobs that run at about the same time, try them and those nearby that
  are left out in a noisy order, at a random multiple of the prices, and keep the outcome unless it
  is worse by more than a random amount.

The prices come from a bounding engine. They make a job avoid what others need more, so that the
order matters less. Which order helps depends on the family (the largest jobs first where few large
jobs hold most of the value), so several compete: each is drawn in proportion to what it has
achieved lately. The amount that an outcome may be worse falls during a cycle of neighbourhoods,
after which the search returns to its best solution and warms up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.kernel import Violation
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solvers.door.work import count_work
from hindsched.solvers.oracles.base import PlacingOracle, Response

PRICE_MULTIPLES = (0.05, 0.3, 0.6, 0.9, 1.0, 1.15, 1.3)
"""Multiples of the dual prices at which jobs are put back."""
MOST_REMOVED, MOST_INVITED = 12, 24
"""Jobs taken out, and jobs left out that are tried, in one neighbourhood at most."""
ORDERS = ("worth", "size", "random")
"""Orders of insertion: by worth at the prices relative to that in an empty cluster, by objective in
an empty cluster, and none."""
WORTH_NOISE, SIZE_NOISE = 0.25, 0.5
"""Standard deviations of the noise on the worth and on the logarithm of the size."""
FIRST_ATTEMPTS = (
    ("size", 0.0, 0.3), ("worth", 0.0, 0.6), ("size", 0.0, 0.6), ("worth", 0.0, 1.0),
    ("worth", 0.0, 0.3), ("worth", 0.0, 0.0), ("worth", 1.0, 1.0), ("worth", 1.0, 0.6),
)  # fmt: skip
"""Order, factor on its noise and multiple of the prices of the insertions of all jobs, those that
do well at poor prices first."""
FOUND_BEST, FOUND_BETTER = 20.0, 3.0
"""Score of an order that led to a new best solution, and to one better than the present one."""
PRIOR_SCORE, PRIOR_USES = 3.0, 20
"""What every order is assumed to have achieved before its first use, so that none dies out."""
HOT, COLD = 5e-3, 1e-4
"""Mean size, relative to the objective, of a worsening that is kept: at a cycle's begin and end."""
FIRST_CYCLE, LONGEST_CYCLE = 125, 1000
"""Neighbourhoods in the first cycle; each further one is twice as long, up to the longest. At its
end residual capacities are computed anew and the best solution returns."""


class NeighbourhoodSearch:
    """The search, resumable; `objective` is that of the best schedules found so far.

    The oracle has one linking row a server, on which schedules are placed; `prices` guide the
    search, `start` is a feasible solution; `check` is called between jobs and may raise. A job that
    its block leaves out is one whose response has no plan.
    """

    def __init__(
        self, oracle: PlacingOracle, prices: Floats | None = None, *, seed: int = 0,
        start: Solution | None = None, check: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.oracle = oracle
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.iterations = 0
        self._scores = np.full(len(ORDERS), PRIOR_SCORE)
        self._uses = np.full(len(ORDERS), float(PRIOR_USES))
        self._cycle, self._cycle_begin = FIRST_CYCLE, 0
        self.best: list[Response | None] | None = None
        self.objective: float | None = None
        self._slots = _slot_of_row(oracle)
        self._blocks = oracle.num_blocks
        nothing = np.zeros(oracle.rows.size)
        self._alone = list(self._responses(nothing, check))
        self._size = np.array([0.0 if r is None else abs(r.objective) for r in self._alone])
        self._schedules: list[Response | None] = [None] * self._blocks
        self._residual: Floats = oracle.rows.capacity.astype(float).copy()
        self.set_prices(nothing if prices is None else prices, check)
        if start is not None:
            self.adopt(start)
            self._return_to_best()

    def set_prices(self, prices: Floats, check: Callable[[], None] = lambda: None) -> None:
        """Follow other dual prices from now on; if `check` raises between jobs, the old ones."""
        prices = np.ascontiguousarray(prices, dtype=float)
        worth, centres = np.zeros(self._blocks), np.zeros(self._blocks)
        responses = self._responses(prices, check)
        for block, (alone, response) in enumerate(zip(self._alone, responses, strict=True)):
            if alone is None:
                worth[block] = -np.inf
                continue
            value = 0.0 if response is None else response.value
            if self.oracle.optional:
                value = max(value, 0.0)
            worth[block] = self.sign * value / max(abs(alone.objective), 1e-12)
            chosen = alone if response is None or not response.rows.size else response
            centres[block] = self._centre(chosen)
        self._prices, self._worth, self._centres = prices, worth, centres

    def _responses(self, prices: Floats, check: Callable[[], None]) -> Iterator[Response | None]:
        """Each job's best response in an empty cluster."""
        for block in range(self._blocks):
            check()
            yield self.oracle.best_response(block, prices)

    @property
    def is_complete(self) -> bool:
        """Whether the search has schedules for all blocks that need one."""
        return self.best is not None

    def construct(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Insert all jobs anew, in a few orders and at a few multiples of the prices.

        `stop` is asked between jobs once there are schedules to keep.
        """
        for order, noise, multiple in FIRST_ATTEMPTS:
            count_work()
            self._schedules = [None] * self._blocks
            self._residual = self.oracle.rows.capacity.astype(float).copy()
            blocks = self._ordered(np.arange(self._blocks), order, noise)
            complete = self._insert_all(blocks, multiple, lambda: self.is_complete and stop())
            if complete or self.oracle.optional:
                self._keep_if_best(self._schedules)
            if self.is_complete and stop():
                break
        self._return_to_best()

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Try neighbourhoods until `stop` says so; return whether the best became better."""
        if self.best is None or not self._blocks:
            return False
        before = self.objective
        while not stop():
            self.iterations += 1
            count_work()
            self._try_neighbourhood()
            if self.iterations - self._cycle_begin >= self._cycle:
                self._cycle_begin = self.iterations
                self._cycle = min(2 * self._cycle, LONGEST_CYCLE)
                self._return_to_best()
        return self.objective != before

    def solution(self) -> Solution | None:
        """The best schedules as a checked solution of the family.

        Where jobs are optional, those that only rounding let in are left out first. A constraint
        that is broken all the same is an error in the family's oracle: `SolveFailed`.
        """
        if self.best is None:
            return None
        solution = self._solution_of(self.best)
        broken = solution.violations()
        if broken and self.oracle.optional:
            solution = self._without_overload(broken)
            broken = solution.violations()
        if broken:
            raise SolveFailed(f"the neighbourhood search broke {broken[0]}")
        return solution

    def _without_overload(self, broken: Sequence[Violation]) -> Solution:
        """Leave out the smallest jobs without which fewer constraints are broken, one by one."""
        assert self.best is not None
        kept = list(self.best)
        for block in np.argsort(self._size, kind="stable").tolist():
            if not broken or kept[block] is None:
                continue
            fewer = [None if other == block else schedule for other, schedule in enumerate(kept)]
            left = self._solution_of(fewer).violations()
            if len(left) < len(broken):
                kept, broken = fewer, left
        self.best, self.objective = kept, self._value_of(kept)
        return self._solution_of(kept)

    def _solution_of(self, schedules: Sequence[Response | None]) -> Solution:
        rows: dict[str, Sequence[Assignment]] = {}
        for block, response in enumerate(schedules):
            if response is None or response.plan is None:
                continue
            if isinstance(response.plan, _Given):
                rows[self.oracle.block_name(block)] = response.plan.rows
            else:
                rows[self.oracle.block_name(block)] = self.oracle.assignments(block, response)
        solution = build_solution(self.oracle.instance, rows, self.oracle.formulation)
        return self.oracle.settled(solution)

    def adopt(self, solution: Solution) -> bool:
        """Take a feasible solution as the best if it is; the search returns to it in its time.

        Where it is better by more than the worsenings that are kept, a new cycle begins there at
        once: what the present one would find is worse.
        """
        known, rows = self.objective, solution.assignments()
        schedules: list[Response | None] = [None] * self._blocks
        for block, given in enumerate(self.oracle.use_of(solution)):
            if given is not None:
                plan = _Given(rows[self.oracle.block_name(block)])
                schedules[block] = replace(given, plan=plan)
        if not self._keep_if_best(schedules):
            return False
        assert self.objective is not None
        if known is not None and abs(self.objective - known) > HOT * abs(known):
            self._cycle_begin = self.iterations
            self._return_to_best()
        return True

    def _try_neighbourhood(self) -> None:
        served = np.array([b for b in range(self._blocks) if self._schedules[b] is not None])
        absent = np.array(
            [b for b in range(self._blocks) if self._schedules[b] is None and self._alone[b]]
        )
        saved, saved_residual = list(self._schedules), self._residual.copy()
        before = self._value_of(saved)
        pivot = self._pivot(served, absent)
        removed = self._near(served, pivot, int(self.random.integers(1, MOST_REMOVED + 1)))
        for block in removed.tolist():
            response, self._schedules[block] = self._schedules[block], None
            if response is not None:
                np.add.at(self._residual, response.rows, response.amounts)
        invited = self._near(absent, pivot, int(self.random.integers(0, MOST_INVITED + 1)))
        weights = (self._scores / self._uses) ** 2  # by the score a use, squared
        order = int(self.random.choice(weights.size, p=weights / weights.sum()))
        blocks = self._ordered(np.concatenate([removed, invited]).astype(int), ORDERS[order], 1.0)
        multiple = PRICE_MULTIPLES[int(self.random.integers(len(PRICE_MULTIPLES)))]
        complete = self._insert_all(blocks, multiple)
        gained = self.sign * (self._value_of(self._schedules) - before)
        self._uses[order] += 1
        if -gained > self._allowance(before) or not (complete or self.oracle.optional):
            self._schedules, self._residual = saved, saved_residual
        elif self._keep_if_best(self._schedules):
            self._scores[order] += FOUND_BEST
        elif gained > 1e-9 * abs(before):
            self._scores[order] += FOUND_BETTER

    def _allowance(self, objective: float) -> float:
        """How much worse than `objective` an outcome may be and still be kept."""
        done = (self.iterations - self._cycle_begin) / self._cycle
        temperature = HOT * (COLD / HOT) ** done
        return float(self.random.exponential(temperature)) * max(abs(objective), 1e-12)

    def _pivot(self, served: Ints, absent: Ints) -> float:
        """The time around which to work: that of a job served or, as often, of one left out."""
        from_absent = absent.size and (not served.size or self.random.random() < 0.5)
        pool = absent if from_absent else served
        return float(self._centres[pool[int(self.random.integers(pool.size))]])

    def _near(self, blocks: Ints, pivot: float, count: int) -> Ints:
        """Choose jobs around a time, the nearest more likely."""
        if not blocks.size or not count:
            return blocks[:0]
        distance = np.abs(self._centres[blocks] - pivot)
        noise = self.random.exponential(1.0, blocks.size)
        scale = np.partition(distance, min(count, blocks.size) - 1)[min(count, blocks.size) - 1]
        return blocks[np.argsort(distance + noise * (scale + 1.0))[:count]]

    def _ordered(self, blocks: Ints, order: str, noise: float) -> list[int]:
        """Order of insertion; `noise` is a factor on the order's own noise."""
        if order == "random":
            keys = self.random.random(blocks.size)
        elif order == "size":
            draws = self.random.standard_normal(blocks.size)
            keys = self._size[blocks] * np.exp(noise * SIZE_NOISE * draws)
        else:
            keys = self._worth[blocks]
            if noise:
                keys = keys + noise * WORTH_NOISE * self.random.standard_normal(blocks.size)
        return [int(block) for block in blocks[np.argsort(-keys, kind="stable")]]

    def _insert_all(
        self, blocks: Sequence[int], multiple: float, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Insert jobs in this order until `stop` says so; return whether all of them are served."""
        prices = multiple * self._prices
        served = [not stop() and self._insert(block, prices) for block in blocks]
        return all(served)

    def _insert(self, block: int, prices: Floats) -> bool:
        """Give a job its best schedule in what is left; return whether it is served."""
        if self._alone[block] is None:
            return False
        response = self.oracle.best_insertion(block, prices, self._residual)
        if response is None:
            return False
        np.subtract.at(self._residual, response.rows, response.amounts)
        self._schedules[block] = response
        self._centres[block] = self._centre(response)
        return True

    def _keep_if_best(self, schedules: Sequence[Response | None]) -> bool:
        """Keep schedules if they are the best so far; return whether they are."""
        value = self._value_of(schedules)
        if self.objective is None or self.sign * (value - self.objective) > 1e-12 * abs(value):
            self.best, self.objective = list(schedules), value
            return True
        return False

    def _return_to_best(self) -> None:
        """Continue from the best schedules, with residuals free of accumulated rounding."""
        if self.best is None:
            return
        self._schedules = list(self.best)
        self._residual = self.oracle.rows.capacity.astype(float).copy()
        for response in self._schedules:
            if response is not None:
                np.subtract.at(self._residual, response.rows, response.amounts)

    def _value_of(self, schedules: Sequence[Response | None]) -> float:
        return float(sum(response.objective for response in schedules if response is not None))

    def _centre(self, response: Response) -> float:
        return float(self._slots[response.rows].mean()) if response.rows.size else 0.0


@dataclass(frozen=True)
class _Given:
    """Plan of a schedule that was read from a given solution."""

    rows: Sequence[Assignment]


def _slot_of_row(oracle: PlacingOracle) -> Floats:
    """Slot of each linking row; 0 for rows without time."""
    slots = []
    for row_set in oracle.rows.sets:
        shape = row_set.shape
        labels = np.array(row_set.axes[-1][1], dtype=float) if row_set.has_slots else np.zeros(1)
        slots.append(np.broadcast_to(labels, shape if row_set.has_slots else (*shape, 1)).ravel())
    return np.concatenate(slots) if slots else np.zeros(0)
