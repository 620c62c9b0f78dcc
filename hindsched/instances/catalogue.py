"""Named instances: suites of the generators, the benchmark library, worst cases, known optima.

An instance bears a name of its own, ``oasis-small-t8-j8-h3-d4-s0``, which files and hashes keep.
Here it is called by family, suite and the rest: ``oasis/small/t8-j8-h3-d4-s0``.

- Members of the generators' suites are listed in `members.json`, so that nothing needs to be made
  to name them; a family that is not in it has its suites made.
- The benchmark library's instances are not kept as files. A recipe in `recipes.json` names
  generator, preset, seed and settings, from which the same bytes come everywhere; the hash says
  that they did. It changes only with a new version of the library.
- The suite ``worst`` holds the worst instances that ``hindsched worst`` found for every algorithm:
  small files in ``instances/<family>/worst``; ``docs/worst.md`` tells what goes wrong on each.

``benchmarks/library_recipes.py`` writes both lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class BestKnown:
    """What is known of an instance's offline optimum.

    Parameters
    ----------
    family : str
        The family's name.
    lower, upper : float
        The optimum of the formulation lies between them; equal when it is proven.
    formulation : str, optional
        None for the family's default.
    """

    family: str
    lower: float
    upper: float
    formulation: str | None = None


KNOWN: dict[str, tuple[BestKnown, ...]] = {
    "oasis-t10-i10-h5-s1": (BestKnown("oasis", 250.338, 250.338),),
    "oasis-t10-i10-h10-s0": (BestKnown("oasis", 287.064, 287.064),),
    "oasis-t10-i10-h25-s0": (BestKnown("oasis", 182.359, 182.359),),
    "oasis-t100-i100-h50-s0": (BestKnown("oasis", 1253.7, 1383.9),),
    "oasis-t300-i300-h50-s0": (BestKnown("oasis", 4153.3, 4707.5),),
    "batchsched-ps-j5-s200": (BestKnown("batchsched", 243, 243),),
    "batchsched-rar-j5-s200": (BestKnown("batchsched", 251, 251),),
    "edgecloud-j5-s601": (
        BestKnown("edgecloud", 40, 40),
        BestKnown("edgecloud", 38, 38, "literal"),
    ),
    "edgecloud-j7-s600": (
        BestKnown("edgecloud", 52, 52),
        BestKnown("edgecloud", 50, 50, "literal"),
    ),
    "astraea-j5-s40": (BestKnown("astraea", 347.643944, 347.643944),),
    "mlbroker-r3-t2-s51": (BestKnown("mlbroker", 184.72025, 184.72025),),
}
"""Optima found by an independent program (proven to 1e-4 relative where both ends meet)."""


@dataclass(frozen=True)
class Member:
    """An instance of a generator's suite.

    Parameters
    ----------
    family, suite : str
        Where it belongs.
    instance_name : str
        The name that the instance itself bears.
    jobs, horizon : int
        Its size.
    sha256 : str
        Hash of the instance's canonical JSON.

    Examples
    --------
    >>> Member("oasis", "small", "oasis-small-t8-s0", 8, 8, "").name
    'oasis/small/t8-s0'
    """

    family: str
    suite: str
    instance_name: str
    jobs: int
    horizon: int
    sha256: str

    @property
    def name(self) -> str:
        """The library's name of the instance: family, suite and the rest of its own name."""
        return f"{self.family}/{self.suite}/{_rest(self.instance_name, self.family, self.suite)}"


@dataclass(frozen=True)
class Recipe:
    """One instance of the benchmark library.

    Parameters
    ----------
    family, suite, member : str
        Its name is these three: ``oasis/library-small/h5-s1``.
    preset, seed, settings
        What its generator is given.
    jobs, horizon : int
        Its size.
    sha256 : str
        Hash of the instance's canonical JSON.

    Examples
    --------
    >>> find_recipe("oasis/library-small/h3-s2").preset
    'small'
    """

    family: str
    suite: str
    member: str
    preset: str
    seed: int
    settings: Keywords
    jobs: int
    horizon: int
    sha256: str

    @property
    def name(self) -> str:
        """The library's name of the instance: family, suite, member."""
        return f"{self.family}/{self.suite}/{self.member}"

    @property
    def instance_name(self) -> str:
        """The name that the instance itself bears, as files and results show it."""
        return f"{self.family}-{self.suite}-{self.member}"

    def make(self) -> Instance:
        """Make the instance; `SolveFailed` if a changed generator makes another one."""
        made = generate(self.family, self.preset, self.seed, **self.settings)
        instance = made.with_fields(name=self.instance_name)
        if instance.sha256() != self.sha256:
            raise SolveFailed(f"{self.name}: this version's generator makes another instance")
        return instance


def generated_suites(family: str) -> dict[str, Suite]:
    """Suites that need no recipe: those that the generator names, and the worst cases."""
    found: dict[str, Suite] = dict(family_module("instances", family, "generator").SUITES)
    folder = Path(str(files("hindsched.instances") / family / WORST))
    if paths := sorted(folder.glob("*.json")):
        found[WORST] = lambda: [parse_instance(read_json(path), str(path)) for path in paths]
    return found


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
    return tuple(Recipe(**row) for row in _listed("recipes", RECIPES_FORMAT)["recipes"])


def find_recipe(name: str) -> Recipe:
    """The recipe of a name, either the library's or the instance's own; or `InputError`."""
    for recipe in all_recipes():
        if name in (recipe.name, recipe.instance_name):
            return recipe
    raise InputError("instance", name, "must be an instance of the library: `library list`")


@cache
def members(family: str) -> tuple[Member, ...]:
    """The members of a family's suites, in the suites' order."""
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


@cache
def _listed(name: str, format_: str) -> Any:
    data = read_json(str(files("hindsched.instances") / f"{name}.json"))
    assert data["format"] == format_
    return data


@cache
def best_on_file() -> dict[str, list[float | None]]:
    """Best objective and bound known of every instance of the library, by the library's name."""
    source = str(files("hindsched.instances") / "best_known.json")
    found: dict[str, list[float | None]] = read_json(source)
    return found


def known_instance(name: str) -> Instance:
    """Read an instance of `KNOWN`; `InputError` if there is none of this name."""
    if name not in KNOWN:
        raise InputError("instance", name, f"must be a file or one of {', '.join(KNOWN)}")
    source = files("hindsched.instances") / KNOWN_SUITE / f"{name}.json"
    return parse_instance(read_json(str(source)), name)


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
    for recipe in all_recipes():
        if name in (recipe.name, recipe.instance_name):
            return recipe.make()
    family, _, path = name.partition("/")
    suite_name, _, rest = path.partition("/")
    if rest:
        check_family(family)
        if suite_name == KNOWN_SUITE:
            return known_instance(f"{family}-{rest}")
        found = {_rest(item.name, family, suite_name): item for item in suite(family, suite_name)}
        if rest not in found:  # it may begin with family and suite, as the instance's own name
            rest = _rest(rest, family, suite_name)
        if rest not in found:
            raise InputError("instance", name, f"must be one of {', '.join(found)}")
        return found[rest]
    if family in FAMILIES:
        raise InputError("instance", name, "must be FAMILY/SUITE/NAME, as in `list instances`")
    for word in FAMILIES:
        if name.startswith(f"{word}-") and name not in KNOWN:
            for member in members(word):
                if member.instance_name == name:
                    return named_instance(member.name)
    return known_instance(name)


def shown_name(instance: Instance) -> str:
    """What to call an instance: the library's name if it is in it, else its own.

    Examples
    --------
    >>> shown_name(named_instance("oasis-t10-i10-h25-s0"))
    'oasis/known/t10-i10-h25-s0'
    """
    if best_known(instance):
        return _known_name(instance.name)
    listed: list[Member | Recipe] = list(all_recipes())
    listed += members(instance.family) if instance.family in FAMILIES else ()
    for item in listed:
        if item.instance_name == instance.name and item.sha256 == instance.sha256():
            return item.name
    return instance.name


def is_library_name(name: str) -> bool:
    """Whether a text looks like a name of the library and not like a file."""
    is_own = name in KNOWN or any(name.startswith(f"{word}-") for word in FAMILIES)
    return is_own or ("/" in name and name.split("/")[0] in FAMILIES)


def list_suites(family: str | None = None) -> list[JsonObject]:
    """One row a suite: ``family, suite``."""
    return [
        {"family": word, "suite": name} for word in families_or_all(family) for name in suites(word)
    ]


def list_instances(family: str | None = None) -> list[JsonObject]:
    """One row a named instance: ``name, family, jobs, horizon, lower, upper`` of its optimum."""
    words = families_or_all(family)
    rows: list[tuple[Any, ...]] = []
    for name, (facts, *_) in KNOWN.items():
        if facts.family in words:
            made = known_instance(name)
            size = len(made.jobs), made.horizon
            rows.append((_known_name(name), facts.family, *size, facts.lower, facts.upper))
    listed: list[Member | Recipe] = [item for word in words for item in members(word)]
    listed += all_recipes()
    rows += [
        (item.name, item.family, item.jobs, item.horizon, None, None)
        for item in listed
        if item.family in words
    ]
    keys = ("name", "family", "jobs", "horizon", "optimum_lower", "optimum_upper")
    return [dict(zip(keys, row, strict=True)) for row in rows]


def families_or_all(
    family: str | None, floor: str = "instances", aspect: str = "generator"
) -> tuple[str, ...]:
    """The family asked for, checked, or all that have a module on a floor."""
    if family is None:
        return families_on(floor, aspect)
    check_family(family)
    return (family,)


def _rest(name: str, family: str, suite: str) -> str:
    """An instance's own name without the family and suite that stand before it."""
    return name.removeprefix(f"{family}-").removeprefix(f"{suite}-")


def _known_name(name: str) -> str:
    """The name of an instance of `KNOWN` in the scheme of all others."""
    family, _, rest = name.partition("-")
    return f"{family}/{KNOWN_SUITE}/{rest}"
