"""The nodes of an oasis tree: where all ends are decided, a leaf says whether servers keep them.

A node's linear program that agrees on every job's end promises a schedule, but mixes workers and
places. The leaf program of these ends finds real ones, or none exists; without it a tree would
have to branch on workers until its linear program is whole by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import cast

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import Solution
from hindsched.solvers.bounds.branching import Share, Split
from hindsched.solvers.bounds.node_program import NodeProgram
from hindsched.solvers.methods.oasis.conflicts import Ends, Leaves
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import BlockOracle
from hindsched.solvers.pricing.decisions import COMPLETES

LEAF_SECONDS = 5.0
"""Limit of one leaf, which mostly takes a tenth of it."""


class EndsProgram(NodeProgram):
    """Bounds nodes by column generation, and decides the ends that they promise.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of the whole problem, with features.
    size : float
        A bound on the optimum, by which buying off is priced.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(self, oracle: BlockOracle, size: float, interrupted: Event) -> None:
        super().__init__(oracle, size, interrupted)
        self._leaves = Leaves(cast(OasisInstance, oracle.instance), SolveOptions(threads=1))
        self._decided: set[tuple[tuple[int, int], ...]] = set()

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
        ends: Ends = {
            share.block: share.features[COMPLETES]
            for share in shares
            if share.features is not None and COMPLETES in share.features
        }
        key = tuple(sorted(ends.items()))
        if key in self._decided:
            return None
        self._decided.add(key)
        self._leaves.decide(ends, LEAF_SECONDS if seconds is None else min(LEAF_SECONDS, seconds))
        return self._leaves.solution


NODE_PROGRAM = EndsProgram
"""What bounds the nodes of this family's trees."""
