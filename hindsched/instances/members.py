"""Names of the instances in the generators' suites, known without making any.

An instance bears a name of its own, ``oasis-small-t8-j8-h3-d4-s0``, which files and hashes keep. In
the library it is called by family, suite and the rest: ``oasis/small/t8-j8-h3-d4-s0``.
`members.json`, which ``benchmarks/library_recipes.py`` writes, says which is which; a family that
is not in it has its suites made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hindsched.instances.base import FAMILIES, Instance
from hindsched.instances.generators.registry import generated_suites
from hindsched.instances.io import read_json

MEMBERS_FORMAT = "hindsched-members/1"


@dataclass(frozen=True)
class Member:
    """An instance of a suite.

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
        return f"{self.family}/{self.suite}/{rest_of(self.instance_name, self.family, self.suite)}"


def rest_of(name: str, family: str, suite: str) -> str:
    """An instance's own name without the family and suite that stand before it."""
    return name.removeprefix(f"{family}-").removeprefix(f"{suite}-")


def make_members(family: str) -> list[Member]:
    """The members of a family's suites, from the instances themselves."""
    return [
        Member(family, suite, item.name, len(item.jobs), item.horizon, item.sha256())
        for suite, make_all in generated_suites(family).items()
        for item in make_all()
    ]


@cache
def members(family: str) -> tuple[Member, ...]:
    """The members of a family's suites, in the suites' order."""
    listed = _listed()
    if family in listed:
        return tuple(Member(family, *row) for row in listed[family])
    return tuple(make_members(family))


def member_of(instance: Instance) -> Member | None:
    """The member that an instance is, to the last byte; None if it is none."""
    if instance.family not in FAMILIES:
        return None
    for member in members(instance.family):
        if member.instance_name == instance.name and member.sha256 == instance.sha256():
            return member
    return None


@cache
def _listed() -> dict[str, list[list[Any]]]:
    data = read_json(str(files("hindsched.instances") / "members.json"))
    assert data["format"] == MEMBERS_FORMAT
    found: dict[str, list[list[Any]]] = data["members"]
    return found
