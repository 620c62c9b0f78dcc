"""The linear program of a branching's nodes, and where to branch on it.

One restricted master for the whole tree: all schedules ever priced are its columns; at a node those
that break the node's decisions are switched off, and it goes on from the basis of the node before.
What is kept of a node is the best bound that prices proved there, never the program's value.

The program mixes schedules of a job. Any feature in which they differ can be split between two of
its values, so that each side forbids some of the mixture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solvers.bounds.master import Basis, Column, Master
from hindsched.solvers.door.work import interrupted
from hindsched.solvers.oracles import decisions as branching
from hindsched.solvers.oracles.base import BranchingOracle, Response
from hindsched.solvers.oracles.restricted import RestrictedOracle

SMOOTHING = 0.3  # weight of a node's best prices in the prices tried
CONVERGED = 1e-8  # relative distance of bound and program value at which no column is missing
SHARE_OF_GAP = 0.01
"""Share of a node's gap that may be left to its children: the last rounds gain little."""
HIGHEST_PENALTY = 1e4
"""Times the first penalty: a node that still buys off then has no solution worth its bound."""
MOST_COLUMNS = 1000
"""Columns above which old ones are dropped from the program; their nodes bring them back."""
MOST_ROUNDS = 200  # rounds of pricing at one node
LEAST_SIDE = 1e-6  # share of a job's schedules that each side of a split must hold
LEAST_STAKE = 1e-4  # share of a job's objective below which nothing is at stake
Share = tuple[Column, float]  # a schedule in a node's linear program and how much of it is taken


@dataclass(frozen=True)
class Split:
    """A split of one block's schedules by one feature."""

    block: int  # position of the block
    feature: branching.Feature  # what is split
    at_most: int  # largest value of the lower side
    rank: int  # place of the feature in the family's order, staying out before all of them
    balance: float  # share of the schedules on the smaller side
    lower_share: float  # share of the schedules on the lower side
    stake: float = 0.0  # by how much the sides' objectives differ, times the balance

    @property
    def sides(self) -> tuple[branching.BranchDecision, branching.BranchDecision]:
        """The two decisions, the side with the larger share last."""
        lower = branching.BranchDecision.at_most(self.block, self.feature, self.at_most)
        upper = branching.BranchDecision.at_least(self.block, self.feature, self.at_most + 1)
        return (lower, upper) if self.lower_share < 0.5 else (upper, lower)


@dataclass(frozen=True)
class Answers:
    """What blocks answered at a node's prices: a child asks only those decided since."""

    limits: Mapping[int, branching.Limits]  # limits by block that the answers obey
    values: list[float]  # value of every block's best response
    # where the node's program ended; a family's own program may keep more
    basis: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class NodeBound:
    """What prices prove at a node."""

    prices: Floats  # the best prices found, (rows.size,)
    bound: float  # what they prove there, rounded outward; infinite where a block is empty
    # the program's solution; None if the node needs none: it is closed or out of time
    shares: Sequence[Any] | None
    answers: Answers | None = None  # what the blocks answered at `prices`, for the node's children


class NodeProgram:
    """Bounds nodes by column generation, from an oracle of the whole problem.

    `size` is what the objective is about, not 0: buying off is priced by it. Where the optimum is
    known, a node is left to its children as soon as its program says that no prices close it.
    """

    def __init__(
        self, oracle: BranchingOracle, size: float, is_optimum_known: bool = False
    ) -> None:
        self.oracle, self._share_of_gap = oracle, 1.0 if is_optimum_known else SHARE_OF_GAP
        self._rank = {name: position for position, name in enumerate(oracle.features)}
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self._interrupted = interrupted()
        self._penalty = 10.0 * abs(size)
        self._master = Master(RestrictedOracle(oracle, ()), self._penalty)

    def add(self, block: int, response: Response) -> int:
        """Add a schedule as a column; return 1 if it is new."""
        column = Column.of(block, response)
        if not self._master.add(column):
            return 0
        if response.plan is not None:
            column.features = self.oracle.features_of(block, response)
        return 1

    def bound(
        self, decisions: Sequence[branching.BranchDecision], prices: Floats, cutoff: float | None,
        seconds: Callable[[], float | None], known: Answers | None = None,
    ) -> NodeBound:  # fmt: skip
        """Find good prices for the solutions that obey `decisions`, from `prices` on.

        A bound that does not pass `cutoff` is good enough. `seconds` says what is left, `known`
        what this program's blocks answered at `prices` before.
        """
        oracle = RestrictedOracle(self.oracle, decisions)
        best, _, answers = self._price(oracle, prices, known)
        best_prices = prices
        whole = False

        def node_bound(*, settled: bool = False) -> NodeBound:
            shares, with_basis = self._shares() if settled and whole else None, answers
            if with_basis is not None and shares is not None:
                with_basis = replace(with_basis, basis=self._master.basis())
            return NodeBound(best_prices, best, shares, with_basis)

        if self._is_closed(best, cutoff):
            return node_bound()
        self._master.set_penalty(self._penalty)
        basis = None if known is None else known.basis
        if basis is not None:
            self._forget(basis)
        obeys = [
            column.block not in oracle.limits or oracle.keeps(column.block, column.features)
            for column in self._master.columns
        ]
        self._master.switch(np.array(obeys, dtype=bool))  # columns added from here on obey, too
        if basis is not None:
            self._master.begin_at(basis)
        for _ in range(MOST_ROUNDS):
            solved = self._master.solve(seconds())
            if solved is None:
                return node_bound()
            value, duals, whole = solved
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, added, new_answers = self._price(oracle, tried)
                if self.sign * bound < self.sign * best:
                    best_prices, best, answers = tried, bound, new_answers
                if added:
                    break
            if self._is_closed(best, cutoff):
                return node_bound()
            left = seconds()
            if self._interrupted.is_set() or (left is not None and left <= 0):
                return node_bound()
            if whole and self._is_settled(self.sign * (best - value), best, cutoff):
                return node_bound(settled=True)
            if not added:
                if whole:
                    return node_bound(settled=True)
                if self._master.penalty > HIGHEST_PENALTY * self._penalty:
                    return node_bound()
                self._master.set_penalty(10 * self._master.penalty)
        return node_bound(settled=True)

    def candidates(self, shares: Sequence[Share]) -> list[Split]:
        """Splits of a node's linear program, the most promising first; empty if it is integral.

        First whether a job runs at all, then the features in the family's order; among equals the
        split with the most of the objective at stake, then the one that divides a job's schedules
        most evenly.
        """
        by_block: dict[int, list[Share]] = {}
        for column, share in shares:
            by_block.setdefault(column.block, []).append((column, share))
        splits: list[Split] = []
        for columns in by_block.values():
            seen = dict.fromkeys([branching.COMPLETES])
            for column, _ in columns:
                seen.update(dict.fromkeys(column.features or ()))
            for feature in seen if len(columns) > 1 else ():
                splits += _splits(feature, columns, self._rank[feature.name])
        return sorted(splits, key=lambda split: (split.rank, -split.stake, -split.balance))

    def undecided(
        self, shares: Sequence[Share], decisions: Sequence[branching.BranchDecision]
    ) -> list[Split]:
        """Splits of an integral node that could still be decided otherwise, in the family's order.

        An aggregated program may hold schedules that real servers do not. Whatever of them the
        node's decisions leave open is split from what its jobs do now; empty if nothing is.
        """
        limits, splits = branching.limits_of(decisions), list[Split]()
        for column, _ in shares:
            for feature, value in (column.features or {}).items():
                low, high = branching.window_of(limits.get(column.block, {}), feature)
                place = self._rank[feature.name]
                if high > value:
                    splits.append(Split(column.block, feature, value, place, 0.0, 1.0))
                elif low < value:
                    splits.append(Split(column.block, feature, value - 1, place, 0.0, 0.0))
        return sorted(splits, key=lambda split: split.rank)

    def solution(
        self, shares: Sequence[Share], splits: Sequence[Split], seconds: float | None
    ) -> Solution | None:
        """An integral node's own solution (no `splits`), if servers hold it; not checked."""
        if splits:
            return None
        chosen = {each.block: each.response for each, _ in shares if each.features is not None}
        return self.oracle.place([chosen.get(block) for block in range(self.oracle.num_blocks)])

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
        if cutoff is None or missing > self._share_of_gap * self.sign * (best - cutoff):
            return False
        values = self._master.column_values()  # what is decided is bounded in full
        jobs = np.array([each.block < self.oracle.num_decided for each in self._master.columns])
        return bool(np.any((values > LEAST_SIDE) & (values < 1 - LEAST_SIDE) & jobs))

    def _is_closed(self, bound: float, cutoff: float | None) -> bool:
        if math.isinf(bound):
            return True
        return cutoff is not None and self.sign * (bound - cutoff) <= 0

    def _forget(self, basis: Basis) -> None:
        """Bring a basis' columns back, and drop old ones where there are too many."""
        master, wanted = self._master, {column.key for column in basis.columns}
        if len(master.columns) > MOST_COLUMNS:
            recent = len(master.columns) - MOST_COLUMNS // 2
            columns = enumerate(master.columns)
            master.keep([place >= recent or column.key in wanted for place, column in columns])
        for column in basis.columns:
            master.add(column)

    def _shares(self) -> list[Share]:
        columns, values = self._master.columns, self._master.column_values()
        return [(columns[place], float(values[place])) for place in np.flatnonzero(values > 1e-7)]


def _splits(feature: branching.Feature, shares: Sequence[Share], rank: int) -> Iterator[Split]:
    """The splits of a block's schedules by one feature; running or not comes before all others."""
    weights: dict[int, float] = {}
    worth: dict[int, float] = {}
    outside = branching.NEVER if feature == branching.COMPLETES else 0
    for column, share in shares:
        value = outside if column.features is None else column.features.get(feature, 0)
        weights[value] = weights.get(value, 0.0) + share
        worth[value] = worth.get(value, 0.0) + share * column.response.objective
    total, all_worth = sum(weights.values()), sum(worth.values())
    below = below_worth = 0.0
    for value, following in pairwise(sorted(weights)):
        below += weights[value]
        below_worth += worth[value]
        side = min(below, total - below)
        if side < LEAST_SIDE:
            continue
        stake = side * abs(below_worth / below - (all_worth - below_worth) / (total - below))
        if stake <= LEAST_STAKE * abs(all_worth):
            stake = 0.0
        if following == branching.NEVER:
            value, rank = branching.NEVER - 1, -1
        yield Split(shares[0][0].block, feature, value, rank, side, below / total, stake)
