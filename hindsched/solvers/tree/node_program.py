"""The linear program of a branching's nodes: one restricted master for the whole tree.

All schedules ever priced are its columns; at a node those that break the node's decisions are
switched off. The program goes on from the basis of the node before. Its duals are prices, and what
is kept of a node is the best bound that prices proved there, never the program's value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import numpy as np

from hindsched.arrays import Bools, Floats
from hindsched.errors import SolveFailed
from hindsched.solutions.base import Solution
from hindsched.solvers.bounds.master import Basis, Column, Master
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import BranchDecision, Feature, Limits
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree.branching import LEAST_SIDE, Share, Split, candidates, undecided

SMOOTHING = 0.3
"""Weight of a node's best prices in the prices tried."""
CONVERGED = 1e-8
"""Relative distance of bound and program value at which no column is missing."""
SHARE_OF_GAP = 0.01
"""Share of a node's gap that may be left to its children: the last rounds gain little."""
HIGHEST_PENALTY = 1e4
"""Times the first penalty: a node that still buys off then has no solution worth its bound."""
MOST_COLUMNS = 1000
"""Columns above which old ones are dropped from the program; their nodes bring them back."""
MOST_ROUNDS = 200
"""Rounds of pricing at one node."""
Key = tuple[int, bytes]
"""A column's block and key."""


@dataclass(frozen=True)
class Answers:
    """What blocks answered at a node's prices: a child asks only those decided since."""

    limits: Mapping[int, Limits]  # limits by block that the answers obey
    values: list[float]  # value of every block's best response
    # where the node's program ended; a family's own program may keep more
    basis: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class NodeBound:
    """What prices prove at a node."""

    prices: Floats  # the best prices found, (rows.size,)
    bound: float  # what they prove there, rounded outward; infinite where a block is empty
    # the program's solution, `Share` by `Share`; None if the node needs none: it is closed or out
    # of time
    shares: Sequence[Any] | None
    rounds: int  # rounds of pricing
    answers: Answers | None = None  # what the blocks answered at `prices`, for the node's children
    value: float | None = None  # of the program at the end; None if something was bought off
    stopped_by: StoppedBy = StoppedBy.GAP  # why pricing ended


class NodeProgram:
    """Bounds nodes by column generation.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of the whole problem, with features.
    size : float
        What the objective is about, not 0: buying off is priced by it.
    interrupted : Event
        Set by Ctrl-C.
    smoothing : float
        Weight of a node's best prices in the prices tried.
    most_rounds : float
        Rounds of pricing at one node.
    tell : callable
        Called with every round and the best bound.
    """

    def __init__(
        self, oracle: BlockOracle, size: float, interrupted: Event, smoothing: float = SMOOTHING,
        most_rounds: float = MOST_ROUNDS, tell: Callable[[int, float], None] = lambda *_: None,
    ) -> None:  # fmt: skip
        self.oracle = oracle
        self._branches = type(oracle).features_of is not BlockOracle.features_of
        self._smoothing, self._most_rounds, self._tell = smoothing, most_rounds, tell
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self._interrupted = interrupted
        self._penalty = 10.0 * abs(size)
        self._master = Master(RestrictedOracle(oracle, ()), self._penalty, interrupted)
        self._pool: dict[Key, tuple[Column, Response, Mapping[Feature, int] | None]] = {}

    def add(self, block: int, response: Response) -> int:
        """Add a schedule as a column; return 1 if it is new."""
        column = Column.of(block, response)
        column.key += np.float64(response.objective).tobytes()
        if not self._master.add([column]):
            return 0
        outside = response.plan is None
        features = None
        if self._branches and not outside:
            features = self.oracle.features_of(block, response)
        self._pool[column.block, column.key] = column, response, features
        return 1

    def bound(
        self,
        decisions: Sequence[BranchDecision],
        prices: Floats,
        cutoff: float | None,
        seconds: Callable[[], float | None],
        known: Answers | None = None,
    ) -> NodeBound:
        """Find good prices for the solutions that obey `decisions`, by column generation.

        Parameters
        ----------
        decisions : sequence of BranchDecision
            The node's.
        prices : ndarray
            First prices, for example the parent's.
        cutoff : float, optional
            A bound that does not pass it is good enough.
        seconds : callable
            Seconds that are left, or None.
        known : Answers, optional
            What this program's blocks answered at `prices` before.
        """
        oracle = RestrictedOracle(self.oracle, decisions)
        best, _, answers = self._price(oracle, prices, known)
        best_prices = prices
        value, whole, round_ = 0.0, False, 0

        def found(stopped_by: StoppedBy) -> NodeBound:
            ends = (StoppedBy.CONVERGED, StoppedBy.ITERATION_LIMIT, StoppedBy.INFEASIBLE)
            shares = self._shares() if self._branches and whole and stopped_by in ends else None
            own = answers
            if own is not None and shares is not None:
                own = replace(own, basis=self._master.basis())
            at_end = value if whole else None
            return NodeBound(best_prices, best, shares, round_, own, at_end, stopped_by)

        if self._is_closed(best, cutoff):
            return found(StoppedBy.GAP)
        self._master.set_penalty(self._penalty)
        basis = None if known is None else known.basis
        if basis is not None:
            self._forget(basis)
        self._switch(oracle)  # columns added from here on obey the decisions
        if basis is not None:
            self._master.begin_at(basis)
        while round_ < self._most_rounds:
            solved = self._solve(seconds())
            if solved is None:
                return found(self._late)
            value, duals, whole = solved
            round_ += 1
            added = 0
            for smoothing in (self._smoothing, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, added, own = self._price(oracle, tried)
                if self.sign * bound < self.sign * best:
                    best_prices, best, answers = tried, bound, own
                if added:
                    break
            self._tell(round_, best)
            if self._is_closed(best, cutoff):
                return found(StoppedBy.GAP)
            left = seconds()
            if self._interrupted.is_set() or (left is not None and left <= 0):
                return found(self._late)
            if whole and self._is_settled(self.sign * (best - value), best, cutoff):
                return found(StoppedBy.CONVERGED)
            if not added:
                if whole:
                    return found(StoppedBy.CONVERGED)
                if self._master.penalty > HIGHEST_PENALTY * self._penalty:
                    return found(StoppedBy.INFEASIBLE)
                self._master.set_penalty(10 * self._master.penalty)
        return found(StoppedBy.ITERATION_LIMIT)

    @property
    def _late(self) -> StoppedBy:
        """Why pricing ends before it has converged."""
        return StoppedBy.INTERRUPTED if self._interrupted.is_set() else StoppedBy.TIME_LIMIT

    @property
    def num_columns(self) -> int:
        """Number of schedules in the program."""
        return len(self._master.columns)

    def candidates(self, shares: Sequence[Share]) -> list[Split]:
        """Where a node's program is undecided, the best split first."""
        return candidates(self.oracle, shares)

    def undecided(
        self, shares: Sequence[Share], decisions: Sequence[BranchDecision]
    ) -> list[Split]:
        """Where an integral node could still be decided otherwise."""
        return undecided(self.oracle, shares, decisions)

    def solution(
        self, shares: Sequence[Share], splits: Sequence[Split], seconds: float | None
    ) -> Solution | None:
        """An integral node's own solution, if servers hold it; not checked.

        Parameters
        ----------
        shares : sequence of Share
            The node's linear program.
        splits : sequence of Split
            Its `candidates`, none if it is integral.
        seconds : float, optional
            What is left of the time.
        """
        if splits:
            return None
        chosen = {share.block: share.response for share in shares if share.features is not None}
        return self.oracle.place([chosen.get(block) for block in range(self.oracle.num_blocks)])

    def _solve(self, seconds: float | None) -> tuple[float, Floats, bool] | None:
        """Solve the program; where a warm basis leads the solver astray, from a cold one."""
        try:
            return self._master.solve(seconds)
        except SolveFailed:
            self._master.forget_basis()
            return self._master.solve(seconds)

    def _price(
        self, oracle: RestrictedOracle, prices: Floats, known: Answers | None = None
    ) -> tuple[float, int, Answers | None]:
        """Bound at `prices`, the number of new columns, and the blocks' answers."""
        values: list[float] = []
        added = 0
        # without decisions by the family's own call for all blocks
        whole = self.oracle.responses(prices) if not oracle.decisions and known is None else None
        for block in range(oracle.num_blocks):
            if known is not None and known.limits.get(block) == oracle.limits.get(block):
                values.append(known.values[block])
                continue
            response = None if whole is None else whole[block] or self.oracle.outside(block)
            response = response or oracle.best_response(block, prices)
            if response is not None and math.isinf(response.value):
                response = None
            if response is None:  # the decisions leave it no schedule
                return -self.sign * math.inf, 0, None
            values.append(response.value)
            added += self.add(block, response)
        terms = [*oracle.price_terms(prices).tolist(), *values]
        return oracle.round_outward(terms), added, Answers(oracle.limits, values)

    def _is_settled(self, missing: float, best: float, cutoff: float | None) -> bool:
        """Whether a bound that misses so much of the program's value will do."""
        if missing <= CONVERGED * (min(1.0, abs(best)) + abs(best)):
            return True
        if cutoff is None or missing > SHARE_OF_GAP * self.sign * (best - cutoff):
            return False
        values = self._master.column_values()  # what is decided is bounded in full
        return bool(np.any((values > LEAST_SIDE) & (values < 1 - LEAST_SIDE) & self._of_jobs()))

    def _of_jobs(self) -> Bools:
        """Which of the program's columns are of blocks that can be decided."""
        return np.array([column.block < self.oracle.num_decided for column in self._master.columns])

    def _is_closed(self, bound: float, cutoff: float | None) -> bool:
        if math.isinf(bound):
            return True
        return cutoff is not None and self.sign * (bound - cutoff) <= 0

    def _switch(self, oracle: RestrictedOracle) -> None:
        """Switch columns on or off by a node's decisions."""
        on = [
            column.block not in oracle.limits
            or oracle.keeps(column.block, self._pool[column.block, column.key][2])
            for column in self._master.columns
        ]
        self._master.switch(np.array(on, dtype=bool))

    def _forget(self, basis: Basis) -> None:
        """Bring a basis' columns back, and drop old ones where there are too many."""
        master = self._master
        if len(master.columns) > MOST_COLUMNS:
            recent = len(master.columns) - MOST_COLUMNS // 2
            master.keep(
                [
                    position >= recent or (column.block, column.key) in basis.columns
                    for position, column in enumerate(master.columns)
                ]
            )
        master.add([self._pool[key][0] for key in sorted(basis.columns)])

    def _shares(self) -> list[Share]:
        values = self._master.column_values()
        found = []
        for position in np.flatnonzero(values > 1e-7):
            column = self._master.columns[position]
            _, response, features = self._pool[column.block, column.key]
            found.append(Share(column.block, response, features, float(values[position])))
        return found
