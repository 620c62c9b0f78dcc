"""The benchmark library: instances with a name, and what is best known of their optimum.

Two kinds of names: ``<family>/<suite>/<instance>`` for the members of the generators' suites, and
the plain names of `KNOWN`, whose files come with the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.base import FAMILIES, Instance, check_family, families_on
from hindsched.instances.generators.registry import generated_suites, make, suite, suites
from hindsched.instances.io import parse_instance, read_json
from hindsched.instances.recipes import all_recipes


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
        A name of `KNOWN`; ``oasis/small/t8-j8-h3-d4-s0``: family, suite and the rest of its name,
        as `list_instances` shows it; or the instance's own name, ``oasis-small-t8-j8-h3-d4-s0``,
        as results show it.

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
        family, suite_name, member = parts
        check_family(family)
        members = {short_name(item, suite_name): item for item in suite(family, suite_name)}
        found = members.get(member.removeprefix(f"{family}-{suite_name}-"))
        if found is None:
            raise InputError("instance", name, f"must be one of {', '.join(members)}")
        return found
    if parts[0] in FAMILIES:
        raise InputError("instance", name, "must be FAMILY/SUITE/NAME, as in `list instances`")
    for word in FAMILIES:
        if name.startswith(f"{word}-") and name not in KNOWN:
            for make_all in generated_suites(word).values():
                for item in make_all():
                    if item.name == name:
                        return item
    return known_instance(name)


def short_name(instance: Instance, suite_name: str) -> str:
    """An instance's name without family and suite, which stand before it."""
    return instance.name.removeprefix(f"{instance.family}-{suite_name}-")


def is_library_name(name: str) -> bool:
    """Whether a text looks like a name of the library and not like a file."""
    is_own = name in KNOWN or any(name.startswith(f"{word}-") for word in FAMILIES)
    return is_own or ("/" in name and name.split("/")[0] in FAMILIES)


def list_suites(family: str | None = None) -> list[dict[str, Any]]:
    """One row a suite: ``family, suite``."""
    return [
        {"family": word, "suite": name} for word in families_or_all(family) for name in suites(word)
    ]


def list_instances(family: str | None = None) -> list[dict[str, Any]]:
    """One row a named instance: ``name, family, jobs, horizon, lower, upper`` of its optimum."""
    rows: list[dict[str, Any]] = []
    for name, facts in KNOWN.items():
        if family is None or facts[0].family == family:
            instance = known_instance(name)
            rows.append(_row(name, instance, facts[0].lower, facts[0].upper))
    for word in families_or_all(family):
        for suite_name, make_all in generated_suites(word).items():
            for instance in make_all():
                name = f"{word}/{suite_name}/{short_name(instance, suite_name)}"
                rows.append(_row(name, instance, None, None))
    rows += [
        {
            "name": recipe.name, "family": recipe.family, "jobs": recipe.jobs,
            "horizon": recipe.horizon, "optimum_lower": None, "optimum_upper": None,
        }
        for recipe in all_recipes()
        if family in (None, recipe.family)
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


def _row(name: str, instance: Instance, lower: float | None, upper: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "family": instance.family,
        "jobs": len(instance.jobs),
        "horizon": instance.horizon,
        "optimum_lower": lower,
        "optimum_upper": upper,
    }
