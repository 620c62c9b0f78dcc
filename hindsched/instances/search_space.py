"""Spaces of instances that a search may roam: which fields of a file vary, within which ranges.

A family's ``search_space.py`` exports ``SPACES: dict[str, SearchSpace]``, the default first.
Whatever its fields are set to, a file is parsed as any other: one that breaks a rule is no member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import MOST_COUNT, Instance, families_on, family_module
from hindsched.instances.decimals import exactly
from hindsched.instances.generators.registry import plain
from hindsched.instances.io import parse_instance
from hindsched.json_types import Draft

JOBS = "jobs"
Place = tuple[Any, Any]  # a list or an object, and the position or key in it


@dataclass(frozen=True)
class Field:
    """A number, or a choice, that varies.

    Its path has keys from the job (or, for the cluster, from the file) on, with dots between them;
    ``[]`` stands for every item of a list and ``*`` for every key of an object.
    """

    path: str
    low: float = 0
    high: float = 0
    grain: int = 1  # denominator of its numbers; 1 for integers
    log: bool = False  # drawn by its logarithm; `low` is above 0 then
    choices: tuple[Any, ...] = ()  # instead of a range
    repeats: bool = False  # the field is a list of equal items, and the number is how many

    @property
    def name(self) -> str:
        """Its last key, by which people name it."""
        return [word for word in self.path.replace("[]", "").split(".") if word != "*"][-1]

    def places(self, data: Any) -> Iterator[Place]:
        """Every place of the field in a job's record or a file's data; none where it is absent."""
        *outer, last = self.path.replace("[]", ".[]").split(".")
        holders = [data]
        for word in outer:
            holders = [holder[key] for holder in holders for key in _keys(holder, word)]
        return ((holder, key) for holder in holders for key in _keys(holder, last))

    def read(self, place: Place) -> Any:
        """The number, or the choice, at a place."""
        holder, key = place
        return len(holder[key]) if self.repeats else holder[key]

    def write(self, place: Place, value: Any) -> None:
        """Set the number at a place, on its grain and within its range; or the choice."""
        holder, key = place
        if self.choices:
            holder[key] = value if value in self.choices else self.choices[0]
        elif self.repeats:
            holder[key] = [holder[key][0]] * int(self.rounded(value)) if holder[key] else []
        else:
            holder[key] = self.rounded(value)

    def rounded(self, value: float) -> int | float:
        """The nearest number of the range that is a multiple of ``1 / grain``."""
        low, high = (exactly(end) * self.grain for end in (self.low, self.high))
        count = min(max(round(float(value) * self.grain), math.ceil(low)), math.floor(high))
        return count // self.grain if count % self.grain == 0 else count / self.grain

    def draw(self, random: np.random.Generator) -> Any:
        """Draw from the range: half of the time with a small denominator."""
        if self.choices:
            return self.choices[int(random.integers(len(self.choices)))]
        if self.log:
            value = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = random.uniform(self.low, self.high)
        if self.grain > 1 and random.random() < 0.5:
            value = round(value)
        return self.rounded(value)

    def within(self, given: Any) -> Field:
        """The field with another range, or fewer choices."""
        where = f"set.{self.name}"
        if self.choices:
            chosen = given if isinstance(given, list) else [given]
            if not chosen or not all(one in self.choices for one in chosen):
                allowed = ", ".join(map(str, self.choices))
                raise InputError(where, given, f"must be some of {allowed}")
            return replace(self, choices=tuple(chosen))
        low, high = ends = _ends(where, given)
        if self.log and low <= 0:
            raise InputError(where, given, "must be above 0")
        if self.grain == 1 and any(end % 1 for end in ends):
            raise InputError(where, given, "must be integers")
        return replace(self, low=low, high=high)


def _keys(holder: object, word: str) -> list[Any]:
    if isinstance(holder, list):
        return list(range(len(holder))) if word == "[]" else []
    if isinstance(holder, dict):
        return list(holder) if word == "*" else [word] if word in holder else []
    return []


@dataclass(frozen=True)
class SearchSpace:
    """Instances of a family within stated ranges."""

    base: Draft  # a valid file with a job: what no field sets stays as it is here
    lists: dict[str, tuple[int, int]]  # fewest and most items of lists, the last of them jobs
    job_fields: tuple[Field, ...]
    cluster_fields: tuple[Field, ...] = ()
    repair: Callable[[Draft], Draft] = dict  # brings dependent fields into line after a change
    formulation: str | None = None  # the family's problem; None: its default
    exact: str = "auto"  # method of `solve` that finds the best schedule
    note: str = ""

    @property
    def family(self) -> str:
        """The family's name."""
        return str(self.base["family"])

    def instance(self, data: Draft, name: str = "candidate") -> Instance:
        """The instance that data stand for; `InputError` if it breaks a rule of the family."""
        return parse_instance({**data, "name": name})

    def draw(self, random: np.random.Generator) -> Draft:
        """Data with every count and every field drawn."""
        data = deepcopy(self.base)
        for key, (low, high) in self.lists.items():
            self.resize(data, key, int(random.integers(low, high + 1)))
        for item, place in self.places(data):
            item.write(place, item.draw(random))
        return self.normal(data)

    def places(self, data: Draft) -> Iterator[tuple[Field, Place]]:
        """Every number of a file that may be changed: its field, and where it stands."""
        in_jobs = ((item, job) for job in data[JOBS] for item in self.job_fields)
        fields = chain(((item, data) for item in self.cluster_fields), in_jobs)
        return ((item, place) for item, holder in fields for place in item.places(holder))

    def resize(self, data: Draft, key: str, count: int) -> None:
        """Cut a list, or repeat its items, to a length."""
        items = data[key]
        data[key] = [deepcopy(items[index % len(items)]) for index in range(count)]

    def normal(self, data: Draft) -> Draft:
        """Data with lists within their ranges, numbers on their grain, names by position."""
        for key, (low, high) in self.lists.items():
            self.resize(data, key, min(max(len(data[key]), low), high))
            for number, item in enumerate(data[key], 1):
                item["name"] = f"{key[0]}{number}"
        for item, place in self.places(data):
            item.write(place, item.read(place))
        for job in data[JOBS]:
            if "arrival" in job:
                job["arrival"] = min(job["arrival"], data["horizon"])
        return self.repair(data)

    def names(self) -> list[str]:
        """Names of the ranges that can be set."""
        fields = [item.name for item in (*self.job_fields, *self.cluster_fields)]
        return list(dict.fromkeys([*reversed(self.lists), *fields]))

    def with_ranges(self, ranges: Mapping[str, object]) -> SearchSpace:
        """The space with other ranges by name: a number, ``[low, high]``, or a list of choices."""
        space, known = self, self.names()
        for name, value in ranges.items():
            given = plain(value)
            if name not in known:
                raise InputError(f"set.{name}", given, f"must be one of {', '.join(known)}")
            if name in space.lists:
                space = replace(space, lists={**space.lists, name: _counts(name, given)})
            else:
                in_jobs, outside = (
                    tuple(item.within(given) if item.name == name else item for item in items)
                    for items in (space.job_fields, space.cluster_fields)
                )
                space = replace(space, job_fields=in_jobs, cluster_fields=outside)
        return space


def find_space(family: str, preset: str | None = None) -> SearchSpace:
    """A family's space by name; its first one for None."""
    known = families_on("instances", "search_space")
    if family not in known:
        raise InputError("family", family, f"must be one of {', '.join(known)}")
    spaces: dict[str, SearchSpace] = family_module("instances", family, "search_space").SPACES
    name = next(iter(spaces)) if preset is None else preset
    if name not in spaces:
        raise InputError("preset", preset, f"{family} has the search spaces {', '.join(spaces)}")
    return spaces[name]


def _ends(where: str, given: Any) -> list[Any]:
    ends = list(given) if isinstance(given, list | tuple) else [given, given]
    numbers = all(type(end) in (int, float) and abs(end) < float("inf") for end in ends)
    if len(ends) != 2 or not numbers or ends[0] > ends[1]:
        raise InputError(where, given, "must be a number or [low, high]")
    return ends


def _counts(name: str, given: object) -> tuple[int, int]:
    low, high = _ends(f"set.{name}", given)
    if type(low) is not int or type(high) is not int or not 1 <= low <= high <= MOST_COUNT:
        raise InputError(f"set.{name}", given, "must be a count of at least 1 or [low, high]")
    return low, high
