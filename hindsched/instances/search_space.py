"""Instances that a search may roam: what a family's generator draws, and what is near it.

No family states anything here. How many jobs, servers and the like there are is drawn up to what
the generator's preset has, and every number stays between half the least and twice the most of some
draws. A change may be any: one that breaks a rule of the family is made again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import LARGEST_NUMBER, MOST_COUNT, Instance
from hindsched.instances.generators.registry import check_preset, generate, plain, presets
from hindsched.instances.io import parse_instance
from hindsched.json_types import Draft, Keywords

DRAWS = 30  # of the generator, to see what its numbers are
MOST_ITEMS = 4  # of a list that are drawn, so that exact methods are fast
TRIES = 1000  # of a draw or a change, until one breaks no rule
JOBS, HORIZON, SLOT = "jobs", "horizon", "slot_seconds"
TIMES = ("arrival", "departure", "submit", "deadline")  # fields of a job that move together


class NumberRange(NamedTuple):
    """Least and most of a number of a file."""

    low: float
    high: float
    is_whole: bool

    def nearest(self, value: float) -> float:
        """The nearest number of the span, whole where it has to be: from 0.5 that is from 1."""
        if self.is_whole:
            return min(max(round(value), math.ceil(self.low)), math.floor(self.high))
        return min(max(value, self.low), self.high)

    def plainer(self, value: float) -> list[float]:
        """Numbers of the span that are easier to read than one: an end, 0, 1, 10, one digit."""
        plain = (self.low, 0, 1, 10, float(f"{value:.1g}"), self.low + (value - self.low) / 2)
        return [new for new in dict.fromkeys(map(self.nearest, plain)) if new != value]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every number and word of a file: its path without positions, its list or object, its key."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        where = f"{path}.{key}".lstrip(".") if isinstance(value, dict) else path
        if isinstance(item, dict | list):
            yield from leaves(item, where)
        else:
            yield where, value, key


def lists(data: Draft) -> list[str]:
    """Names of a file's lists of records."""
    kept = (key for key, value in data.items() if isinstance(value, list) and value)
    return [key for key in kept if isinstance(data[key][0], dict)]


def _draft_of(instance: Instance) -> Draft:
    return {key: value for key, value in instance.to_dict().items() if key != "provenance"}


@dataclass(frozen=True)
class SearchSpace:
    """Instances near those of a preset of a family's generator."""

    family: str
    preset: str
    settings: Keywords  # the preset's
    counts: dict[str, tuple[int, int]]  # fewest and most items of a list, or of what is counted
    spans: dict[str, NumberRange]  # of the numbers of a file, by path

    def instance(self, data: Draft, name: str = "candidate") -> Instance:
        """The instance that data stand for; `InputError` if it breaks a rule of the family."""
        return parse_instance({**data, "name": name})

    def candidate(self, random: np.random.Generator, near: Draft | None = None) -> Draft:
        """Data that the family accepts: drawn, or others with one thing changed."""
        wrong: object = None
        for _ in range(TRIES):
            try:
                data = self._changed(deepcopy(near), random) if near else self._drawn(random)
                self.instance(data)
                return data
            except ValueError as error:
                wrong = error
        raise InputError("preset", self.preset, f"gives no instance within the ranges: {wrong}")

    def _drawn(self, random: np.random.Generator) -> Draft:
        ends = self.counts.items()  # more often few than many
        chosen = {name: int(min(random.integers(*span, 2, endpoint=True))) for name, span in ends}
        settings = {name: count for name, count in chosen.items() if name in self.settings}
        seed = int(random.integers(2**31))
        data = _draft_of(generate(self.family, self.preset, seed, **settings))
        data |= {name: data[name][: chosen[name]] for name in chosen if name not in settings}
        share = max(0.0, random.uniform(-2, 1))  # of the numbers that are drawn anew
        for path, holder, key in leaves(data):
            if path in self.spans:
                span, value = self.spans[path], holder[key]
                moves = random.random() < share
                holder[key] = span.nearest(_moved(value, span, random) if moves else value)
        return data

    def _changed(self, data: Draft, random: np.random.Generator) -> Draft:
        jobs, places, kind = data[JOBS], list(leaves(data)), random.random()
        job, other = (jobs[int(random.integers(len(jobs)))] for _ in range(2))
        if kind < 0.25:
            self._resize(data, JOBS if kind < 0.15 else str(random.choice(lists(data))), random)
        elif kind < 0.35:  # a field of another job, which gets this one's or not
            field = str(random.choice([key for key in job if key != "name" and key in other]))
            value, job[field] = job[field], other[field]
            other[field] = value if random.random() < 0.5 else other[field]
        elif kind < 0.45:
            step = int(random.choice((-1, 1)))
            job.update({key: job[key] + step for key in TIMES if key in job})
        elif kind < 0.5:  # what is not there is 0, or the family's default
            _, holder, key = places[int(random.integers(len(places)))]
            del holder[key]
        else:
            free = [(self.spans[path], *at) for path, *at in places if self.varies(path)]
            span, holder, key = free[int(random.integers(len(free)))]
            holder[key] = span.nearest(_moved(holder[key], span, random))
        return data

    def _resize(self, data: Draft, name: str, random: np.random.Generator) -> None:
        """Drop an item of a list, or copy one of it or of a fresh draw."""
        items, drops = data[name], random.random() < 0.5
        fewest, most = self.counts.get(name, (1, MOST_ITEMS))
        if len(items) == (fewest if drops else most):
            raise ValueError(f"{name}: must stay in {fewest}..{most}")
        if drops:
            del items[int(random.integers(len(items)))]
            return
        source = items if random.random() < 0.5 else self._drawn(random)[name]
        copied = deepcopy(source[int(random.integers(len(source)))])
        names = {item["name"] for item in items}
        free = next(n for n in range(1, len(items) + 2) if f"{name[0]}{n}" not in names)
        items.append({**copied, "name": f"{name[0]}{free}"})

    def varies(self, path: str) -> bool:
        """Whether a path is that of a number which may change."""
        return path in self.spans and self.spans[path].low < self.spans[path].high

    def has(self, name: str) -> bool:
        """Whether a range can be set by a name."""
        return name in self.counts or bool(self._paths(name))

    def _paths(self, name: str) -> list[str]:
        return [path for path in self.spans if f".{path}".endswith(f".{name}")]

    def names(self) -> list[str]:
        """Names of the ranges that can be set."""
        return list(dict.fromkeys([*self.counts, *self.spans]))

    def with_ranges(self, ranges: Mapping[str, object]) -> SearchSpace:
        """The space with other ranges by name: a number or ``[low, high]``.

        A name is a count's, or the last words of the path of numbers: all of them change.
        """
        counts, spans = dict(self.counts), dict(self.spans)
        for name, value in ranges.items():
            where, given, is_count = f"set.{name}", plain(value), name in counts
            if not self.has(name):
                raise InputError(where, given, f"must be one of {', '.join(self.names())}")
            ends = list(given) if isinstance(given, list | tuple) else [given, given]
            least, most = (1, MOST_COUNT) if is_count else (-LARGEST_NUMBER, LARGEST_NUMBER)
            sound = {*map(type, ends)} <= ({int} if is_count else {int, float}) and len(ends) == 2
            if not sound or not least <= ends[0] <= ends[1] <= most:
                kind = "a count of at least 1" if is_count else "a number"
                raise InputError(where, given, f"must be {kind} or [low, high]")
            low, high = ends
            if is_count:
                counts[name] = (low, high)
            for path in self._paths(name):
                spans[path] = NumberRange(low, high, spans[path].is_whole)
        return replace(self, counts=counts, spans=spans)


def _moved(value: float, span: NumberRange, random: np.random.Generator) -> float:
    """Another number: one of the span, evenly or by its logarithm, an end, or one that is near."""
    kind, step = random.random(), 1 if span.is_whole else 0.1 * (span.high - span.low)
    if kind < 0.3:
        return float(random.uniform(span.low, span.high))
    if kind < 0.5 and span.low > 0:
        return math.exp(random.uniform(math.log(span.low), math.log(span.high)))
    near = (span.low, span.high, value / 2, value * 2, value - step, value + step)
    return float(random.choice(near))


def find_space(family: str, preset: str = "small") -> SearchSpace:
    """The space near a preset of a family's generator."""
    check_preset(family, preset)
    known = presets(family)
    seen: dict[str, list[Any]] = {}
    for seed in range(DRAWS):
        file = _draft_of(generate(family, preset, seed))
        for path, holder, key in leaves(file):
            seen.setdefault(path, []).append(holder[key])
    spans = {
        path: NumberRange(
            min(values) * (0.5 if min(values) > 0 else 2),
            max(values) * (2 if max(values) > 0 else 0.5),
            {*map(type, values)} == {int},
        )
        for path, values in seen.items()
        if {*map(type, values)} <= {int, float} and path != SLOT
    }
    counts = {name: (1, min(MOST_ITEMS, len(file[name]))) for name in lists(file)}
    for name, value in known[preset].items():
        if name in file and type(value) is int and name not in (HORIZON, SLOT):
            counts[name] = (1, min(MOST_ITEMS, value))
            if name in spans:
                spans[name] = NumberRange(1, value, True)
    spans[HORIZON] = NumberRange(1, file[HORIZON], True)
    return SearchSpace(family, preset, known[preset], counts, spans)
