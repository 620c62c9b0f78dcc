"""Where to branch: the split of a node's fractional schedules that decides most.

A node's linear program mixes schedules of a job. Any feature in which the schedules differ can be
split between two of its values, so that each side forbids some of the mixture; an exhaustive
branching only needs the features to tell all schedules apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    NEVER,
    BranchDecision,
    Feature,
    limits_of,
    window_of,
)

LEAST_SIDE = 1e-6
"""Share of a job's schedules that each side of a split must hold."""
LEAST_STAKE = 1e-4
"""Share of a job's objective below which nothing is at stake."""


@dataclass(frozen=True)
class Share:
    """A schedule in a node's linear program and how much of it is taken."""

    block: int  # position of the block
    response: Response  # the schedule
    features: Mapping[Feature, int] | None  # its features; None for the outside option
    share: float  # value of its column


@dataclass(frozen=True)
class Split:
    """A split of one block's schedules by one feature."""

    block: int  # position of the block
    feature: Feature  # what is split
    at_most: int  # largest value of the lower side
    rank: int  # place of the feature in the family's order, staying out before all of them
    balance: float  # share of the schedules on the smaller side
    lower_share: float  # share of the schedules on the lower side
    stake: float = 0.0  # by how much the sides' objectives differ, times the balance

    @property
    def sides(self) -> tuple[BranchDecision, BranchDecision]:
        """The two decisions, the side with the larger share last."""
        lower = BranchDecision.at_most(self.block, self.feature, self.at_most)
        upper = BranchDecision.at_least(self.block, self.feature, self.at_most + 1)
        return (lower, upper) if self.lower_share < 0.5 else (upper, lower)


def candidates(oracle: BlockOracle, shares: Sequence[Share]) -> list[Split]:
    """Splits of a node's linear program, the most promising first.

    First whether a job runs at all, then the features in the family's order; among equals the
    split with the most of the objective at stake, then the one that divides a job's schedules most
    evenly. Empty if every job has one schedule.
    """
    rank = {name: position for position, name in enumerate(oracle.features)}
    by_block: dict[int, list[Share]] = {}
    for share in shares:
        by_block.setdefault(share.block, []).append(share)
    found: list[Split] = []
    for block, own in by_block.items():
        if len(own) < 2:
            continue
        for feature in _features(own):
            weights: dict[int, float] = {}
            worth: dict[int, float] = {}
            for share in own:
                value = _value(share.features, feature)
                weights[value] = weights.get(value, 0.0) + share.share
                worth[value] = worth.get(value, 0.0) + share.share * share.response.objective
            if len(weights) > 1:
                found += _splits(block, feature, weights, worth, rank[feature.name])
    return sorted(found, key=lambda split: (split.rank, -split.stake, -split.balance))


def undecided(
    oracle: BlockOracle, shares: Sequence[Share], decisions: Sequence[BranchDecision]
) -> list[Split]:
    """Splits of an integral node that could still be decided otherwise, in the family's order.

    An aggregated program may hold schedules that real servers do not. Whatever of them the node's
    decisions leave open is split from what its jobs do now; empty if nothing is left open.
    """
    rank = {name: position for position, name in enumerate(oracle.features)}
    limits = limits_of(decisions)
    found: list[Split] = []
    for share in shares:
        if share.features is None:
            continue
        own = limits.get(share.block, {})
        for feature, value in share.features.items():
            low, high = window_of(own, feature)
            place = rank[feature.name]
            if high > value:
                found.append(Split(share.block, feature, value, place, 0.0, 1.0))
            elif low < value:
                found.append(Split(share.block, feature, value - 1, place, 0.0, 0.0))
    return sorted(found, key=lambda split: split.rank)


def _features(shares: Sequence[Share]) -> list[Feature]:
    seen = {COMPLETES: None}
    for share in shares:
        seen.update(dict.fromkeys(share.features or ()))
    return list(seen)


def _value(values: Mapping[Feature, int] | None, feature: Feature) -> int:
    """Value of a feature; the outside option never completes and has 0 of everything else."""
    if values is None:
        return NEVER if feature == COMPLETES else 0
    return values.get(feature, 0)


def _splits(
    block: int,
    feature: Feature,
    weights: Mapping[int, float],
    worth: Mapping[int, float],
    rank: int,
) -> list[Split]:
    """The split of one feature with most at stake, and that between running and staying out."""
    ordered = sorted(weights)
    total, all_worth = sum(weights.values()), sum(worth.values())
    below_worth = 0.0
    best: Split | None = None
    runs: Split | None = None
    below = 0.0
    for value, following in pairwise(ordered):
        below += weights[value]
        below_worth += worth[value]
        side = min(below, total - below)
        if side < LEAST_SIDE:
            continue
        differ = below_worth / below - (all_worth - below_worth) / (total - below)
        stake = side * abs(differ)
        if stake <= LEAST_STAKE * abs(all_worth):
            stake = 0.0
        split = Split(block, feature, value, rank, side, below / total, stake)
        if following == NEVER:
            runs = Split(block, feature, NEVER - 1, -1, side, below / total, stake)
        elif best is None or (split.stake, side) > (best.stake, best.balance):
            best = split
    return [split for split in (runs, best) if split is not None]
