"""Certificates: one price vector, or a tree of decisions with prices at every leaf.

A decision keeps the schedules of one job of which a whole number (`completion`, ...) is at most k,
or at least k + 1: together they leave nothing out. A job that stays out has completion `NEVER` and
0 of everything else. Every solution obeys the decisions of one leaf, so the worst leaf is a bound.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .exact import Data, Interval, ceiling, total
from .reading import check_limit, check_stated, require

NEVER = 2**31 - 1
ALL = (0, NEVER)
Feature = tuple[Any, ...]
"""Name of a whole number of a schedule, then its labels: ("workers", "server-1", slot 3)."""
Decision = tuple[str, Feature, int, int]  # job, feature, least, most
Limits = Mapping[Feature, tuple[int, int]]  # least and most of each feature that is limited
Features = Mapping[str, Sequence[tuple[str, Any]]]  # axes of the labels of each feature
Price = Callable[[Any], tuple[Interval, Callable[[int, Limits], Interval | None]]]
"""``price(prices)``: what rows are worth, and ``respond(position, limits)``: a job's best response
at these prices, in the jobs' order; None where it has no schedule within limits."""


def certificate_bound(
    data: Data, price: Price, features: Features, jobs: Sequence[str], step: Any = 0
) -> Interval:
    """Bound of a certificate: of its prices, or the worst of its leaves, which must cover all.

    A leaf of a minimum whose objectives are whole multiples of `step` is rounded up to one.
    """

    def bound(prices: Any, decided: Mapping[str, Limits]) -> Interval | None:
        """What rows are worth and the sum of best responses, if every job has one."""
        if any(low > high for limits in decided.values() for low, high in limits.values()):
            return None
        worth, respond = price(prices)
        parts = [worth]
        for position, job in enumerate(jobs):
            part = respond(position, decided.get(job, {}))
            if part is None:
                return None
            parts.append(part)
        return total(parts)

    tree, known, leaves, bounds = data["kind"] == "tree", set(jobs), _leaves(data), list[Interval]()
    check_limit("leaves", len(leaves), "prices")
    decided = [
        [_decision(row, features, known, f"prices[{i}].decisions") for row in leaf["decisions"]]
        for i, leaf in enumerate(leaves)
    ]
    if tree:
        _check_cover(decided)
    for i, (leaf, decisions) in enumerate(zip(leaves, decided, strict=True)):
        require(set(leaf) == {"decisions", "bound", "prices"}, f"prices[{i}]: unknown keys")
        limits: dict[str, dict[Feature, tuple[int, int]]] = {}
        for job, feature, low, high in decisions:
            before = limits.setdefault(job, {}).get(feature, ALL)
            limits[job][feature] = max(low, before[0]), min(high, before[1])
        proven = bound(leaf["prices"], limits)
        if proven is not None:
            if step and tree:
                ends = (Fraction(ceiling(end / step) * step) for end in (proven.low, proven.high))
                proven = Interval(*ends)
            require(leaf["bound"] is not None, f"prices[{i}].bound: every job has a schedule")
            if tree:  # else the file's caller does
                check_stated(leaf["bound"], proven, data["sense"], f"prices[{i}].bound")
            bounds.append(proven)
    require(bounds, "no leaf has a schedule for every job: the problem is infeasible")
    pick = max if data.get("sense") == "max" else min
    return Interval(pick(b.low for b in bounds), pick(b.high for b in bounds))


def _decision(row: Any, features: Features, jobs: set[str], where: str) -> Decision:
    """Read one decision."""
    require(row["job"] in jobs, f"{where}: unknown job")
    if set(row) == {"job", "admitted"} and isinstance(row["admitted"], bool):
        return row["job"], ("completion",), *((0, NEVER - 1) if row["admitted"] else (NEVER, NEVER))
    axes = features[row["of"]]
    side = "at_most" if "at_most" in row else "at_least"
    expected = {"job", "of", side} | {axis for axis, _ in axes}
    require(set(row) == expected, f"{where}: keys must be {sorted(expected)}")
    for axis, labels in axes:
        require(type(row[axis]) in (int, str) and row[axis] in labels, f"{where}: unknown {axis}")
    k, least = row[side], int(side == "at_least")
    require(type(k) is int and least <= k < NEVER, f"{where}: must be a whole number from {least}")
    feature = (row["of"], *(row[axis] for axis, _ in axes))
    return row["job"], feature, *((0, k) if side == "at_most" else (k, NEVER))


def _check_cover(leaves: list[list[Decision]]) -> None:
    """Every split has both sides, and no leaf lies inside another: linear in the decisions."""
    waiting = [(list(range(len(leaves))), 0)]
    while waiting:
        members, depth = waiting.pop()
        if len(members) == 1 and len(leaves[members[0]]) == depth:
            continue
        sides: tuple[list[int], list[int]] = [], []
        splits = set()
        for i in members:
            require(len(leaves[i]) > depth, f"prices[{i}]: holds other leaves")
            job, feature, low, high = leaves[i][depth]
            splits.add((job, feature, high if low == 0 else low - 1))
            sides[low == 0].append(i)
        here = f"prices[{members[0]}]: decision {depth + 1}" if members else "prices"
        require(len(splits) == 1, f"{here}: the leaves split differently")
        require(all(sides), f"{here}: its other side is absent")
        waiting += [(side, depth + 1) for side in sides]


def layout(data: Data, known: Sequence[str]) -> str:
    """Row layout of a certificate, by default the first."""
    word = data.get("layout", known[0])
    require(word in known, f"layout: must be one of {', '.join(known)}")
    return str(word)


def _leaves(data: Data) -> list[Any]:
    """Leaves of a tree; prices alone are one that nothing is decided in."""
    if data["kind"] != "tree":
        return [{"decisions": [], "bound": 0, "prices": data["prices"]}]
    require(isinstance(data["prices"], list), "prices: must be the list of leaves of a tree")
    return list(data["prices"])


def between(limits: Limits, feature: Feature, most: int) -> tuple[int, int]:
    """Least and most of a feature, which is at most `most` anyway: that may be above `NEVER`."""
    low, high = limits.get(feature, ALL)
    return low, most if high == NEVER else min(high, most)


def keeps_outside(limits: Limits) -> bool:
    """Whether a job may stay out: it never completes and has 0 of everything else."""
    return all(
        high == NEVER if feature == ("completion",) else low == 0
        for feature, (low, high) in limits.items()
    )
