"""Trees without the decisions that their leaves turn out not to need.

A tree branches before it knows which decisions matter. Where all leaves on one side of a split
reach the target without that decision, they stand for both sides, and the leaves of the other are
dropped. Whoever checks the certificate bounds every leaf again, far more slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hindsched.arrays import Floats
from hindsched.solvers.oracles.decisions import BranchDecision

Decisions: TypeAlias = tuple[BranchDecision, ...]
PricedLeaf: TypeAlias = tuple[Decisions, Floats]
"""Decisions from the root down, and prices."""
MOST_TRIALS = 2_000
"""Leaves that are bounded to trim one tree: a second or two."""


def trimmed(
    leaves: Sequence[PricedLeaf],
    closes: Callable[[Decisions, Floats], bool],
    most_trials: int = MOST_TRIALS,
) -> list[PricedLeaf]:
    """Drop the decisions that are not needed, from the leaves up, and what they alone ask for.

    Parameters
    ----------
    leaves : sequence of (decisions, prices)
        Leaves of a tree, those below any node next to each other.
    closes : callable
        ``closes(decisions, prices)``: whether the bound at these prices, on what obeys these
        decisions, is good enough.
    most_trials : int
        How often that may be asked.

    Returns
    -------
    list of (decisions, prices)
        Leaves of a tree again, no more than before.
    """
    trials = 0

    def is_needed(split: int, side: list[PricedLeaf]) -> bool:
        """Whether a leaf of a side asks for its decision; that one comes first from then on."""
        nonlocal trials
        for place, (decisions, prices) in enumerate(side):
            trials += 1
            rest = _without(split, decisions)
            if trials > most_trials or not closes(rest, prices):
                side.insert(0, side.pop(place))
                return True
        return False

    subtrees: list[tuple[Decisions, list[PricedLeaf]]] = []
    for leaf in leaves:
        top, own = leaf[0], [leaf]
        while subtrees and top and subtrees[-1][0][:-1] == top[:-1]:
            split, other = len(top) - 1, subtrees.pop()[1]
            fewer = sorted((other, own), key=len)
            found = next((side for side in fewer if not is_needed(split, side)), None)
            if found is None:
                own = other + own
            else:
                own = [(_without(split, decisions), prices) for decisions, prices in found]
            top = top[:split]
        subtrees.append((top, own))
    return [leaf for _, own in subtrees for leaf in own]


def _without(split: int, decisions: Decisions) -> Decisions:
    return decisions[:split] + decisions[split + 1 :]
