"""The nodes of an oasis tree: two linear programs bound them, a leaf decides what they promise.

Most nodes need only the prices of a compact program (`compact.py`), which takes milliseconds;
column generation over schedules proves more and takes ten times as long. A node's program that
agrees on every job's end promises a schedule, but mixes workers and places. The leaf program of
these ends finds real ones, or none exists; without it a tree would have to branch on workers until
its linear program is whole by chance. What no leaf can keep is a conflict, and the node is split by
its ends: all sides but one break the conflict, and that one the solver has refuted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, cast

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import Solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import Status
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.compact import CompactProgram
from hindsched.solvers.families.oasis.conflicts import Ends, Leaves, is_weaker
from hindsched.solvers.families.oasis.patterns import PatternOracle
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    NEVER,
    BranchDecision,
    Feature,
    limits_of,
    window_of,
)
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree.branching import Share, Split
from hindsched.solvers.tree.columns import Basis
from hindsched.solvers.tree.node_program import (
    MOST_ROUNDS,
    SMOOTHING,
    Answers,
    NodeBound,
    NodeProgram,
)

SETTLED = 1e-4
"""Relative distance of bound and program value at which no pattern is worth another round."""
LEAF_SECONDS, PATIENCE = 2.0, 4.0
"""Limit of one leaf, which mostly takes a tenth of it, and by how much more it gets where that did
not do and the tree still meets its promises as much later."""
FIRST_GAIN, WEIGHT_OF_GAIN = 0.02, 0.3
"""What column generation over schedules is thought to gain on the compact program, relative to the
bound, before it was tried; and the weight of each trial in what is thought from then on."""
LEAST_GAIN = 0.01
"""Share of a node's gap that it must gain where all ends are decided, to be tried below as well."""
LEARNING, LEAST_LEARNING = 4.0, 0.5
"""Time for making a conflict small, relative to its leaf's, and seconds at least."""
SHARE_OF_LEARNING = 0.25
"""Share of a tree's time that making conflicts small may take: a small tree meets few again."""
MOST_PROBED = 10
"""Splits of a refuted node of which one with a closed side is looked for."""
WHOLE = 1e-6
"""How much of a job may be missing where a promise counts it."""
NEAR = 5e-4
"""Distance to the best schedule, relative to the bound, within which it is tried all the same: what
is left there are mixes of schedules, which the compact program splits again and again."""


@dataclass(frozen=True)
class _Start:
    """Where a node's programs ended.

    Parameters
    ----------
    compact : HighsBasis
        Of the compact program.
    schedules : Basis, optional
        Of the program of schedules, where the node was split by it.
    gains : bool
        Whether the program of schedules says more, all ends being decided.
    """

    compact: Any = field(repr=False)
    schedules: Basis | None = None
    gains: bool = True


class EndsProgram(NodeProgram):
    """Bounds nodes by the compact program, and decides the ends that they promise.

    Column generation over schedules, whose bound is better and takes ten times as long, is asked
    where what it mostly gains would close the node, and where all ends are decided.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of the whole problem, with features; in the layout ``servers`` column generation
        bounds all nodes.
    size : float
        What the objective is about, not 0: buying off is priced by it.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(self, oracle: BlockOracle, size: float, interrupted: Event) -> None:
        super().__init__(oracle, size, interrupted)
        self._leaves = Leaves(cast(OasisInstance, oracle.instance), SolveOptions(threads=1))
        self._tried: dict[tuple[tuple[int, int], ...], tuple[float, float]] = {}
        self._compact: CompactProgram | None = None
        self._begun, self._learned = now(), 0.0
        self._splits: list[Split] = []
        self._probed: Counter[tuple[int, Feature]] = Counter()
        self._closed: Counter[tuple[int, Feature]] = Counter()
        self._gain = FIRST_GAIN * abs(size)
        self._patterns: set[tuple[int, int]] = set()

    def bound(
        self,
        decisions: Sequence[BranchDecision],
        prices: Floats,
        cutoff: float | None,
        seconds: Callable[[], float | None],
        known: Answers | None = None,
    ) -> NodeBound:
        """Find good prices for the solutions that obey `decisions`, as `NodeProgram.bound`."""
        if not isinstance(self.oracle, PatternOracle):
            return super().bound(decisions, prices, cutoff, seconds, known)
        self._splits = []
        start = None if known is None else cast("_Start | None", known.basis)
        first, shares = self._bound_compactly(decisions, prices, cutoff, seconds, known, start)
        if self._is_closed(first.bound, cutoff) or self._is_over(seconds):
            return first
        undecided = bool(super().candidates(shares))
        splits = self._compact.splits() if self._compact and shares and not undecided else []
        gap = math.inf if cutoff is None else first.bound - cutoff
        if undecided and gap > self._gain:
            return replace(first, shares=shares)
        near = gap <= NEAR * abs(first.bound)
        if splits and not near and start is not None and not start.gains:
            self._splits = splits
            return replace(first, shares=shares, answers=_beginning(first.answers, gains=False))
        schedules = None if start is None else start.schedules
        answers = None if first.answers is None else replace(first.answers, basis=schedules)
        second = self._by_columns(
            decisions, first.prices, cutoff, seconds, answers, only_to_close=undecided
        )
        closed = self._is_closed(second.bound, cutoff)
        reached = second.bound if second.value is None else second.value
        gain = gap if closed else first.bound - reached
        if undecided:
            self._gain += WEIGHT_OF_GAIN * (min(gain, gap) - self._gain)
        compact = None if first.answers is None else first.answers.basis
        if closed or not (splits or undecided):
            return _from(second, compact, keeps=True)
        unsettled = second.shares is None
        if undecided or unsettled or (gain < LEAST_GAIN * gap and not near):
            self._splits = splits
            return replace(_from(second, compact, keeps=False, gains=undecided), shares=shares)
        return _from(second, compact, keeps=True)

    def _answer(
        self,
        oracle: RestrictedOracle,
        blocks: Sequence[int],
        prices: Floats,
        known: Answers | None = None,
    ) -> tuple[list[float], int] | None:
        """Values of all blocks and how many columns are new.

        The dearest patterns are mostly those of the last prices: only new ones are written out.
        """
        patterns, jobs = self.oracle, oracle.num_decided
        if not isinstance(patterns, PatternOracle) or known is not None:
            return super()._answer(oracle, blocks, prices, known)
        found = super()._answer(oracle, range(jobs), prices)
        if found is None:
            return None
        fresh = set(enumerate(patterns.dearest(prices))) - self._patterns
        self._patterns |= fresh
        more = super()._answer(oracle, [jobs + place for place, _ in sorted(fresh)], prices)
        assert more is not None  # some pattern runs whatever is decided
        return found[0] + patterns.unit_values(prices), found[1] + more[1]

    def _forget(self, basis: Basis) -> None:
        self._patterns.clear()
        super()._forget(basis)

    def _bound_compactly(
        self,
        decisions: Sequence[BranchDecision],
        prices: Floats,
        cutoff: float | None,
        seconds: Callable[[], float | None],
        known: Answers | None,
        start: _Start | None,
    ) -> tuple[NodeBound, list[Share]]:
        """Bound a node by the compact program; its ends, none where it does not settle."""
        oracle = RestrictedOracle(self.oracle, decisions)
        best, answers = self._evaluate(oracle, prices, known)
        best_prices = prices
        if self._is_closed(best, cutoff):
            return NodeBound(best_prices, best, None, 0, answers), []
        if self._compact is None:
            self._compact = CompactProgram(
                cast(PatternOracle, self.oracle), self._penalty, self._interrupted
            )
            self._compact.add_patterns(prices)
        compact = self._compact
        compact.restrict(oracle.limits)
        if start is not None:
            compact.begin_at(start.compact)
        shares: list[Share] = []
        rounds = 0
        for _ in range(MOST_ROUNDS):
            solved = compact.solve(seconds())
            if solved is None:
                break
            rounds += 1
            value, duals, whole = solved
            added = 0
            for smoothing in (SMOOTHING, 0.0):
                tried = smoothing * best_prices + (1 - smoothing) * duals
                bound, own = self._evaluate(oracle, tried)
                if bound < best:
                    best_prices, best, answers = tried, bound, own
                added = compact.add_patterns(tried)
                if added:
                    break
            if self._is_closed(best, cutoff) or self._is_over(seconds):
                break
            if not added or (whole and best - value <= SETTLED * abs(best)):
                shares = self._ends() if whole else []
                break
        if answers is not None:
            answers = replace(answers, basis=_Start(compact.basis()))
        return NodeBound(best_prices, best, None, rounds, answers), shares

    def _is_over(self, seconds: Callable[[], float | None]) -> bool:
        left = seconds()
        return self._interrupted.is_set() or (left is not None and left <= 0)

    def candidates(self, shares: Sequence[Share]) -> list[Split]:
        """Where a node's program is undecided, the best split first."""
        return self._splits or super().candidates(shares)

    def closing(
        self,
        decisions: Sequence[BranchDecision],
        splits: Sequence[Split],
        prices: Floats,
        cutoff: float | None,
        seconds: Callable[[], float | None],
        known: Answers | None = None,
    ) -> tuple[BranchDecision, NodeBound] | None:
        """A side of the compact program's splits that its prices close: see `NodeProgram.closing`.

        What no schedule keeps has one bound on all its nodes until some are closed, so that no
        bound says where to split it. Splits that were worth their trials elsewhere come first.
        """
        start = None if known is None else cast("_Start | None", known.basis)
        for split in sorted(self._splits, key=self._worth_probing)[:MOST_PROBED]:
            key = split.block, split.feature
            self._probed[key] += 1
            for side in split.sides:
                found, _ = self._bound_compactly(
                    (*decisions, side), prices, cutoff, seconds, known, start
                )
                if self._is_closed(found.bound, cutoff):
                    self._closed[key] += 1
                    return side, found
        return None

    def _worth_probing(self, split: Split) -> float:
        """The less, the more often a side of such a split was closed."""
        key = split.block, split.feature
        return -(self._closed[key] + 0.5) / (self._probed[key] + 1)

    def _ends(self) -> list[Share]:
        """The ends of the compact program's jobs, as far as they run, as shares of schedules."""
        oracle = cast(PatternOracle, self.oracle)
        assert self._compact is not None
        nothing = np.zeros(0, dtype=np.int64)
        shares = []
        for job in range(self.oracle.num_decided):
            task = oracle.groups.block(job).task
            for end, share in self._compact.shares(job).items():
                worth = 0.0 if end == NEVER else float(task.utilities[end])
                response = Response(worth, worth, nothing, np.zeros(0))
                features = None if end == NEVER else {COMPLETES: end}
                shares.append(Share(job, response, features, share))
        return shares

    def _evaluate(
        self, oracle: RestrictedOracle, prices: Floats, known: Answers | None = None
    ) -> tuple[float, Answers | None]:
        """Bound at `prices` and the blocks' answers."""
        changed = list(range(self.oracle.num_decided))
        values: list[float] = []
        if known is not None:
            values = known.values[: len(changed)]
            changed = [b for b in changed if known.limits.get(b) != oracle.limits.get(b)]
            for block, value in zip(changed, oracle.values_of(changed, prices), strict=True):
                values[block] = value
        else:
            values = oracle.values_of(changed, prices)
        if -self.sign * math.inf in values:
            return -self.sign * math.inf, None
        values += cast(PatternOracle, self.oracle).unit_values(prices)
        terms = [*oracle.price_terms(prices).tolist(), *values]
        return oracle.round_outward(terms), Answers(oracle.limits, values)

    def completions(self, block: int) -> list[int]:
        """Completions that schedules of a block may have, `NEVER` for staying out."""
        return super().completions(block) if self._compact is None else self._compact.ends(block)

    def solution(
        self, shares: Sequence[Share], splits: Sequence[Split], seconds: float | None
    ) -> Solution | None:
        """A schedule that keeps a node's ends, if it agrees on them and servers hold one."""
        if not splits:
            found = super().solution(shares, splits, seconds)
            if found is not None and found.is_feasible():
                return found
        if self.oracle.coarser() is None or any(split.feature == COMPLETES for split in splits):
            return None
        ends = _promised(shares)
        key = tuple(sorted(ends.items()))
        limit, again = self._tried.get(key, (LEAF_SECONDS, -math.inf))
        if now() < again or self._leaves.known(ends) is not None:
            return None
        begun = now()
        leaf = self._leaves.decide(ends, _at_most(limit, seconds))
        self._tried[key] = PATIENCE * limit, now() + limit
        if leaf.status == Status.INFEASIBLE:
            self._learn(ends, _at_most(now() - begun, seconds))
        return self._leaves.best

    def _learn(self, ends: Ends, seconds: float) -> None:
        """Make small conflicts of ends that no schedule keeps."""
        begun = now()
        share = SHARE_OF_LEARNING * (begun - self._begun) - self._learned
        until = begun + min(max(LEAST_LEARNING, LEARNING * seconds), share)
        last = {job: max(self.completions(job)[:-1]) for job in ends}
        self._leaves.conflicts(ends, last, lambda: now() > until)
        self._learned += now() - begun

    @property
    def lessons(self) -> Sequence[Ends]:
        """Promises that no schedule keeps."""
        return self._leaves.impossible

    def refuting(
        self, decisions: Sequence[BranchDecision], shares: Sequence[Share] | None = None
    ) -> tuple[BranchDecision, ...] | None:
        """The ends of a conflict that a node keeps and has not decided; see `NodeProgram`."""
        limits = limits_of(decisions)
        windows = {job: window_of(own, COMPLETES)[1] for job, own in limits.items()}
        horizon = self.oracle.instance.horizon
        latest = {job: min(end, horizon) for job, end in windows.items() if end < NEVER}
        ends = latest if shares is None else _promised(shares)
        found: tuple[BranchDecision, ...] | None = None
        for conflict in self._leaves.impossible:
            if not is_weaker(conflict, ends):
                continue
            more = tuple(
                BranchDecision.at_most(job, COMPLETES, end)
                for job, end in conflict.items()
                if latest.get(job, NEVER) > end
            )
            if found is None or len(more) < len(found):
                found = more
        return found


def _promised(shares: Sequence[Share]) -> Ends:
    """The ends that a node's program gives to jobs as a whole."""
    found: dict[tuple[int, int], float] = {}
    for share in shares:
        if share.features is not None and COMPLETES in share.features:
            key = share.block, share.features[COMPLETES]
            found[key] = found.get(key, 0.0) + share.share
    return {job: end for (job, end), share in found.items() if share > 1 - WHOLE}


def _at_most(most: float, seconds: float | None) -> float:
    return most if seconds is None else min(most, seconds)


def _beginning(answers: Answers | None, *, gains: bool) -> Answers | None:
    """Answers of a node below which column generation gains something, or nothing."""
    if answers is None:
        return None
    return replace(answers, basis=replace(cast(_Start, answers.basis), gains=gains))


def _from(second: NodeBound, compact: Any, *, keeps: bool, gains: bool = True) -> NodeBound:
    """What column generation found, with where the compact program ended.

    Its own basis is kept where the node is split by it.
    """
    answers = second.answers
    if answers is None or compact is None:
        return second
    schedules = answers.basis if keeps else None
    start = _Start(compact.compact, schedules, gains)
    return replace(second, answers=replace(answers, basis=start))


NODE_PROGRAM = EndsProgram
"""What bounds the nodes of this family's trees."""
