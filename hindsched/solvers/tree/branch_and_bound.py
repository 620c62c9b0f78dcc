"""Branch and bound over any family's restricted oracle; its result is a tree of prices.

A node is a set of decisions on single jobs. Its bound comes from prices (`node_program`), so the
leaves of the search are the leaves of a certificate that is checked without a solver. A node is
closed when its prices prove that nothing in it beats the incumbent, or when its decisions leave a
job without a schedule; other nodes are split where their linear program is undecided. The search is
anytime: the worst leaf, open or closed, is a bound on the optimum whenever it stops.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solvers.base import family_solvers
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.certificates.file import certify_tree
from hindsched.solvers.door.program import next_to_nothing
from hindsched.solvers.door.result import Progress, StoppedBy
from hindsched.solvers.door.work import count_work, interrupted, now
from hindsched.solvers.oracles.base import BranchingOracle, PricingOracle, RestrictableOracle
from hindsched.solvers.oracles.decisions import BranchDecision
from hindsched.solvers.search import NeighbourhoodSearch
from hindsched.solvers.tree.node_program import Answers, NodeBound, NodeProgram

DIVE_EVERY = 3
"""Every so many nodes the deepest open one is taken instead of the worst: it finds solutions."""
SHARE_OF_TIME = 0.25
"""Part of the time since the last node that the neighbourhood search may take, and of all the time
that looking for solutions may take."""
PATIENCE = 3.0  # about how many calls in a row that find nothing halve that share
FindSolution = Callable[[Floats], Solution | None]
"""A checked solution that a node's prices lead to, or None."""


@dataclass
class Node:
    """A node of the tree."""

    decisions: tuple[BranchDecision, ...]  # from the root down
    # the best prices known: its own, or until it is bounded its parent's
    prices: Floats = field(repr=False)
    bound: float  # what they prove, its parent's bound at most
    # what the blocks answered at these prices
    answers: Answers | None = field(default=None, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)  # empty for a leaf


class BranchAndBound:
    """The search, resumable, from prices of an exact oracle with features.

    The oracle's layout is the certificate's. `find_solution` looks for solutions near the nodes
    while `looks` says so: not where the incumbent is the best.
    """

    def __init__(
        self, oracle: RestrictableOracle, prices: Floats, *, gap: float,
        incumbent: Solution | None = None, find_solution: FindSolution | None = None,
        looks: bool = True,
    ) -> None:  # fmt: skip
        self.oracle, self.gap, self.looks = oracle, gap, looks
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self.incumbent = incumbent
        self.objective = None if incumbent is None else incumbent.objective()
        self.nodes = 0
        self.stopped_by = StoppedBy.TIME_LIMIT
        self._find = find_solution
        self._interrupted = interrupted()
        self.root = Node((), prices, oracle.bound(prices))
        self._program: Any = None
        self._number = count()
        self._open: list[tuple[float, int, Node]] = []
        self._taken: Node | None = None
        self._unresolved: list[Node] = []
        self._push(self.root)

    @property
    def bound(self) -> float:
        """Bound on what is open; the objective once nothing is (not rounded outward)."""
        waiting = [node for _, _, node in self._open]
        waiting += [] if self._taken is None else [self._taken]
        waiting += [node for node in self._unresolved if not self._is_closed(node.bound)]
        if not waiting:
            return self.root.bound if self.objective is None else self.objective
        worst = max(self.sign * node.bound for node in waiting)
        cutoff = self._cutoff
        return self.sign * (worst if cutoff is None else max(worst, self.sign * cutoff))

    @property
    def is_closed(self) -> bool:
        """Whether every leaf is closed: the incumbent is optimal within the gap."""
        return not self._open and all(self._is_closed(node.bound) for node in self._unresolved)

    def run(self, seconds: Callable[[], float | None], report: Progress | None = None) -> None:
        """Take nodes until none is open, no seconds are left (None: no limit) or Ctrl-C comes."""
        begin = now()
        while self._open:
            if self._is_over(seconds):
                is_interrupted = self._interrupted.is_set()
                self.stopped_by = StoppedBy.INTERRUPTED if is_interrupted else StoppedBy.TIME_LIMIT
                return
            node = self._take()
            if self._is_closed(node.bound) and node is not self.root:
                continue
            self._taken = node
            self._bound_and_split(node, seconds)
            self._taken = None
            if report is not None:
                text = f"{self.nodes} nodes, {len(self._open)} open"
                report(self.bound, self.objective, now() - begin, text)
        self.stopped_by = StoppedBy.GAP if self.is_closed else StoppedBy.CONVERGED

    def certificate(self) -> Certificate:
        """The tree so far, with subtrees that prove nothing more than their root cut off.

        Where that leaves the root alone, its prices are a certificate of kind ``lagrangian``,
        unless only a tree's rounding to what an objective can be closes the gap.
        """
        target = self._worst_leaf()
        if self._cutoff is not None:
            target = max(target, self.sign * self._cutoff)
        leaves: list[tuple[tuple[BranchDecision, ...], Floats]] = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if not node.children or self.sign * node.bound <= target:
                leaves.append((node.decisions, node.prices))
            else:
                waiting += node.children
        if len(leaves) == 1:
            alone = certify(self.oracle, leaves[0][1])
            if self.oracle.step is None or self._is_closed(alone.bound):
                return alone
        return certify_tree(self.oracle, leaves)

    @property
    def _cutoff(self) -> float | None:
        """Bound that is good enough: what the gap allows beyond the incumbent."""
        if self.objective is None:
            return None
        allowance = 0.9 * self.gap * abs(self.objective) + 0.5 * next_to_nothing(self.objective)
        return self.objective + self.sign * allowance

    def _is_closed(self, bound: float) -> bool:
        if math.isinf(bound):
            return True
        cutoff = self._cutoff
        return cutoff is not None and self.sign * (bound - cutoff) <= 0

    def _is_over(self, seconds: Callable[[], float | None]) -> bool:
        left = seconds()
        return self._interrupted.is_set() or (left is not None and left <= 0)

    def _push(self, node: Node) -> None:
        heapq.heappush(self._open, (-self.sign * node.bound, -next(self._number), node))

    def _take(self) -> Node:
        if self.nodes % DIVE_EVERY != DIVE_EVERY - 1:
            return heapq.heappop(self._open)[2]
        deepest = max(self._open, key=lambda entry: (len(entry[2].decisions), -entry[1]))
        self._open.remove(deepest)
        heapq.heapify(self._open)
        return deepest[2]

    def _bound_and_split(self, node: Node, seconds: Callable[[], float | None]) -> None:
        self.nodes += 1
        count_work()
        shares = self._bound_node(node, seconds)
        if self._is_closed(node.bound):
            return
        if shares is None:
            # A node whose program fails to settle stays a leaf with the bound that it has.
            self._push(node) if self._is_over(seconds) else self._unresolved.append(node)
            return
        splits = self._program.candidates(shares)
        if self.looks:
            self._offer(self._program.solution(shares, splits, seconds()))
            self._offer(None if self._find is None else self._find(node.prices))
        if self._is_closed(node.bound):
            return
        splits = splits or self._program.undecided(shares, node.decisions)
        if not splits:
            self._unresolved.append(node)
            return
        for side in splits[0].sides:
            child = Node((*node.decisions, side), node.prices, node.bound, node.answers)
            node.children.append(child)
            self._push(child)

    def _bound_node(self, node: Node, seconds: Callable[[], float | None]) -> Sequence[Any] | None:
        """Find better prices for a node; return its linear program's solution, if it needs one."""
        if self._program is None:
            least = min(1.0, abs(self.objective or 1.0))  # a bound may be next to 0
            size = max(abs(self.root.bound), least)
            family = family_solvers(self.oracle.instance.family)
            self._program = family.node_program(self.oracle, size)
            if self._program is None:
                assert isinstance(self.oracle, BranchingOracle)
                self._program = NodeProgram(self.oracle, size, is_optimum_known=not self.looks)
        node_bound: NodeBound = self._program.bound(
            node.decisions, node.prices, self._cutoff, seconds, node.answers
        )
        if math.isinf(node_bound.bound):
            node.bound, node.prices = node_bound.bound, np.zeros(self.oracle.rows.size)
        elif self.sign * node_bound.bound <= self.sign * node.bound:
            node.bound, node.prices, node.answers = (
                node_bound.bound,
                node_bound.prices,
                node_bound.answers,
            )
        return node_bound.shares

    def _offer(self, solution: Solution | None) -> None:
        """Take a solution if it is feasible and better than the incumbent."""
        if solution is None or not solution.is_feasible():
            return
        objective = solution.objective()
        if self.objective is None or self.sign * (objective - self.objective) > 0:
            self.incumbent, self.objective = solution, objective

    def _worst_leaf(self) -> float:
        """Worst bound of a leaf, times the sign."""
        worst = -math.inf
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            waiting += node.children
            if not node.children and math.isfinite(node.bound):
                worst = max(worst, self.sign * node.bound)
        return worst


class NodeSolutions:
    """Goes on with a search of schedules on real servers under the nodes' prices."""

    def __init__(self, oracle: PricingOracle, search: NeighbourhoodSearch) -> None:
        self.oracle, self.search, self._interrupted = oracle, search, interrupted()
        self._begun = self._last = now()
        self._spent, self._in_vain = 0.0, 0

    def __call__(self, prices: Floats) -> Solution | None:
        """A better solution found near a node, or None; less is looked, the longer in vain."""
        begun, share = now(), SHARE_OF_TIME * PATIENCE / (PATIENCE + self._in_vain)
        if self._spent > share * (begun - self._begun):
            return None
        deadline = begun + share * (begun - self._last)
        self.search.set_prices(self.oracle.prices_on_servers(prices))
        better = self.search.improve(lambda: self._interrupted.is_set() or now() >= deadline)
        self._last, self._in_vain = now(), 0 if better else self._in_vain + 1
        self._spent += self._last - begun
        return self.search.solution() if better else None
