"""Where the library's records stand, and what they say.

A record is a solution file or a certificate file of one instance, as `solve` writes them. There is
nothing beside these files that could disagree with them: objective and bound of the board are read
from them, and `check_records` lets the exact kernel recompute both. Long files are compressed
(gzip, which the kernel reads).
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from hindsched.errors import InputError
from hindsched.instances.base import check_family
from hindsched.instances.io import instance_class, read_json, write_bytes
from hindsched.instances.recipes import Recipe, all_recipes
from hindsched.solutions.base import SOLUTION_FORMAT
from hindsched.solvers.certificates.certificate import CERTIFICATE_FORMAT
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import relative_gap

Part = Literal["solution", "certificate"]
FORMATS: dict[str, Part] = {SOLUTION_FORMAT: "solution", CERTIFICATE_FORMAT: "certificate"}
CLAIMS: dict[Part, str] = {"solution": "objective", "certificate": "bound"}
MOST_PLAIN = 50_000
"""Bytes up to which a record is kept as it is; longer ones are compressed."""
PACKED = ".gz"
PACKAGED = Path(__file__).parent / "records"
"""Records that come with the package."""


class StandingRow(TypedDict):
    """A row of the board."""

    name: str
    jobs: int
    horizon: int
    objective: float | None
    bound: float | None
    gap: float | None
    proven: bool


class CheckedRow(TypedDict):
    """What the kernel says of an instance's records; of refused ones the board says nothing."""

    name: str
    verdict: str
    accepted: bool
    seconds: float
    jobs: NotRequired[int]
    horizon: NotRequired[int]
    objective: NotRequired[float | None]
    bound: NotRequired[float | None]
    gap: NotRequired[float | None]
    proven: NotRequired[bool]


@dataclass(frozen=True)
class Standing:
    """What is best known of one instance.

    Parameters
    ----------
    recipe : Recipe
        The instance.
    objective : float, optional
        Of the best solution on file.
    bound : float, optional
        Of the best certificate on file.

    Examples
    --------
    >>> from hindsched.instances.recipes import find_recipe
    >>> Standing(find_recipe("oasis/library-small/h3-s2"), 99.0, 100.0).gap
    0.01
    """

    recipe: Recipe
    objective: float | None = None
    bound: float | None = None

    @property
    def gap(self) -> float | None:
        """``|bound - objective| / |bound|``, or None while one of the two is missing."""
        if self.objective is None or self.bound is None:
            return None
        return relative_gap(self.objective, self.bound)

    @property
    def is_proven(self) -> bool:
        """Whether solution and certificate meet within the usual gap."""
        return self.gap is not None and self.gap <= DEFAULT_GAP

    def to_dict(self) -> StandingRow:
        """A row of the board."""
        return {
            "name": self.recipe.name,
            "jobs": self.recipe.jobs,
            "horizon": self.recipe.horizon,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "proven": self.is_proven,
        }


@dataclass(frozen=True)
class Records:
    """The files of a folder: two an instance, at most.

    Parameters
    ----------
    folder : Path
        ``<family>/<suite>/<member>.solution.json`` and ``.certificate.json`` below it, or the same
        with ``.gz``.

    Examples
    --------
    >>> from hindsched.instances.recipes import find_recipe
    >>> Records(PACKAGED).standing(find_recipe("oasis/library-small/h3-s2")).is_proven
    True
    """

    folder: Path = PACKAGED

    def path(self, recipe: Recipe, part: Part) -> Path:
        """Where a record stands, or would stand if it is short."""
        plain = self.folder / recipe.family / recipe.suite / f"{recipe.member}.{part}.json"
        packed = plain.with_name(plain.name + PACKED)
        return packed if packed.exists() else plain

    def files(self, recipe: Recipe) -> list[Path]:
        """The records that there are of an instance."""
        paths = (self.path(recipe, part) for part in CLAIMS)
        return [path for path in paths if path.exists()]

    def keep(self, recipe: Recipe, part: Part, content: bytes) -> None:
        """Put a record's JSON in the place of what stood there."""
        old = self.path(recipe, part)
        plain = old.with_name(old.name.removesuffix(PACKED))
        packed = plain.with_name(plain.name + PACKED)
        new = plain if len(content) <= MOST_PLAIN else packed
        write_bytes(content if new == plain else gzip.compress(content, mtime=0), new)
        if old != new:
            old.unlink(missing_ok=True)

    def claim(self, recipe: Recipe, part: Part) -> float | None:
        """Objective or bound that a record states, or None if there is none."""
        path = self.path(recipe, part)
        return stated(read_json(path), part, str(path)) if path.exists() else None

    def standing(self, recipe: Recipe) -> Standing:
        """What is best known of an instance."""
        return Standing(recipe, self.claim(recipe, "solution"), self.claim(recipe, "certificate"))


def stated(data: object, part: Part, where: str) -> float:
    """The objective of a solution's data, the bound of a certificate's.

    Raises
    ------
    InputError
        If it is not a finite number.
    """
    value = data.get(CLAIMS[part]) if isinstance(data, dict) else data
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where} {CLAIMS[part]}", value, "must be a finite number")
    return float(value)


def is_better(recipe: Recipe, part: Part, new: float, old: float | None) -> bool:
    """Whether a claim is strictly better than the one on file."""
    if old is None:
        return True
    larger = (instance_class(recipe.family).sense == "max") == (part == "solution")
    return new > old if larger else new < old


def choose(
    names: Sequence[str] = (), family: str | None = None, suite: str | None = None
) -> list[Recipe]:
    """Instances of the library by name, family and suite; all of them by default.

    Raises
    ------
    InputError
        For an unknown family, or where nothing is left.
    """
    if family is not None:
        check_family(family)
    found = [
        recipe
        for recipe in all_recipes()
        if (not names or recipe.name in names or recipe.instance_name in names)
        and family in (None, recipe.family)
        and suite in (None, recipe.suite, recipe.suite.removeprefix("library-"))
    ]
    known = {key for recipe in found for key in (recipe.name, recipe.instance_name)}
    for name in names:
        if name not in known:
            raise InputError("instance", name, "must be an instance of the library: `library list`")
    if not found:
        rule = f"must be one of {', '.join(dict.fromkeys(r.suite for r in all_recipes()))}"
        raise InputError("suite", suite, rule)
    return found
