"""What is best known of the library's instances, and the files that prove it.

The package holds one table of the best objective and bound of each instance; the files that prove
them, two an instance, stand in ``benchmarks/library`` of the repository: a solution file and a
certificate file as `solve` writes them, long ones compressed. `check_records` lets the exact kernel
recompute both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from hindsched.errors import InputError
from hindsched.instances.base import check_family
from hindsched.instances.catalogue import Recipe, all_recipes
from hindsched.instances.io import read_json
from hindsched.solutions.base import SOLUTION_FORMAT
from hindsched.solvers.certificates.certificate import CERTIFICATE_FORMAT
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import relative_gap

Part = Literal["solution", "certificate"]
FORMATS: dict[str, Part] = {SOLUTION_FORMAT: "solution", CERTIFICATE_FORMAT: "certificate"}
CLAIMS: dict[Part, str] = {"solution": "objective", "certificate": "bound"}
PACKED = ".gz"
BEST_KNOWN = "best_known.json"
"""The package's own table: best objective and bound by instance."""


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
    >>> from hindsched.instances.catalogue import find_recipe
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
    folder : Path, optional
        None for the package's table of values, without files; else a folder with
        ``<family>/<suite>/<member>.solution.json`` and ``.certificate.json``, or the same
        with ``.gz``.

    Examples
    --------
    >>> from hindsched.instances.catalogue import find_recipe
    >>> Records().standing(find_recipe("oasis/library-small/h3-s2")).is_proven
    True
    """

    folder: Path | None = None

    def path(self, recipe: Recipe, part: Part) -> Path:
        """Where a record stands, or would stand if it is short."""
        if self.folder is None:
            raise InputError("folder", "(absent)", "must hold the library's records")
        plain = self.folder / recipe.family / recipe.suite / f"{recipe.member}.{part}.json"
        packed = plain.with_name(plain.name + PACKED)
        return packed if packed.exists() else plain

    def files(self, recipe: Recipe) -> list[Path]:
        """The records that there are of an instance."""
        if self.folder is None:
            return []
        paths = (self.path(recipe, part) for part in CLAIMS)
        return [path for path in paths if path.exists()]

    def claim(self, recipe: Recipe, part: Part) -> float | None:
        """Objective or bound that a record states, or None if there is none."""
        if self.folder is None:
            value = best_known()[recipe.name][list(CLAIMS).index(part)]
            return None if value is None else float(value)
        path = self.path(recipe, part)
        return stated(read_json(path), part, str(path)) if path.exists() else None

    def standing(self, recipe: Recipe) -> Standing:
        """What is best known of an instance."""
        return Standing(recipe, self.claim(recipe, "solution"), self.claim(recipe, "certificate"))


@cache
def best_known() -> dict[str, list[float | None]]:
    """Best objective and bound of every instance, as the package states them."""
    found: dict[str, list[float | None]] = read_json(str(files("hindsched.instances") / BEST_KNOWN))
    return found


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
