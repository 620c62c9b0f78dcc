"""Good schedules for gang: orders that the prices suggest, then exchanges of neighbouring jobs.

The expected starts of the smoothed bound say in which order jobs run; placed in that order, each
as early as possible (alpha points: Hall, Schulz, Shmoys & Wein 1997; Goemans et al. 2002), they are
a good schedule already. From the best one `exchange` anneals: in cycles of different size and heat,
each from the best schedule so far.

The search is for jobs in one piece in one pool. Such a schedule is one of the other kinds as well;
where jobs may pause, the best replayed policy is better. On servers the orders are replayed with
placement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hindsched.instances.gang.instance import (
    KINDS,
    OBJECTIVES,
    GangInstance,
    Ints,
    split_formulation,
)
from hindsched.solutions.gang.rows import pool_rows
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.kernels.gang.orders import (
    FAR,
    Jobs,
    exchange,
    starts_in_order,
    total_cost,
)
from hindsched.solvers.kernels.gang.responses import FOREVER
from hindsched.solvers.methods.gang.clock import Clock
from hindsched.solvers.methods.gang.incumbents import incumbents
from hindsched.solvers.pricing.gang.pool import job_blocks
from hindsched.solvers.pricing.rows import Vector
from hindsched.solvers.work import now, spend

ALPHAS = (0.0, 0.5, 1.0)
"""Which part of a job counts for its place in the order."""
CYCLES = ((10, 100, 0.3), (4, 100, 1.0), (10, 100, 1.0), (20, 200, 0.3), (6, 50, 0.1))
"""Most jobs of an exchange, of how many neighbours, and heat relative to the mean cost of a job's
own duration."""
COOLING = 0.01
"""Heat at the end of a cycle over that at its begin."""
ROUNDS = 2_000
"""Exchanges between two looks at the clock at first; about `LOOK_SECONDS` later."""
LOOK_SECONDS = 0.25
HEATS = 20
"""Heats of `best_in_rounds`, from hot to cold."""
FIRST_CYCLE = 0.4
"""Share of the time left that a cycle takes."""
LEAST_CYCLE_SECONDS = 2.0


@dataclass
class Search:
    """Best schedule of jobs in one piece in one pool.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    formulation : str
        Whose objective counts; its kind does not.
    seed : int
        Of the draws.
    on_look : callable, optional
        Called at every look at the clock.
    """

    instance: GangInstance
    formulation: str
    seed: int = 0
    cost: float = math.inf
    start: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    orders: int = 0
    exchanges: int = 0
    on_look: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        blocks = job_blocks(self.instance, self.formulation)
        due = np.where(blocks.latest == FOREVER, FAR, blocks.latest)
        penalty = np.where(np.isfinite(blocks.skip), blocks.skip, 0.0)
        gpus = self.instance.job_gpus
        self.jobs = Jobs(blocks.submit, blocks.duration, gpus, blocks.slope, due, penalty)
        mean = np.where(blocks.slope > 0, blocks.slope * blocks.duration, penalty)
        self.scale = max(float(mean.mean()) if mean.size else 0.0, 1e-12)
        self.reseed(self.seed)

    def reseed(self, seed: int) -> None:
        """Draw otherwise from now on."""
        self.state = np.array([2 * seed + 88172645463325252], dtype=np.uint64)

    def try_order(self, order: Ints) -> bool:
        """Place all jobs in an order; says whether that is the best so far."""
        start = starts_in_order(order, self.jobs, self.instance.total_gpus)
        self.orders += 1
        return self.try_starts(start)

    def try_starts(self, start: Ints) -> bool:
        """Take over a feasible schedule if it is the best so far; says whether."""
        cost = total_cost(self.jobs, start)
        if cost >= self.cost:
            return False
        self.cost, self.start = cost, start.copy()
        return True

    def try_expected(self, expected: Vector) -> None:
        """Try the orders that expected starts suggest."""
        for alpha in ALPHAS:
            self.try_order(np.argsort(expected + alpha * self.jobs.duration, kind="stable"))

    def anneal(self, clock: Clock, on_cycle: Callable[[], object] | None = None) -> None:
        """Exchange neighbouring jobs until the clock stops; call `on_cycle` after each cycle."""
        if self.start.size < 2:
            return
        number = 0
        while not clock.is_over:
            most, reach, heat = CYCLES[number % len(CYCLES)]
            left = clock.seconds_left
            seconds = max(min(left, LEAST_CYCLE_SECONDS), FIRST_CYCLE * left)
            self._cycle(most, reach, heat * self.scale, clock.first(seconds))
            number += 1
            if on_cycle is not None:
                on_cycle()

    def _cycle(self, most: int, reach: int, hot: float, clock: Clock) -> None:
        rounds = ROUNDS
        self.try_order(np.argsort(self.start, kind="stable"))
        at = self.start.copy()
        while not clock.is_over:
            since = now()
            self.exchange(at, most, reach, hot * COOLING**clock.share_gone, rounds)
            spent = now() - since
            if self.on_look is not None:
                self.on_look()
            rounds = int(np.clip(rounds * LOOK_SECONDS / max(spent, 1e-6), 100, 4 * rounds))

    def exchange(self, start: Ints, most: int, reach: int, heat: float, rounds: int) -> None:
        """Anneal the schedule `start` in place for some rounds; keep the best one seen."""
        best = self.start.copy()
        spend(max(1, rounds // ROUNDS))
        exchange(
            start, best, self.jobs, self.instance.total_gpus, rounds, heat, 0.95 * heat,
            self.state, most, reach,
        )  # fmt: skip
        self.exchanges += rounds
        self.try_starts(best)

    def solution(self, start: Ints | None = None) -> GangSolution:
        """The best schedule, or that of given starts."""
        start = self.start if start is None else start
        rows = pool_rows(np.arange(start.size), start, start + self.jobs.duration, self.jobs.gpus)
        return GangSolution(self.instance, rows, self.formulation)


def best_in_rounds(instance: GangInstance, formulation: str, rounds: int) -> GangSolution:
    """Best of the replayed policies, improved by so many exchanges: no clock decides.

    Parameters
    ----------
    instance : GangInstance
        The instance.
    formulation : str
        Kind and objective.
    rounds : int
        Exchanges; jobs that may pause, that stand on servers or whose makespan counts have none.
    """
    best = min(incumbents(instance, formulation), key=lambda solution: solution.exact_objective)
    kind, goal = split_formulation(formulation)
    few = len(instance.jobs) < 2
    if few or kind != KINDS[0] or goal == OBJECTIVES[1] or instance.is_consolidated:
        return best
    search = Search(instance, formulation)
    search.try_starts(best.starts)
    start = search.start.copy()
    most, reach, hot = CYCLES[0]
    for step in range(HEATS):
        heat = hot * search.scale * COOLING ** (step / HEATS)
        search.exchange(start, most, reach, heat, rounds // HEATS)
    return min(best, search.solution(), key=lambda solution: solution.exact_objective)
