"""Named instances: suites of the generators, the benchmark library, worst cases, known optima.

An instance bears a name of its own, ``oasis-small-t8-j8-h3-d4-s0``, which files and hashes keep.
Here it is called by family, suite and the rest: ``oasis/small/t8-j8-h3-d4-s0``.

`members.json` lists those of the generators' suites and of the two that are kept as files:
``worst`` (what ``hindsched worst`` found) and ``known`` (optima that another program found). The
library's are recipes in `recipes.json`, from which the same bytes come everywhere; the hash says
that they did. ``benchmarks/library_recipes.py`` writes both lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import (
    FAMILIES,
    Instance,
    check_family,
    families_on,
    family_module,
)
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import parse_instance, read_json
from hindsched.json_types import JsonObject, Keywords

RECIPES_FORMAT = "hindsched-recipes/1"
MEMBERS_FORMAT = "hindsched-members/1"
WORST, KNOWN_SUITE = "worst", "known"
Suite = Callable[[], list[Instance]]
PACKAGE = Path(str(files("hindsched.instances")))


class BestKnown(NamedTuple):
    """Interval of an instance's optimum (equal ends: proven) in a formulation, or the default."""

    family: str
    lower: float
    upper: float
    formulation: str | None = None


KNOWN: dict[str, tuple[BestKnown, ...]] = {
    name: tuple(BestKnown(*facts) for facts in listed)
    for name, listed in read_json(PACKAGE / "known_optima.json").items()
}
"""Optima found by an independent program (proven to 1e-4 relative where both ends meet)."""


@dataclass(frozen=True)
class Member:
    """An instance of a suite."""

    family: str
    suite: str
    instance_name: str  # the instance's own, as files and results show it
    jobs: int
    horizon: int
    sha256: str  # of the canonical JSON

    @property
    def member(self) -> str:
        """Its own name without the family and suite that stand before it."""
        return self.instance_name.removeprefix(f"{self.family}-").removeprefix(f"{self.suite}-")

    @property
    def name(self) -> str:
        """The library's name of the instance: family, suite, member."""
        return f"{self.family}/{self.suite}/{self.member}"

    def make(self) -> Instance:
        """Make, or read, the instance."""
        made = suite(self.family, self.suite)
        return next(instance for instance in made if instance.name == self.instance_name)


@dataclass(frozen=True)
class Recipe(Member):
    """An instance of the benchmark library: what its generator is given."""

    preset: str
    seed: int
    settings: Keywords

    def make(self) -> Instance:
        """Make the instance; `SolveFailed` if a changed generator makes another one."""
        made = generate(self.family, self.preset, self.seed, **self.settings)
        instance = made.with_fields(name=self.instance_name)
        if instance.sha256() != self.sha256:
            raise SolveFailed(f"{self.name}: this version's generator makes another instance")
        return instance


def generated_suites(family: str) -> dict[str, Suite]:
    """Suites that need no recipe: those that the generator names, and those kept as files."""
    found: dict[str, Suite] = dict(family_module("instances", family, "generator").SUITES)
    for name, paths in (
        (WORST, sorted((PACKAGE / family / WORST).glob("*.json"))),
        (KNOWN_SUITE, [_known_file(name) for name in KNOWN if KNOWN[name][0].family == family]),
    ):
        if paths:
            found[name] = partial(_read_all, paths)
    return found


def _read_all(paths: list[Path]) -> list[Instance]:
    return [parse_instance(read_json(path), str(path)) for path in paths]


def _known_file(name: str) -> Path:
    return PACKAGE / KNOWN_SUITE / f"{name}.json"


def suites(family: str) -> dict[str, Suite]:
    """Suites of a family, those of the benchmark library last."""
    found = generated_suites(family)
    own = [recipe for recipe in all_recipes() if recipe.family == family]
    for name in dict.fromkeys(recipe.suite for recipe in own):
        found[name] = partial(_make_all, [recipe for recipe in own if recipe.suite == name])
    return found


def _make_all(recipes: list[Recipe]) -> list[Instance]:
    return [recipe.make() for recipe in recipes]


def suite(family: str, name: str) -> list[Instance]:
    """Make the instances of a family's suite; `InputError` for one it does not have.

    Examples
    --------
    >>> import hindsched as hs
    >>> len(hs.suite("oasis", "small"))
    8
    """
    known = suites(family)
    if name not in known:
        raise InputError("suite", name, f"{family} has the suites {', '.join(known)}")
    return known[name]()


def library_version() -> int:
    """Version of the set of recipes; a result on the library names it."""
    return int(_listed("recipes", RECIPES_FORMAT)["version"])


@cache
def all_recipes() -> tuple[Recipe, ...]:
    """Every instance of the benchmark library, by family and size."""
    return tuple(
        Recipe(instance_name=f"{row['family']}-{row['suite']}-{row.pop('member')}", **row)
        for row in map(dict, _listed("recipes", RECIPES_FORMAT)["recipes"])
    )


def find_recipe(name: str) -> Recipe:
    """The recipe of a name, either the library's or the instance's own; or `InputError`."""
    for recipe in all_recipes():
        if name in (recipe.name, recipe.instance_name):
            return recipe
    raise InputError("instance", name, "must be an instance of the library: `library list`")


@cache
def members(family: str) -> tuple[Member, ...]:
    """The members of a family's suites without recipes, in the suites' order."""
    listed = _listed("members", MEMBERS_FORMAT)["members"]
    if family in listed:
        return tuple(Member(family, *row) for row in listed[family])
    return tuple(make_members(family))


def make_members(family: str) -> list[Member]:
    """The members of a family's suites, from the instances themselves."""
    return [
        Member(family, suite, item.name, len(item.jobs), item.horizon, item.sha256())
        for suite, make_all in generated_suites(family).items()
        for item in make_all()
    ]


def _entries(family: str) -> list[Member]:
    """Every named instance of a family."""
    own = members(family) if family in families_on("instances", "generator") else ()
    return [*own, *(recipe for recipe in all_recipes() if recipe.family == family)]


@cache
def _listed(name: str, format_: str) -> Any:
    data = read_json(str(PACKAGE / f"{name}.json"))
    assert data["format"] == format_
    return data


@cache
def best_on_file() -> dict[str, list[float | None]]:
    """Best objective and bound known of every instance of the library, by the library's name."""
    found: dict[str, list[float | None]] = read_json(PACKAGE / "best_known.json")
    return found


def known_instance(name: str) -> Instance:
    """Read an instance of `KNOWN`; `InputError` if there is none of this name."""
    if name not in KNOWN:
        raise InputError("instance", name, f"must be a file or one of {', '.join(KNOWN)}")
    return _read_all([_known_file(name)])[0]


def best_known(instance: Instance) -> tuple[BestKnown, ...]:
    """What is known of an instance's optimum: that of `KNOWN` if it is the very same instance."""
    facts = KNOWN.get(instance.name, ())
    is_same = bool(facts) and known_instance(instance.name).sha256() == instance.sha256()
    return facts if is_same else ()


def named_instance(name: str) -> Instance:
    """Find an instance by name.

    Parameters
    ----------
    name : str
        ``oasis/small/t8-j8-h3-d4-s0``: family, suite and the rest of its name, as `list_instances`
        and the commands show it; or the instance's own name, ``oasis-small-t8-j8-h3-d4-s0``, as
        files have it.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.named_instance("oasis-t10-i10-h25-s0")
    <oasis instance 'oasis-t10-i10-h25-s0': 10 jobs, horizon 10>
    """
    family, _, path = name.partition("/")
    suite_name, _, rest = path.partition("/")
    if not rest:
        if family in FAMILIES:
            raise InputError("instance", name, "must be FAMILY/SUITE/NAME, as in `list instances`")
        for word in FAMILIES:
            for entry in _entries(word) if name.startswith(f"{word}-") else ():
                if entry.instance_name == name:
                    return entry.make()
        return known_instance(name)
    check_family(family)
    found = [entry for entry in _entries(family) if entry.suite == suite_name]
    for entry in found:
        if rest in (entry.member, entry.instance_name):
            return entry.make()
    if suite_name not in (known := suites(family)):
        raise InputError("suite", suite_name, f"{family} has the suites {', '.join(known)}")
    listed = ", ".join(entry.member for entry in found)
    raise InputError("instance", name, f"must be one of {listed}")


def shown_name(instance: Instance) -> str:
    """What to call an instance: the library's name if it is in it, else its own."""
    listed = _entries(instance.family) if instance.family in FAMILIES else []
    found = [entry for entry in listed if entry.instance_name == instance.name]
    sha256 = instance.sha256() if found else ""
    return next((entry.name for entry in found if entry.sha256 == sha256), instance.name)


def is_library_name(name: str) -> bool:
    """Whether a text looks like a name of the library and not like a file."""
    is_own = any(name.startswith(f"{word}-") for word in FAMILIES)
    return is_own or ("/" in name and name.split("/")[0] in FAMILIES)


def list_suites(family: str | None = None) -> list[JsonObject]:
    """One row a suite: ``family, suite``."""
    return [
        {"family": word, "suite": name} for word in families_or_all(family) for name in suites(word)
    ]


def list_instances(family: str | None = None) -> list[JsonObject]:
    """One row a named instance: ``name, family, jobs, horizon``, and the interval of its optimum.

    The latter, ``optimum_lower`` and ``optimum_upper``, is that of `KNOWN`.
    """
    rows: list[JsonObject] = []
    for entry in (entry for word in families_or_all(family) for entry in _entries(word)):
        is_known = entry.suite == KNOWN_SUITE
        facts = KNOWN[entry.instance_name][0] if is_known else None
        rows.append({
            "name": entry.name, "family": entry.family, "jobs": entry.jobs,
            "horizon": entry.horizon, "optimum_lower": facts and facts.lower,
            "optimum_upper": facts and facts.upper,
        })  # fmt: skip
    return rows


def families_or_all(
    family: str | None, floor: str = "instances", aspect: str = "generator"
) -> tuple[str, ...]:
    """The family asked for, checked, or all that have a module on a floor."""
    if family is None:
        return families_on(floor, aspect)
    check_family(family)
    return (family,)
