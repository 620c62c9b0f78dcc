"""The benchmark library: instances with a name, and what is best known of their optimum.

A name is ``<family>/<suite>/<instance>``: the members of the generators' suites, the benchmark
library's recipes, and as the suite ``known`` those of `KNOWN`, whose files come with the package.
The names that instances bear themselves are understood too.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, Instance, check_family, families_on
from hindsched.instances.generators.registry import make, suite, suites
from hindsched.instances.io import parse_instance, read_json
from hindsched.instances.members import Member, member_of, members, rest_of
from hindsched.instances.recipes import Recipe, all_recipes
from hindsched.json_types import JsonObject


@dataclass(frozen=True)
class BestKnown:
    """What is known of an instance's offline optimum.

    Parameters
    ----------
    family : str
        The family's word.
    lower, upper : float
        The optimum of the formulation lies between them; equal when it is proven.
    formulation : str, optional
        None for the family's default.
    """

    family: str
    lower: float
    upper: float
    formulation: str | None = None


KNOWN_SUITE = "known"
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


def known_instance(name: str) -> Instance:
    """Read an instance of `KNOWN`.

    Raises
    ------
    InputError
        If there is no instance of this name.
    """
    if name not in KNOWN:
        raise InputError("instance", name, f"must be a file or one of {', '.join(KNOWN)}")
    source = files("hindsched.instances") / "known" / f"{name}.json"
    return parse_instance(read_json(str(source)), name)


def best_known(instance: Instance) -> tuple[BestKnown, ...]:
    """What is known of an instance's optimum: that of `KNOWN` if it is the very same instance."""
    facts = KNOWN.get(instance.name, ())
    is_same = bool(facts) and known_instance(instance.name).sha256() == instance.sha256()
    return facts if is_same else ()


def named_instance(name: str) -> Instance:
    """Find an instance of the library by name.

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
            return make(recipe)
    parts = name.split("/", 2)
    if len(parts) == 3:
        family, suite_name, rest = parts
        check_family(family)
        if suite_name == KNOWN_SUITE:
            return known_instance(f"{family}-{rest}")
        found = {rest_of(item.name, family, suite_name): item for item in suite(family, suite_name)}
        if rest not in found:  # it may begin with family and suite, as the instance's own name
            rest = rest_of(rest, family, suite_name)
        if rest not in found:
            raise InputError("instance", name, f"must be one of {', '.join(found)}")
        return found[rest]
    if parts[0] in FAMILIES:
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
        return known_name(instance.name)
    for recipe in all_recipes():
        if recipe.instance_name == instance.name and recipe.sha256 == instance.sha256():
            return recipe.name
    member = member_of(instance)
    return instance.name if member is None else member.name


def known_name(name: str) -> str:
    """The name of an instance of `KNOWN` in the scheme of all others."""
    family, _, rest = name.partition("-")
    return f"{family}/{KNOWN_SUITE}/{rest}"


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
    rows: list[JsonObject] = []
    for name, facts in KNOWN.items():
        if family is None or facts[0].family == family:
            instance = known_instance(name)
            rows.append(
                {
                    "name": known_name(name), "family": instance.family, "jobs": len(instance.jobs),
                    "horizon": instance.horizon, "optimum_lower": facts[0].lower,
                    "optimum_upper": facts[0].upper,
                }
            )  # fmt: skip
    named: list[Member | Recipe] = []
    named += [item for word in families_or_all(family) for item in members(word)]
    named += [recipe for recipe in all_recipes() if family in (None, recipe.family)]
    rows += [
        {
            "name": item.name, "family": item.family, "jobs": item.jobs,
            "horizon": item.horizon, "optimum_lower": None, "optimum_upper": None,
        }
        for item in named
    ]  # fmt: skip
    return rows


def families_or_all(
    family: str | None, floor: str = "instances", aspect: str = "generator"
) -> tuple[str, ...]:
    """The family asked for, checked, or all that have a module on a floor."""
    if family is None:
        return families_on(floor, aspect)
    check_family(family)
    return (family,)
