"""Shrinking: fewer jobs, fewer servers, rounder and fewer different numbers, at hardly less ratio.

As property-testing libraries do: one simpler variant after the other is tried, and taken if the
ratio stays at a share of what was found, until no variant is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from hindsched.analysis.worst.evaluate import EXACT, Evaluation
from hindsched.analysis.worst.search import digest
from hindsched.instances.search.fields import Field
from hindsched.instances.search.space import JOBS, SearchSpace, copied
from hindsched.json_types import Draft

Complexity = tuple[int, int, int, float]


def shrink(
    space: SearchSpace,
    data: Draft,
    evaluate: Callable[[Draft], Evaluation | None],
    least: float,
) -> tuple[Draft, int]:
    """Make a candidate simpler while its ratio stays at `least` or above.

    Parameters
    ----------
    space : SearchSpace
        The space; the result lies in it too.
    data : Draft
        The candidate.
    evaluate : callable
        What a candidate is worth; None when the time is over, which ends the shrinking.
    least : float
        The ratio to keep.

    Returns
    -------
    (Draft, int)
        The simplest candidate found, and how many were evaluated.
    """
    tried = {digest(data)}
    better = True
    while better:
        better = False
        for variant in _variants(space, data):
            made = space.normal(variant)
            if complexity(space, made) >= complexity(space, data) or digest(made) in tried:
                continue
            tried.add(digest(made))
            found = evaluate(made)
            if found is None:
                return data, len(tried) - 1
            if found.stage == EXACT and found.score >= least:
                data, better = made, True
                break
    return data, len(tried) - 1


def complexity(space: SearchSpace, data: Draft) -> Complexity:
    """How hard a candidate is to read: items, different numbers, their digits, their size."""
    items = len(data[JOBS]) + sum(len(data[key]) for key in space.lists)
    digits, size = 0, 0.0
    seen: dict[str, set[Any]] = {}
    for item, holder in space.all_fields(data):
        for place in item.places(holder):
            value = item.read(place)
            seen.setdefault(item.path, set()).add(value)
            if item.choices:
                size += item.choices.index(value)
            else:
                digits += _digits(value)
                size += math.log1p(abs(value - item.low))
    different = sum(map(len, seen.values()))
    return items, different, digits, size


def _digits(value: float) -> int:
    return len(f"{value:.12g}".replace(".", "").strip("-0"))


def _variants(space: SearchSpace, data: Draft) -> Iterator[Draft]:
    """Simpler variants, the boldest first."""
    yield from _without_items(space, data)
    yield from _together(space, data)
    yield from _one_by_one(space, data)


def _without_items(space: SearchSpace, data: Draft) -> Iterator[Draft]:
    """Without half of the jobs, a quarter, ..., one; without a server."""
    for key in (JOBS, *space.lists):
        count = len(data[key])
        width = count // 2
        while width >= 1:
            for first in range(0, count, width):
                made = copied(data)
                del made[key][first : first + width]
                if made[key]:
                    yield made
            width //= 2


def _together(space: SearchSpace, data: Draft) -> Iterator[Draft]:
    """A field at its simplest in all jobs; all times and sizes divided by the same number."""
    for item in (*space.job_fields, *space.cluster_fields):
        holders = data[JOBS] if item in space.job_fields else [data]
        values = [item.read(place) for holder in holders for place in item.places(holder)]
        for value in dict.fromkeys([*_simple(item), *values]):
            made = copied(data)
            for holder in made[JOBS] if item in space.job_fields else [made]:
                for place in item.places(holder):
                    item.write(place, value)
            yield made
    scaled = [
        item for item in space.job_fields if item.role in ("time", "size") and not item.choices
    ]
    for divisor in (10, 5, 3, 2):
        made = copied(data)
        for job in made[JOBS]:
            for item in scaled:
                for place in item.places(job):
                    item.write(place, item.read(place) / divisor)
        yield made


def _one_by_one(space: SearchSpace, data: Draft) -> Iterator[Draft]:
    """One number at its simplest, rounder, like another job's, or halfway to its low end."""
    for number, (item, holder) in enumerate(space.all_fields(data)):
        others = [
            other.read(place)
            for other, held in space.all_fields(data)
            if other.path == item.path
            for place in other.places(held)
        ]
        for index, place in enumerate(item.places(holder)):
            value = item.read(place)
            for simple in dict.fromkeys([*_simple(item), *_rounder(item, value), *others]):
                if simple != value:
                    made = copied(data)
                    target, within = space.all_fields(made)[number]
                    target.write(list(target.places(within))[index], simple)
                    yield made


def _simple(item: Field) -> list[Any]:
    if item.choices:
        return list(item.choices)
    return [item.low, *(value for value in (0, 1, 10, 100) if item.low <= value <= item.high)]


def _rounder(item: Field, value: Any) -> list[float]:
    """Fewer digits, whole, halfway to the low end."""
    if item.choices:
        return []
    fewer = [float(f"{value:.{count}g}") for count in (1, 2)]
    return [*fewer, round(value), item.low + (value - item.low) / 2, value - 1]
