"""Good schedules for gang: orders that the prices suggest, then moves in them.

The expected starts of the smoothed bound say in which order jobs run; placed in that order, each
as early as possible (alpha points: Hall, Schulz, Shmoys & Wein 1997; Goemans et al. 2002), they are
a good schedule already. From the best one two kernels anneal in turn, in cycles of different reach
and heat, each from the best schedule so far: `resequence` moves jobs in the sequence of starts, and
everything behind follows; `exchange` puts a few jobs in again elsewhere while all others stay.

The search is for jobs in one piece in one pool. Such a schedule is one of the other kinds as well;
where jobs may pause, the best replayed policy is better. On servers the orders are replayed with
placement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.gang.instance import KINDS, OBJECTIVES, GangInstance, split_formulation
from hindsched.solutions.gang.rows import pool_rows
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.door.work import now, spend
from hindsched.solvers.families.gang.clock import Clock
from hindsched.solvers.families.gang.incumbents import incumbents
from hindsched.solvers.families.gang.oracle import job_blocks
from hindsched.solvers.kernels.gang.orders import (
    FAR,
    Jobs,
    exchange,
    starts_in_order,
    total_cost,
)
from hindsched.solvers.kernels.gang.responses import FOREVER
from hindsched.solvers.kernels.gang.sequences import resequence, starts_in_sequence

ALPHAS = (0.0, 0.5, 1.0)
"""Which part of a job counts for its place in the order."""
MOVES = ((1_000, 0.2), (300, 0.03), (3_000, 0.1))
"""Longest stretch of the sequence in which a move is made, and heat relative to the mean cost of a
job's own duration."""
EXCHANGES = ((10, 100, 0.3), (4, 100, 1.0), (10, 100, 1.0), (20, 200, 0.3), (6, 50, 0.1))
"""Most jobs of an exchange, of how many neighbours, and relative heat."""
MOST_MEMORY = 10_000_000
"""Jobs x GPUs up to which moves are made: beyond it takes too long to place what follows one."""
PLACED = 50_000
"""Jobs placed by moves that count as a unit of work."""
COOLING = 0.01
"""Heat at the end of a cycle over that at its begin."""
ROUNDS = 2_000
"""Moves or exchanges between two looks at the clock at first; about `LOOK_SECONDS` later."""
LOOK_SECONDS = 0.25
HEATS = 20
"""Heats of `best_in_rounds`, from hot to cold."""
EXCHANGE_SHARE, WIDE_EXCHANGE_SHARE, MOVE_SHARE = 0.25, 0.5, 0.8
"""Shares of the time left that a cycle takes: exchanges come down fast, moves come further."""
WIDE = 100
"""GPUs from which a move, whose time grows with them, is so slow that exchanges have more."""
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
    """

    instance: GangInstance
    formulation: str
    seed: int = 0
    cost: float = math.inf
    start: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    orders: int = 0
    moves: int = 0
    exchanges: int = 0

    def __post_init__(self) -> None:
        blocks = job_blocks(self.instance, self.formulation)
        due = np.where(blocks.latest == FOREVER, FAR, blocks.latest)
        penalty = np.where(np.isfinite(blocks.skip), blocks.skip, 0.0)
        gpus = self.instance.job_gpus
        self.jobs = Jobs(blocks.submit, blocks.duration, gpus, blocks.slope, due, penalty)
        mean = np.where(blocks.slope > 0, blocks.slope * blocks.duration, penalty)
        self.scale = max(float(mean.mean()) if mean.size else 0.0, 1e-12)
        self.state = np.array([2 * self.seed + 88172645463325252], dtype=np.uint64)

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

    def try_expected(self, expected: Floats) -> None:
        """Try the orders that expected starts suggest."""
        for alpha in ALPHAS:
            self.try_order(np.argsort(expected + alpha * self.jobs.duration, kind="stable"))

    def anneal(self, clock: Clock, is_done: Callable[[], bool]) -> None:
        """Move and exchange jobs until the clock stops, or `is_done` after a cycle."""
        if self.start.size < 2:
            return
        gpus = self.instance.total_gpus
        number, exchanges = 0, WIDE_EXCHANGE_SHARE if gpus >= WIDE else EXCHANGE_SHARE
        while not clock.is_over:
            left = clock.seconds_left
            follows = number % 2 == 1 and self.start.size * gpus <= MOST_MEMORY
            share = MOVE_SHARE if follows else exchanges
            own = clock.first(max(min(left, LEAST_CYCLE_SECONDS), share * left))
            if follows:
                reach, heat = MOVES[number // 2 % len(MOVES)]
                sequence = np.argsort(self.start, kind="stable")
                self._cycle(heat, own, partial(self.move, sequence, reach))
            else:
                most, near, heat = EXCHANGES[number // 2 % len(EXCHANGES)]
                self._cycle(heat, own, partial(self.exchange, self.start.copy(), most, near))
            self.try_order(np.argsort(self.start, kind="stable"))
            number += 1
            if is_done():
                return

    def _cycle(self, heat: float, clock: Clock, step: Callable[[float, int], None]) -> None:
        rounds = ROUNDS
        while not clock.is_over:
            since = now()
            step(heat * self.scale * COOLING**clock.share_gone, rounds)
            spent = now() - since
            rounds = int(np.clip(rounds * LOOK_SECONDS / max(spent, 1e-6), 100, 4 * rounds))

    def move(self, sequence: Ints, reach: int, heat: float, rounds: int) -> None:
        """Anneal a sequence of starts in place for some rounds; keep its schedule if the best."""
        gpus = self.instance.total_gpus
        placed = resequence(sequence, self.jobs, gpus, rounds, heat, self.state, reach)
        spend(max(1, placed // PLACED))
        self.moves += rounds
        start = np.empty_like(self.start)
        starts_in_sequence(sequence, self.jobs, gpus, start)
        self.try_starts(start)

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
    most, reach, hot = EXCHANGES[0]
    for step in range(HEATS):
        heat = hot * search.scale * COOLING ** (step / HEATS)
        search.exchange(start, most, reach, heat, rounds // HEATS)
    return min(best, search.solution(), key=lambda solution: solution.exact_objective)
