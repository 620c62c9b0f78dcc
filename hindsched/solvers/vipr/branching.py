"""A small branch and bound whose every node is proven in rational numbers.

HiGHS solves the linear programs of the nodes; only its duals (or, of an infeasible node, its dual
ray) are used, and what they prove is computed exactly. A node is split where a whole number is not
one. The best open node comes first; a node that is not split by the end keeps its own bound, so
that a search stopped early has a weaker bound, and a valid one.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field, replace
from fractions import Fraction

import highspy
import numpy as np

from hindsched.errors import SolveFailed
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.standard_form import INTEGER_TOLERANCE, LinearProgram
from hindsched.solvers.vipr.exact_program import Ends, ExactProgram, Proof

CLOSED = Fraction(1, 10**9)
"""Relative distance from the incumbent within which a node is not split any more."""

PLACED = 1e-3
"""Weight of the fraction of a column without a cost, where others have one."""


@dataclass
class Node:
    """A part of the solutions: those of its parent with ``x <= split`` or ``x >= split + 1``.

    Parameters
    ----------
    lower, upper : dict
        Ends of whole columns that decisions on the way here moved.
    proof : Proof, optional
        Bound on the objective, or above 0 in a node without solutions (`is_empty`).
    column, split : int
        What it is split on; `children` are the two sides.
    """

    lower: dict[int, int]
    upper: dict[int, int]
    proof: Proof | None = None
    is_empty: bool = False
    column: int = -1
    split: int = 0
    children: list[Node] = field(default_factory=list)


@dataclass
class Tree:
    """What a search found: its root and the best point, whose constraints hold exactly."""

    root: Node
    point: list[Fraction] | None = None
    value: Fraction | None = None
    nodes: int = 0
    stopped: str = "closed"


class Branching:
    """Branch and bound on one program.

    Parameters
    ----------
    program : LinearProgram
        The compiled program.
    exact_program : ExactProgram
        The same in rational numbers.
    """

    def __init__(self, program: LinearProgram, exact_program: ExactProgram) -> None:
        self.program, self.exact = program, exact_program
        relaxed = replace(program, integer=np.zeros_like(program.integer))
        self.highs = HighsProgram(relaxed, SolveOptions(solver_options={"presolve": "off"})).highs
        self.whole = np.flatnonzero(program.integer)

    def search(self, start: list[float] | None, most_nodes: int, seconds: float) -> Tree:
        """Split nodes until all are closed, or so many were looked at, or the time is over."""
        tree = Tree(Node({}, {}))
        self.offer(tree, start)
        until = time.monotonic() + seconds
        waiting: list[tuple[float, int, Node]] = []

        def look(node: Node, parents: Proof | None) -> None:
            self.look(tree, node, parents)
            if node.column >= 0:
                bound = -math.inf if node.proof is None else float(node.proof.bound)
                heapq.heappush(waiting, (bound, tree.nodes, node))

        look(tree.root, None)
        while waiting:
            if tree.nodes >= most_nodes or time.monotonic() > until:
                tree.stopped = "nodes" if tree.nodes >= most_nodes else "time"
                break
            _, _, node = heapq.heappop(waiting)
            if not self.is_closed(tree, node):
                node.children = [
                    Node(node.lower, {**node.upper, node.column: node.split}),
                    Node({**node.lower, node.column: node.split + 1}, node.upper),
                ]
                for child in node.children:
                    look(child, node.proof)
        return tree

    def is_closed(self, tree: Tree, node: Node) -> bool:
        """Whether nothing in a node is better than the best point, by more than a rounding."""
        if tree.value is None or node.proof is None:
            return False
        return node.proof.bound >= tree.value - CLOSED * max(Fraction(1), abs(tree.value))

    def look(self, tree: Tree, node: Node, parents: Proof | None) -> None:
        """Bound a node, and choose what to split it on."""
        tree.nodes += 1
        lower, upper = self.program.lower.copy(), self.program.upper.copy()
        for ends, moved in ((lower, node.lower), (upper, node.upper)):
            ends[list(moved)] = list(moved.values())
        columns = np.arange(lower.size, dtype=np.int32)
        self.highs.changeColsBounds(columns.size, columns, lower, upper)
        self.highs.run()
        status = self.highs.getModelStatus()
        own_lower, own_upper = self.ends_of(node)
        node.proof = parents
        if status == highspy.HighsModelStatus.kInfeasible:
            _, found, ray = self.highs.getDualRay()
            for sign in (1, -1) if found else ():
                proof = self.exact.prove(sign * np.asarray(ray), own_lower, own_upper, factor=0)
                if proof is not None and proof.bound > 0:
                    node.proof, node.is_empty = proof, True
                    return
            if parents is None:
                raise SolveFailed("the program has no solution, and HiGHS no proof of that")
            return  # the parent's bound stands
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolveFailed(f"a relaxation ended as {self.highs.modelStatusToString(status)}")
        solution = self.highs.getSolution()
        proof = self.exact.prove(solution.row_dual, own_lower, own_upper)
        if proof is not None and (parents is None or proof.bound > parents.bound):
            node.proof = proof
        point = np.asarray(solution.col_value)
        off = np.abs(point[self.whole] - np.rint(point[self.whole]))
        if not off.size or off.max() <= INTEGER_TOLERANCE:
            self.offer(tree, point.tolist())
            return
        # what costs something decides more than where it is placed
        off *= np.where(self.program.cost[self.whole] != 0, 1.0, PLACED) * (off > INTEGER_TOLERANCE)
        node.column = int(self.whole[off.argmax()])
        node.split = math.floor(point[node.column])

    def ends_of(self, node: Node) -> tuple[Ends, Ends]:
        """Ends of the columns' ranges in a node; a moved one is named by its column and side."""
        lower, upper = dict(self.exact.lower), dict(self.exact.upper)
        lower.update({j: (Fraction(k), assumption(j, "G", k)) for j, k in node.lower.items()})
        upper.update({j: (Fraction(k), assumption(j, "L", k)) for j, k in node.upper.items()})
        return lower, upper

    def offer(self, tree: Tree, point: list[float] | None) -> None:
        """Keep a point if it is exactly feasible and the best so far."""
        found = None if point is None else self.exact.polished(point)
        if found is not None:
            value = self.exact.value(found)
            if tree.value is None or value < tree.value:
                tree.point, tree.value = found, value


def assumption(column: int, sense: str, side: int) -> tuple[int, str, int]:
    """Key of the assumption ``x >= side`` (``G``) or ``x <= side`` (``L``) in a proof's weights."""
    return column, sense, side
