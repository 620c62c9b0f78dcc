"""Branch and bound over any family's restricted oracle; its result is a tree of prices.

A node is a set of decisions on single jobs. Its bound comes from prices (`node_program`), so the
leaves of the search are the leaves of a certificate that is checked without a solver. A node is
closed when its prices prove that nothing in it beats the incumbent, or when its decisions leave a
job without a schedule; other nodes are split where their linear program is undecided
(`branching`).

A family's node program may know from a solver that no solution obeys a node's decisions. Such a
node is refuted: it needs prices as any other, but only for the certificate, so it is taken when no
other is left.

The search is anytime: the open nodes are leaves like the closed ones, with the prices that they
have, and the worst leaf is a bound on the optimum whenever it stops.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Event
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solvers.bounds.fixing import fixings
from hindsched.solvers.bounds.remembered import RememberedBounds
from hindsched.solvers.bounds.trimming import trimmed
from hindsched.solvers.certificates.certificate import Certificate, certify
from hindsched.solvers.door.answer import Progress
from hindsched.solvers.door.program import next_to_nothing
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.door.work import now, spend
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.oracles.decisions import BranchDecision
from hindsched.solvers.tree.certificate import certify_tree
from hindsched.solvers.tree.node_program import Answers, NodeBound, NodeProgram

DIVE_EVERY = 3
"""Every so many nodes the deepest open one is taken instead of the worst: it finds solutions."""
FindSolution = Callable[[Floats, Sequence[Any]], Solution | None]
"""``find(prices, shares)``: a solution near a node's linear program, checked or None."""
MakeProgram = Callable[[Any, float, Event], Any]
"""``make(oracle, size, interrupted)``: a `NodeProgram`, or what a family has in its place."""


@dataclass
class Node:
    """A node of the tree.

    Parameters
    ----------
    decisions : tuple of BranchDecision
        From the root down.
    prices : ndarray
        The best prices known: its own, or until it is bounded its parent's.
    bound : float
        What they prove, its parent's bound at most.
    answers : Answers, optional
        What the blocks answered at these prices.
    children : list of Node
        Empty for a leaf.
    refuted : bool
        Whether a solver says that no solution obeys the decisions.
    """

    decisions: tuple[BranchDecision, ...]
    prices: Floats = field(repr=False)
    bound: float
    answers: Answers | None = field(default=None, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)
    refuted: bool = False


class BranchAndBound:
    """The search, resumable.

    Parameters
    ----------
    oracle : BlockOracle
        Exact oracle with features, in the layout that the certificate uses.
    prices : ndarray, shape (oracle.rows.size,)
        Prices to begin from.
    gap : float
        Relative gap at which an optimum counts as proven.
    incumbent : Solution, optional
        A checked solution.
    find_solution : callable, optional
        Looks for solutions near the nodes.
    interrupted : Event
        Set by Ctrl-C.
    on_solution : callable, optional
        Told of every better solution.
    program : callable
        Makes what bounds the nodes.

    Attributes
    ----------
    looks : bool
        Whether solutions are looked for at the nodes: not where the incumbent is the best.
    """

    def __init__(
        self,
        oracle: BlockOracle,
        prices: Floats,
        *,
        gap: float,
        incumbent: Solution | None = None,
        find_solution: FindSolution | None = None,
        interrupted: Event | None = None,
        on_solution: Callable[[Solution], None] | None = None,
        program: MakeProgram = NodeProgram,
    ) -> None:
        self.oracle, self.gap = oracle, gap
        self._make_program = program
        self.sign = 1.0 if oracle.sense == "max" else -1.0
        self.incumbent = incumbent
        self.objective = None if incumbent is None else incumbent.objective()
        self.nodes = 0
        self.looks = True
        self.stopped_by = StoppedBy.TIME_LIMIT
        self._find, self._on_solution = find_solution, on_solution
        self._interrupted = interrupted or Event()
        self._coarse = oracle.coarser()
        self.root = Node((), prices, oracle.bound(prices))
        self._program: Any = None
        self._number = count()
        self._open: list[tuple[float, int, Node]] = []
        self._refuted: list[tuple[float, int, Node]] = []
        self._taken: Node | None = None
        self._unresolved: list[Node] = []
        self._push(self.root)

    @property
    def bound(self) -> float:
        """Bound on what is open; the objective once nothing is (not rounded outward)."""
        return self._bound_on(self._waiting())

    @property
    def solver_bound(self) -> float:
        """The bound that holds if a solver is right about the nodes that it refutes."""
        waiting = [node for node in self._waiting() if not node.refuted]
        if not waiting and self._cutoff is not None:
            return self._cutoff  # what closed nodes were closed by
        return self._bound_on(waiting)

    def _waiting(self) -> list[Node]:
        """Nodes that are not closed, with the one that is being bounded."""
        waiting = [node for _, _, node in (*self._open, *self._refuted)]
        waiting += [] if self._taken is None else [self._taken]
        return waiting + [node for node in self._unresolved if not self._is_closed(node.bound)]

    def _bound_on(self, waiting: Sequence[Node]) -> float:
        if not waiting:
            return self.root.bound if self.objective is None else self.objective
        worst = max(self.sign * node.bound for node in waiting)
        if self._cutoff is not None:
            worst = max(worst, self.sign * self._cutoff)
        return self.sign * worst

    @property
    def lessons(self) -> Sequence[object]:
        """What the nodes' program has learned: see `NodeProgram.lessons`."""
        return () if self._program is None else self._program.lessons

    @property
    def is_closed(self) -> bool:
        """Whether every leaf is closed: the incumbent is optimal within the gap."""
        waiting = self._open or self._refuted
        return not waiting and all(self._is_closed(node.bound) for node in self._unresolved)

    def run(self, seconds: Callable[[], float | None], report: Progress | None = None) -> None:
        """Take nodes until none is open, the time is over or Ctrl-C comes.

        Parameters
        ----------
        seconds : callable
            Seconds that are left, or None.
        report : callable, optional
            ``report(bound, objective, seconds, message)``.
        """
        begin = now()
        while self._open or self._refuted:
            left = seconds()
            if self._interrupted.is_set() or (left is not None and left <= 0):
                interrupted = self._interrupted.is_set()
                self.stopped_by = StoppedBy.INTERRUPTED if interrupted else StoppedBy.TIME_LIMIT
                return
            node = self._take()
            if self._is_closed(node.bound) and node is not self.root:
                continue
            self._taken = node
            self._bound_and_split(node, seconds)
            self._taken = None
            if report is not None:
                text = f"{self.nodes} nodes, {len(self._open) + len(self._refuted)} open"
                report(self.solver_bound, self.objective, now() - begin, text)
        self.stopped_by = StoppedBy.GAP if self.is_closed else StoppedBy.CONVERGED

    def certificate(self) -> Certificate:
        """The tree so far, with subtrees that prove nothing more than their root cut off.

        A closed tree loses the decisions that its leaves do not need, see `trimming`.

        Where that leaves the root alone, its prices are a certificate of kind ``lagrangian``,
        unless only a tree's rounding to what an objective can be closes the gap.
        """
        target = self._worst_leaf()
        if self._cutoff is not None:
            target = max(target, self.sign * self._cutoff)
        leaves: list[tuple[tuple[BranchDecision, ...], Floats]] = []
        oracle, bound = self.oracle, RememberedBounds(self.oracle)
        self._collect(self.root, target, bound, leaves)
        if self._coarse is not None:
            size = self._coarse.rows.size
            if not any(prices[size:].any() for _, prices in leaves):
                oracle, bound = self._coarse, RememberedBounds(self._coarse)
                leaves = [(decisions, prices[:size]) for decisions, prices in leaves]
        if self.is_closed:
            leaves = trimmed(
                leaves, lambda decisions, prices: self.sign * bound(decisions, prices) <= target
            )
        if len(leaves) > 1:
            return certify_tree(oracle, leaves)
        alone = certify(oracle, leaves[0][1])
        if oracle.step is None or self._is_closed(alone.bound):
            return alone
        return certify_tree(oracle, leaves)

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

    def _push(self, node: Node) -> None:
        if self._program is not None and not node.refuted:
            node.refuted = self._program.refuting(node.decisions) == ()
        waiting = self._refuted if node.refuted else self._open
        heapq.heappush(waiting, (-self.sign * node.bound, -next(self._number), node))

    def _take(self) -> Node:
        if not self._open:
            return heapq.heappop(self._refuted)[2]
        if self.nodes % DIVE_EVERY == DIVE_EVERY - 1:
            position = max(
                range(len(self._open)),
                key=lambda at: (len(self._open[at][2].decisions), -self._open[at][1]),
            )
            _, _, node = self._open[position]
            self._open[position] = self._open[-1]
            self._open.pop()
            heapq.heapify(self._open)
            return node
        return heapq.heappop(self._open)[2]

    def _bound_and_split(self, node: Node, seconds: Callable[[], float | None]) -> None:
        self.nodes += 1
        spend()
        shares = self._bound_node(node, seconds)
        if self._is_closed(node.bound):
            return
        if shares is None:
            left = seconds()
            out_of_time = self._interrupted.is_set() or (left is not None and left <= 0)
            # A node whose program fails to settle stays a leaf with the bound that it has.
            (self._push if out_of_time else self._unresolved.append)(node)
            return
        splits = self._program.candidates(shares)
        if self.looks and not node.refuted:
            own = self._program.solution(shares, splits, seconds())
            self._look_for_solution(node.prices, shares, own)
        if self._is_closed(node.bound):
            return
        splits = splits or self._program.undecided(shares, node.decisions)
        node = self._fixed(node)
        refuting = None if node.refuted else self._program.refuting(node.decisions, shares)
        if refuting is not None:
            for decision in refuting:
                node = self._split(node, (decision.other, decision), waits=False)
            node.refuted = True
            self._push(node)
        elif splits:
            self._split_at(node, splits, seconds)
        else:
            self._unresolved.append(node)

    def _split_at(
        self, node: Node, splits: Sequence[Any], seconds: Callable[[], float | None]
    ) -> None:
        """Split a node at its best split; a refuted one where a side is closed at once."""
        closing = None
        if node.refuted:
            closing = self._program.closing(
                node.decisions, splits, node.prices, self._cutoff, seconds, node.answers
            )
        if closing is None:
            self._split(node, splits[0].sides)
        else:
            side, found = closing
            self._push(self._without(node, side, found.prices, found.bound))

    def _split(self, node: Node, sides: Sequence[BranchDecision], *, waits: bool = True) -> Node:
        """Give a node its children; return the last, which waits to be taken if `waits` says so."""
        for decision in sides:
            child = Node(
                (*node.decisions, decision), node.prices, node.bound, node.answers,
                refuted=node.refuted,
            )  # fmt: skip
            node.children.append(child)
            if waits or decision is not sides[-1]:
                self._push(child)
        return child

    def _bound_node(self, node: Node, seconds: Callable[[], float | None]) -> Sequence[Any] | None:
        """Find better prices for a node; return its linear program's solution, if it needs one."""
        if self._program is None:
            least = min(1.0, abs(self.objective or 1.0))  # a bound may be next to 0
            size = max(abs(self.root.bound), least)
            self._program = self._make_program(self.oracle, size, self._interrupted)
        found: NodeBound = self._program.bound(
            node.decisions, node.prices, self._cutoff, seconds, node.answers
        )
        if math.isinf(found.bound):
            node.bound, node.prices = found.bound, np.zeros(self.oracle.rows.size)
        elif self.sign * found.bound <= self.sign * node.bound:
            node.bound, node.prices, node.answers = found.bound, found.prices, found.answers
        return found.shares

    def _fixed(self, node: Node) -> Node:
        """Cut off, without a program, the completions that a node's prices prove to be too bad.

        Each costs a leaf with the node's own prices. Return the node that is left.
        """
        if not self.oracle.fixes or node.answers is None or self.objective is None:
            return node
        for decision, bound in fixings(
            self.oracle, node.decisions, node.prices, node.answers,
            self._program.completions, self._is_closed,
        ):  # fmt: skip
            node = self._without(node, decision.other, node.prices, bound)
        return node

    def _without(self, node: Node, side: BranchDecision, prices: Floats, bound: float) -> Node:
        """Cut off a side of a node that prices close; return the other, which does not wait yet."""
        if not math.isfinite(bound):
            prices = np.zeros(self.oracle.rows.size)
        beaten = Node((*node.decisions, side), prices, bound, refuted=node.refuted)
        rest = Node(
            (*node.decisions, side.other), node.prices, node.bound, node.answers,
            refuted=node.refuted,
        )  # fmt: skip
        node.children += [beaten, rest]
        return rest

    def _look_for_solution(
        self, prices: Floats, shares: Sequence[Any], own: Solution | None
    ) -> None:
        """Take a better solution: the node's own, or one near it."""
        found = [own]
        if self._find is not None:
            found.append(self._find(prices, shares))
        for solution in found:
            if solution is not None and solution.is_feasible():
                self.offer(solution)

    def offer(self, solution: Solution) -> None:
        """Take a checked solution if it is better than the incumbent."""
        objective = solution.objective()
        if self.objective is None or self.sign * (objective - self.objective) > 0:
            self.incumbent, self.objective = solution, objective
            if self._on_solution is not None:
                self._on_solution(solution)

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

    def _collect(
        self,
        node: Node,
        target: float,
        bound: RememberedBounds,
        leaves: list[tuple[tuple[BranchDecision, ...], Floats]],
    ) -> None:
        """List the leaves below a node.

        A node is one that reaches the target itself, or at the prices of a child that is a leaf.
        """
        waiting = [node]
        while waiting:
            here = waiting.pop()
            if not here.children or self.sign * here.bound <= target:
                leaves.append((here.decisions, here.prices))
                continue
            own = (child.prices for child in here.children if not child.children)
            enough = (
                prices for prices in own if self.sign * bound(here.decisions, prices) <= target
            )
            prices = next(enough, None)
            if prices is None:
                waiting += here.children
            else:
                leaves.append((here.decisions, prices))
