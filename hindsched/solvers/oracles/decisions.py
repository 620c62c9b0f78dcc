"""Decisions of a branching: what they say of one job, in memory and in certificate files.

A *feature* is a whole number that every schedule of a job has: its ``completion`` slot, how many
``workers`` it runs on a server in a slot, and so on; a family's oracle names those that it
understands (`RestrictableOracle.features`). A *decision* keeps the schedules of one job for which a
feature is at most, or at least, a number. As the numbers are whole, "at most k" and "at least
k + 1" together leave nothing out: that is all a verifier needs to know of a family to see that the
leaves of a tree cover its root.

Two conventions make this true for jobs that do not run. A job that stays out (or is served beyond
the slots that are priced) has ``completion`` `NEVER`; and a job without a schedule has 0 of
everything that is counted. The split between `NEVER` and any other completion is written
``"admitted": true`` and ``false``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hindsched.errors import InputError
from hindsched.json_types import JsonObject
from hindsched.solvers.oracles.rows import AxisLabel

NEVER = 2**31 - 1  # completion of a job that stays out, and a limit that limits nothing
COMPLETION = "completion"  # the feature that every family has
Axes = tuple[tuple[str, tuple[AxisLabel, ...]], ...]
"""Axis names and labels of a feature, as in `RowSet`."""


class Feature(NamedTuple):
    """A whole number that every schedule of a job has."""

    name: str  # what is counted, one of ``RestrictableOracle.features``
    # positions along the feature's axes
    index: tuple[int, ...] = ()  # type: ignore[assignment]  # hides a method of tuples


COMPLETES = Feature(COMPLETION)
Limits = Mapping[Feature, tuple[int, int]]
"""Smallest and largest value allowed, by feature; a feature that is absent is not limited."""


@dataclass(frozen=True)
class BranchDecision:
    """One side of a split: a feature of one block is at most, or at least, a number."""

    block: int  # position of the block
    feature: Feature  # what is limited
    low: int  # smallest value allowed, or 0
    high: int  # largest value allowed, or `NEVER`

    @classmethod
    def at_most(cls, block: int, feature: Feature, number: int) -> BranchDecision:
        """Keep the schedules with a feature of at most `number`."""
        return cls(block, feature, 0, number)

    @classmethod
    def at_least(cls, block: int, feature: Feature, number: int) -> BranchDecision:
        """Keep the schedules with a feature of at least `number`."""
        return cls(block, feature, number, NEVER)

    @property
    def split(self) -> tuple[int, Feature, int]:
        """Block, feature and k of the split into "at most k" and "at least k + 1"."""
        return self.block, self.feature, self.high if self.is_upper else self.low - 1

    @property
    def is_upper(self) -> bool:
        """Whether this is the side "at most"."""
        return self.high < NEVER


def limits_of(decisions: Sequence[BranchDecision]) -> dict[int, dict[Feature, tuple[int, int]]]:
    """Intersect decisions: limits by feature, by block."""
    limits: dict[int, dict[Feature, tuple[int, int]]] = {}
    for decision in decisions:
        by_feature = limits.setdefault(decision.block, {})
        low, high = by_feature.get(decision.feature, (0, NEVER))
        by_feature[decision.feature] = (max(low, decision.low), min(high, decision.high))
    return limits


def runs(block: int) -> tuple[int, Feature, int]:
    """Return the split between running by any slot and never, as `BranchDecision.split`."""
    return block, COMPLETES, NEVER - 1


def window_of(limits: Limits, feature: Feature) -> tuple[int, int]:
    """Smallest and largest value allowed of a feature."""
    return limits.get(feature, (0, NEVER))


def to_file(
    decisions: Sequence[BranchDecision], features: Mapping[str, Axes], blocks: Sequence[str]
) -> list[JsonObject]:
    """Write decisions as JSON rows ``{"job", "admitted"}`` or ``{"job", "of", axis: label, ...}``.

    The latter end with ``at_most`` or ``at_least``.
    """
    written: list[JsonObject] = []
    for decision in decisions:
        if decision.split == runs(decision.block):
            written.append({"job": blocks[decision.block], "admitted": decision.is_upper})
            continue
        row: JsonObject = {"job": blocks[decision.block], "of": decision.feature.name}
        axes = features[decision.feature.name]
        for (axis, labels), position in zip(axes, decision.feature.index, strict=True):
            row[axis] = labels[position]
        if decision.is_upper:
            row["at_most"] = decision.high
        else:
            row["at_least"] = decision.low
        written.append(row)
    return written


def from_file(
    data: object, features: Mapping[str, Axes], blocks: Sequence[str], where: str
) -> tuple[BranchDecision, ...]:
    """Read `to_file`'s rows back; `InputError` names what is unknown or no whole number."""
    if not isinstance(data, list):
        raise InputError(where, data, "must be a list of decisions")
    return tuple(
        _read_decision(row, features, blocks, f"{where}[{number}]")
        for number, row in enumerate(data)
    )


def _read_decision(
    row: object, features: Mapping[str, Axes], blocks: Sequence[str], where: str
) -> BranchDecision:
    if not isinstance(row, dict):
        raise InputError(where, row, "must be an object")
    if row.get("job") not in blocks:
        raise InputError(f"{where}.job", row.get("job"), "must be a job of the instance")
    block = blocks.index(row["job"])
    if set(row) == {"job", "admitted"}:
        if not isinstance(row["admitted"], bool):
            raise InputError(f"{where}.admitted", row["admitted"], "must be true or false")
        if row["admitted"]:
            return BranchDecision.at_most(block, COMPLETES, NEVER - 1)
        return BranchDecision.at_least(block, COMPLETES, NEVER)
    name = row.get("of")
    if not isinstance(name, str) or name not in features:
        raise InputError(f"{where}.of", name, f"must be one of {', '.join(features)}")
    axes = features[name]
    side = "at_most" if "at_most" in row else "at_least"
    expected = {"job", "of", side} | {axis for axis, _ in axes}
    if set(row) != expected:
        raise InputError(where, row, f"must have exactly the keys {', '.join(sorted(expected))}")
    index = []
    for axis, labels in axes:
        known = [label for label in labels if type(label) is type(row[axis])]
        if row[axis] not in known:
            raise InputError(f"{where}.{axis}", row[axis], "must be a label of the instance")
        index.append(labels.index(row[axis]))
    number = row[side]
    least = 0 if side == "at_most" else 1
    if type(number) is not int or not least <= number < NEVER - 1:
        raise InputError(f"{where}.{side}", number, f"must be a whole number from {least}")
    make = BranchDecision.at_most if side == "at_most" else BranchDecision.at_least
    return make(block, Feature(name, tuple(index)), number)
