"""Named instances: suites of the generators, the benchmark library, worst cases, known optima.

An instance bears a name of its own, ``oasis-small-t8-j8-h3-d4-s0``, which files and hashes keep.
Here it is called by family, suite and the rest: ``oasis/small/t8-j8-h3-d4-s0``.

``members.json`` lists those of the generators' suites and of the two that are kept as files:
``worst`` (what ``hindsched worst`` found) and ``known`` (optima that another program found). The
library's are recipes in ``recipes.json``, from which the same bytes come everywhere; the hash says
that they did. ``benchmarks/library_recipes.py`` writes both lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import FAMILIES, Instance, check_family, families_on
from hindsched.instances.generators.registry import Suite, family_generator, generate
from hindsched.instances.io import parse_instance, read_json
from hindsched.json_types import JsonObject, Keywords

WORST, KNOWN_SUITE = "worst", "known"
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
    """An instance of a suite; one of the benchmark library with what its generator is given."""

    family: str
    suite: str
    instance_name: str  # the instance's own, as files and results show it
    jobs: int
    horizon: int
    sha256: str  # of the canonical JSON
    preset: str = ""  # empty for an instance outside the library
    seed: int = 0
    settings: Keywords = field(default_factory=dict)

    @property
    def member(self) -> str:
        """Its own name without the family and suite that stand before it."""
        return self.instance_name.removeprefix(f"{self.family}-").removeprefix(f"{self.suite}-")

    @property
    def name(self) -> str:
        """The library's name of the instance: family, suite, member."""
        return f"{self.family}/{self.suite}/{self.member}"

    def make(self) -> Instance:
        """Make, or read, the instance; `SolveFailed` if a changed generator makes another one."""
        if not self.preset:
            made = suite(self.family, self.suite)
            return next(instance for instance in made if instance.name == self.instance_name)
        drawn = generate(self.family, self.preset, self.seed, **self.settings)
        instance = drawn.with_fields(name=self.instance_name)
        if instance.sha256() != self.sha256:
            raise SolveFailed(f"{self.name}: this version's generator makes another instance")
        return instance


def suites(family: str) -> dict[str, Suite]:
    """Suites of a family: its generator's, those kept as files, the benchmark library's last."""
    by_name: dict[str, Suite] = dict(family_generator(family).suites)
    known = [name for name, facts in KNOWN.items() if facts[0].family == family]
    for name, paths in (
        (WORST, sorted((PACKAGE / family / WORST).glob("*.json"))),
        (KNOWN_SUITE, [PACKAGE / KNOWN_SUITE / f"{name}.json" for name in known]),
    ):
        if paths:
            by_name[name] = partial(_read_all, paths)
    recipes = [recipe for recipe in all_recipes() if recipe.family == family]
    for name in dict.fromkeys(recipe.suite for recipe in recipes):
        by_name[name] = partial(_make_all, [recipe for recipe in recipes if recipe.suite == name])
    return by_name


def _read_all(paths: list[Path]) -> list[Instance]:
    return [parse_instance(read_json(path), str(path)) for path in paths]


def _make_all(recipes: list[Member]) -> list[Instance]:
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


@cache
def all_recipes() -> tuple[Member, ...]:
    """Every instance of the benchmark library, by family and size."""
    return tuple(
        Member(instance_name=f"{row['family']}-{row['suite']}-{row.pop('member')}", **row)
        for row in read_json(PACKAGE / "recipes.json")["recipes"]
    )


@cache
def members(family: str) -> tuple[Member, ...]:
    """Every named instance of a family, in the order of its suites."""
    listed = read_json(PACKAGE / "members.json")["members"]
    listed_members = [Member(family, *row) for row in listed.get(family, ())] or make_members(
        family
    )
    return (*listed_members, *(recipe for recipe in all_recipes() if recipe.family == family))


def make_members(family: str) -> list[Member]:
    """The members of a family's suites without recipes, from the instances themselves."""
    if family not in families_on("instances", "generator"):
        return []
    recipes = {recipe.suite for recipe in all_recipes()}
    return [
        Member(family, name, item.name, len(item.jobs), item.horizon, item.sha256())
        for name, make_all in suites(family).items()
        if name not in recipes
        for item in make_all()
    ]


@cache
def best_on_file() -> dict[str, list[float | None]]:
    """Best objective and bound known of every instance of the library, by the library's name."""
    rows: dict[str, list[float | None]] = read_json(PACKAGE / "best_known.json")
    return rows


def best_known(instance: Instance) -> tuple[BestKnown, ...]:
    """What is known of an instance's optimum: that of `KNOWN` if it is the very same instance."""
    facts = KNOWN.get(instance.name, ())
    return facts if facts and find_member(instance.name).sha256 == instance.sha256() else ()


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
    return find_member(name).make()


def find_member(name: str) -> Member:
    """The member of a name, the library's or the instance's own; or `InputError`."""
    family, _, path = name.partition("/")
    suite_name, _, rest = path.partition("/")
    if not rest:
        if family in FAMILIES:
            raise InputError("instance", name, "must be FAMILY/SUITE/NAME, as in `list instances`")
        for word in FAMILIES:
            for entry in members(word) if name.startswith(f"{word}-") else ():
                if entry.instance_name == name:
                    return entry
        raise InputError("instance", name, f"must be a file or one of {', '.join(KNOWN)}")
    check_family(family)
    entries = [entry for entry in members(family) if entry.suite == suite_name]
    for entry in entries:
        if rest in (entry.member, entry.instance_name):
            return entry
    if suite_name not in (known := suites(family)):
        raise InputError("suite", suite_name, f"{family} has the suites {', '.join(known)}")
    listed = ", ".join(entry.member for entry in entries)
    raise InputError("instance", name, f"must be one of {listed}")


def shown_name(instance: Instance) -> str:
    """What to call an instance: the library's name if it is in it, else its own."""
    listed = members(instance.family) if instance.family in FAMILIES else ()
    entries = [entry for entry in listed if entry.instance_name == instance.name]
    sha256 = instance.sha256() if entries else ""
    return next((entry.name for entry in entries if entry.sha256 == sha256), instance.name)


def is_library_name(name: str) -> bool:
    """Whether a text looks like a name of the library and not like a file."""
    is_own = any(name.startswith(f"{word}-") for word in FAMILIES)
    return is_own or ("/" in name and name.split("/")[0] in FAMILIES)


def list_instances(family: str | None = None) -> list[JsonObject]:
    """One row a named instance: ``name, family, jobs, horizon``, and the interval of its optimum.

    The latter, ``optimum_lower`` and ``optimum_upper``, is that of `KNOWN`.
    """
    rows: list[JsonObject] = []
    for entry in (entry for word in families_or_all(family) for entry in members(word)):
        facts = KNOWN[entry.instance_name][0] if entry.suite == KNOWN_SUITE else None
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
