"""Fixing by reduced costs: completions of a job that a node's prices alone prove to be too bad.

A side of a split of which the node's own prices prove enough needs no linear program. What it cuts
off makes the node's children smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from hindsched.arrays import Floats
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.oracles.decisions import COMPLETES, NEVER, BranchDecision, window_of
from hindsched.solvers.oracles.restricted import RestrictedOracle
from hindsched.solvers.tree.node_program import Answers


def fixings(
    oracle: BlockOracle,
    decisions: Sequence[BranchDecision],
    prices: Floats,
    answers: Answers,
    completions: Callable[[int], list[int]],
    is_closed: Callable[[float], bool],
) -> Iterator[tuple[BranchDecision, float]]:
    """What may be decided at a node because its prices close the other side.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle of the whole problem.
    decisions, prices, answers
        The node's, and what its blocks answered at the prices.
    completions : callable
        Completions of a job that are worth a try, sorted; `NEVER` for staying out.
    is_closed : callable
        Whether a bound is good enough.

    Yields
    ------
    decision, bound
        A decision and the bound of its other side.
    """
    sign = 1.0 if oracle.sense == "max" else -1.0
    terms = oracle.price_terms(prices).tolist()
    values = list(answers.values)
    for block in range(oracle.num_decided):
        low, high = window_of(answers.limits.get(block, {}), COMPLETES)
        own = [end for end in completions(block) if low <= end <= high]
        if len(own) < 2:
            continue

        def bound_of(side: BranchDecision, block: int = block) -> float:
            restricted = RestrictedOracle(oracle, (*decisions, side))
            response = restricted.best_response(block, prices)
            if response is None:
                return -sign * math.inf
            changed = [*values[:block], response.value, *values[block + 1 :]]
            return restricted.round_outward([*terms, *changed])

        earliest = [BranchDecision.at_least(block, COMPLETES, end) for end in own[1:]]
        latest = [BranchDecision.at_most(block, COMPLETES, _before(end)) for end in own[1:]]
        # A window's sides are closed from its borders on: the first in each order that is closed.
        for sides in (earliest, latest[::-1]):
            found = _first_closed(sides, bound_of, is_closed)
            if found is not None:
                side, bound = found
                yield side.other, bound


def _before(end: int) -> int:
    return NEVER - 1 if end == NEVER else end - 1


def _first_closed(
    sides: Sequence[BranchDecision],
    bound_of: Callable[[BranchDecision], float],
    is_closed: Callable[[float], bool],
) -> tuple[BranchDecision, float] | None:
    """The first side that is closed, of sides of which each holds the next, by bisection."""
    found = None
    first, last = 0, len(sides)
    while first < last:
        middle = last - 1 if found is None else (first + last) // 2
        bound = bound_of(sides[middle])
        if is_closed(bound):
            found, last = (sides[middle], bound), middle
        elif found is None:
            return None
        else:
            first = middle + 1
    return found
