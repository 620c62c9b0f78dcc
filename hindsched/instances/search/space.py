"""A family's space of instances, found by the family's word, and its ranges as a user sets them.

A family's ``instances/<family>/search_space.py`` exports ``SPACES: dict[str, SearchSpace]``, the
default first. The space is over the family's files: whatever its fields are set to, the file is
parsed as any other, and one that breaks a rule is no member.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import MOST_COUNT, Instance, families_on, family_module
from hindsched.instances.io import parse_instance
from hindsched.instances.search.fields import Field
from hindsched.json_types import Draft

JOBS = "jobs"


def unchanged(data: Draft) -> Draft:
    """The mending of a space whose fields do not depend on each other."""
    return data


@dataclass(frozen=True)
class SearchSpace:
    """Instances of a family within stated ranges.

    Parameters
    ----------
    family : str
        The family's word.
    base : dict
        A valid file with at least one job: what no field sets is as it stands here.
    jobs : (int, int)
        Fewest and most jobs.
    job_fields, cluster_fields : tuple of Field
        What varies in a job, and outside the jobs.
    lists : dict
        Fewest and most items of lists outside the jobs, by key: servers, data centres.
    mend : callable
        Brings fields that depend on others into line with them, after every change.
    formulation : str, optional
        The family's problem that is meant; None for its default.
    exact : str
        Method of `solve` that finds the best schedule of an instance of this size.
    quick : str, optional
        Method of `solve` that bounds it in less time; None where there is none.
    note : str
        What the space is, in a line.
    """

    family: str
    base: Draft
    jobs: tuple[int, int]
    job_fields: tuple[Field, ...]
    cluster_fields: tuple[Field, ...] = ()
    lists: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    mend: Callable[[Draft], Draft] = unchanged
    formulation: str | None = None
    exact: str = "milp"
    quick: str | None = None
    note: str = ""

    def instance(self, data: Draft, name: str = "candidate") -> Instance:
        """The instance that data stand for; `InputError` if it breaks a rule of the family."""
        return parse_instance({**data, "name": name})

    def draw(self, random: np.random.Generator) -> Draft:
        """Data with every count and every field drawn."""
        data = copied(self.base)
        for key, (low, high) in self.lists.items():
            self.resize(data, key, int(random.integers(low, high + 1)))
        self.resize(data, JOBS, int(random.integers(self.jobs[0], self.jobs[1] + 1)))
        for item, holder in self.all_fields(data):
            for place in item.places(holder):
                item.write(place, item.draw(random))
        return self.normal(data)

    def all_fields(self, data: Draft) -> list[tuple[Field, Any]]:
        """Every field with what it is a field of: the file or one of its jobs."""
        in_jobs = [(item, job) for job in data[JOBS] for item in self.job_fields]
        return [*((item, data) for item in self.cluster_fields), *in_jobs]

    def resize(self, data: Draft, key: str, count: int) -> None:
        """Cut a list, or repeat its items, to a length."""
        items = data[key]
        data[key] = [copied(items[index % len(items)]) for index in range(count)]

    def normal(self, data: Draft) -> Draft:
        """Data with lists within their ranges, numbers on their grain, names by position."""
        for key, (low, high) in {**self.lists, JOBS: self.jobs}.items():
            self.resize(data, key, min(max(len(data[key]), low), high))
            for number, item in enumerate(data[key], 1):
                item["name"] = f"{key[0]}{number}"
        for item, holder in self.all_fields(data):
            for place in item.places(holder):
                item.write(place, item.read(place))
        return self.mend(data)

    def adopt(self, instance: Instance) -> Draft:
        """Data of somebody's instance: what the space varies is brought into its ranges."""
        if instance.family != self.family:
            raise InputError("start", instance.family, f"must be an instance of {self.family}")
        if not instance.jobs:
            raise InputError("start", instance.name, "must have jobs")
        data = instance.to_dict()
        for key in ("provenance", "name"):
            data.pop(key, None)
        return self.normal(copied(data))

    def names(self) -> list[str]:
        """Names of the ranges that can be set."""
        fields = [item.name for item in (*self.job_fields, *self.cluster_fields)]
        return list(dict.fromkeys([JOBS, *self.lists, *fields]))

    def with_ranges(self, ranges: Mapping[str, object]) -> SearchSpace:
        """The space with other ranges.

        Parameters
        ----------
        ranges : mapping
            By name (see `names`): a number, or ``[low, high]``; for a choice the list of choices.

        Raises
        ------
        InputError
            For an unknown name or a range that is none.
        """
        space = self
        for name, given in ranges.items():
            space = space._with_range(name, _json_of(given))
        return space

    def _with_range(self, name: str, given: object) -> SearchSpace:
        if name == JOBS:
            return replace(self, jobs=_counts(name, given))
        if name in self.lists:
            return replace(self, lists={**self.lists, name: _counts(name, given)})
        if name not in self.names():
            raise InputError(f"set.{name}", given, f"must be one of {', '.join(self.names())}")

        def changed(items: tuple[Field, ...]) -> tuple[Field, ...]:
            return tuple(_ranged(item, given) if item.name == name else item for item in items)

        return replace(
            self, job_fields=changed(self.job_fields), cluster_fields=changed(self.cluster_fields)
        )


def copied(data: object) -> Any:
    """A copy of JSON data that shares nothing with it."""
    if isinstance(data, dict):
        return {key: copied(value) for key, value in data.items()}
    return [copied(value) for value in data] if isinstance(data, list | tuple) else data


def find_space(family: str, preset: str | None = None) -> SearchSpace:
    """A family's space by name; its first one for None."""
    spaces = search_spaces(family)
    name = next(iter(spaces)) if preset is None else preset
    if name not in spaces:
        raise InputError("preset", preset, f"{family} has the search spaces {', '.join(spaces)}")
    return spaces[name]


def search_spaces(family: str) -> dict[str, SearchSpace]:
    """A family's spaces by name; `InputError` for a family that has none."""
    known = families_on("instances", "search_space")
    if family not in known:
        raise InputError("family", family, f"must be one of {', '.join(known)}")
    found: dict[str, SearchSpace] = family_module("instances", family, "search_space").SPACES
    return found


def _json_of(given: object) -> Any:
    if not isinstance(given, str):
        return list(given) if isinstance(given, tuple) else given
    try:
        return json.loads(given)
    except ValueError:
        return given


def _ends(name: str, given: Any) -> list[Any]:
    ends = given if isinstance(given, list) else [given, given]
    numbers = all(type(end) in (int, float) and abs(end) < float("inf") for end in ends)
    if len(ends) != 2 or not numbers or ends[0] > ends[1]:
        raise InputError(f"set.{name}", given, "must be a number or [low, high]")
    return ends


def _counts(name: str, given: object) -> tuple[int, int]:
    low, high = _ends(name, given)
    if type(low) is not int or type(high) is not int or not 1 <= low <= high <= MOST_COUNT:
        raise InputError(f"set.{name}", given, "must be a count of at least 1 or [low, high]")
    return low, high


def _ranged(item: Field, given: object) -> Field:
    where = f"set.{item.name}"
    if item.choices:
        chosen = given if isinstance(given, list) else [given]
        if not chosen or not all(one in item.choices for one in chosen):
            allowed = ", ".join(map(str, item.choices))
            raise InputError(where, given, f"must be some of {allowed}")
        return replace(item, choices=tuple(chosen))
    low, high = _ends(item.name, given)
    if item.log and low <= 0:
        raise InputError(where, given, "must be above 0")
    if item.grain == 1 and (low % 1 or high % 1):
        raise InputError(where, given, "must be integers")
    return replace(item, low=low, high=high)
