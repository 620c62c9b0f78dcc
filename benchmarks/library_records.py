"""What is best known of the benchmark library's instances, and the files that prove it.

The package holds one table of the best objective and bound of each instance; the files that prove
them, two an instance, stand in ``benchmarks/library``: a solution file and a certificate file as
`solve` writes them, long ones compressed. `check_records` lets the exact kernel recompute both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hindsched.analysis.verify import exact_check
from hindsched.errors import InputError
from hindsched.instances.base import check_family
from hindsched.instances.catalogue import Member, all_recipes, best_on_file
from hindsched.instances.io import read_json
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import relative_gap

CLAIMS = {"solution": "objective", "certificate": "bound"}
"""Which number each kind of record states."""


@dataclass(frozen=True)
class Standing:
    """What is best known of one instance.

    Parameters
    ----------
    recipe : Member
        The instance.
    objective, bound : float, optional
        Of the best solution and of the best certificate on file.

    Examples
    --------
    >>> from hindsched.instances.catalogue import find_member
    >>> Standing(find_member("oasis/library-small/h3-s2"), 99.0, 100.0).gap
    0.01
    """

    recipe: Member
    objective: float | None = None
    bound: float | None = None

    @property
    def gap(self) -> float | None:
        """``|bound - objective| / |bound|``, or None while one of the two is missing."""
        return relative_gap(self.objective, self.bound)

    @property
    def is_proven(self) -> bool:
        """Whether solution and certificate meet within the usual gap."""
        return self.gap is not None and self.gap <= DEFAULT_GAP


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
    >>> from hindsched.instances.catalogue import find_member
    >>> Records().standing(find_member("oasis/library-small/h3-s2")).is_proven
    True
    """

    folder: Path | None = None

    def path(self, recipe: Member, part: str) -> Path:
        """Where a record stands, or would stand if it is short."""
        if self.folder is None:
            raise InputError("folder", "(absent)", "must hold the library's records")
        plain = self.folder / recipe.family / recipe.suite / f"{recipe.member}.{part}.json"
        packed = plain.with_name(f"{plain.name}.gz")
        return packed if packed.exists() else plain

    def files(self, recipe: Member) -> list[Path]:
        """The records that there are of an instance."""
        if self.folder is None:
            return []
        return [path for part in CLAIMS if (path := self.path(recipe, part)).exists()]

    def standing(self, recipe: Member) -> Standing:
        """What is best known of an instance."""
        if self.folder is None:
            return Standing(recipe, *best_on_file()[recipe.name])
        return Standing(recipe, *(_stated(self.path(recipe, part), part) for part in CLAIMS))


def _stated(path: Path, part: str) -> float | None:
    """The number that a record states, None if there is no record."""
    if not path.exists():
        return None
    data = read_json(path)
    value = data.get(CLAIMS[part]) if isinstance(data, dict) else data
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{path} {CLAIMS[part]}", value, "must be a finite number")
    return float(value)


def choose(
    names: Sequence[str] = (), family: str | None = None, suite: str | None = None
) -> list[Member]:
    """Instances of the library by name, family and suite; all of them by default.

    Raises
    ------
    InputError
        For an unknown family, name or suite.
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
            raise InputError(
                "instance", name, "must be an instance of the library: `list instances`"
            )
    if not found:
        suites = dict.fromkeys(recipe.suite for recipe in all_recipes())
        raise InputError("suite", suite, f"must be one of {', '.join(suites)}")
    return found


def check_records(
    recipes: Sequence[Member], records: Records
) -> Iterator[tuple[Member, str, bool]]:
    """Make every instance anew and let the exact kernel check its records.

    Yields
    ------
    (Member, str, bool)
        The instance, the kernel's verdict (``no records`` where there are none), and whether it
        accepts them.
    """
    for recipe in recipes:
        files = records.files(recipe)
        found = exact_check(recipe.make(), *files) if files else None
        verdict = "no records" if found is None else found.verdict
        yield recipe, verdict, found is None or found.code == 0
