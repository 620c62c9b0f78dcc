"""Certificates: one price vector, or a tree of decisions with prices at every leaf.

A decision keeps the schedules of one job of which a whole number (`completion`, ...) is at most k,
or at least k + 1: together they leave nothing out. A job that stays out has completion `NEVER` and
0 of everything else. Every solution obeys the decisions of one leaf, so the worst leaf is a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from .exact import Interval, ceiling
from .reading import Progress, check_stated, require, within

NEVER = 2**31 - 1
ALL = (0, NEVER)
Feature = tuple[Any, ...]
"""Name of a whole number of a schedule, then its labels: ("workers", "server-1", slot 3)."""
Limits = Mapping[Feature, tuple[int, int]]
"""Least and most of each feature that is limited."""
LeafBound = Callable[[Any, Mapping[str, Limits]], Interval | None]
"""``bound(prices, limits by job)``: None where a job has no schedule left."""


def prove(
    data: Mapping[str, Any], bound: LeafBound, features: Mapping[str, Sequence[tuple[str, Any]]],
    jobs: Iterable[str], progress: Progress, step: Fraction | int = 0,
) -> Interval:  # fmt: skip
    """Bound of a certificate: of its prices, or the worst of its leaves, which must cover all.

    A leaf of a minimum whose objectives are whole multiples of `step` is rounded up to one.
    """
    if data["kind"] != "tree":
        found = bound(data["prices"], {})
        require(found is not None, "a job has no schedule at all: the problem is infeasible")
        assert found is not None
        return found
    known, leaves, bounds = set(jobs), _leaves(data), list[Interval]()
    within("leaves", len(leaves), "prices")
    decided = [
        [_decision(row, features, known, f"prices[{i}].decisions") for row in leaf["decisions"]]
        for i, leaf in enumerate(leaves)
    ]
    _check_cover(decided)
    for i, (leaf, decisions) in enumerate(zip(leaves, decided, strict=True)):
        progress(i, len(leaves), "leaf")
        require(set(leaf) == {"decisions", "bound", "prices"}, f"prices[{i}]: unknown keys")
        limits: dict[str, dict[Feature, tuple[int, int]]] = {}
        for job, feature, low, high in decisions:
            before = limits.setdefault(job, {}).get(feature, ALL)
            limits[job][feature] = max(low, before[0]), min(high, before[1])
        found = bound(leaf["prices"], limits)
        if found is not None:
            if step:
                ends = (Fraction(ceiling(end / step) * step) for end in (found.low, found.high))
                found = Interval(*ends)
            require(leaf["bound"] is not None, f"prices[{i}].bound: every job has a schedule")
            check_stated(leaf["bound"], found, data["sense"], f"prices[{i}].bound")
            bounds.append(found)
    require(bounds, "no leaf has a schedule for every job")
    pick = max if data["sense"] == "max" else min
    return Interval(pick(b.low for b in bounds), pick(b.high for b in bounds))


def _decision(
    row: Any, features: Mapping[str, Sequence[tuple[str, Any]]], jobs: set[str], where: str
) -> tuple[str, Feature, int, int]:
    """(job, feature, least, most) of one decision."""
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


def _check_cover(leaves: list[list[tuple[str, Feature, int, int]]]) -> None:
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


def layout(data: Mapping[str, Any], known: Sequence[str]) -> str:
    """Row layout of a certificate: an older file's is ``servers`` where a row names a server."""
    leaves = _leaves(data) if data["kind"] == "tree" else [{"prices": data["prices"]}]
    parts = ([*leaf["prices"].values(), leaf.get("decisions", [])] for leaf in leaves)
    by_server = any("server" in row for rows in chain.from_iterable(parts) for row in rows)
    found = data.get("layout", "servers" if by_server else known[0])
    require(found in known, f"layout: must be one of {', '.join(known)}")
    return str(found)


def _leaves(data: Mapping[str, Any]) -> list[Any]:
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
