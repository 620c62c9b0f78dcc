"""Words that the shell completes after Tab; names of files are left to the shell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

import typer

HEAD = 4096
"""Bytes of a file in which its family is looked for."""
Words = Callable[[typer.Context, str], list[str]]
"""What typer calls with the line so far and the beginning of a word."""

LISTS = ("families", "algorithms", "suites", "instances", "solvers")
METHODS = (
    "auto", "milp", "tree", "bound", "relaxation", "column-generation", "preemptive", "search",
    "chord", "conditioned", "orders",
)  # fmt: skip
# Stated here, for asking the families would take seconds; a test holds them against the families.


def of(words: Iterable[str]) -> Words:
    """Complete one of a few words."""
    known = list(words)

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _beginning(known, incomplete)

    return complete


def families(context: typer.Context, incomplete: str) -> list[str]:
    """Words of the families."""
    return _beginning(_all_families(), incomplete)


def algorithms(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the algorithms of the family on the line, or of all."""
    from hindsched.online.registry import algorithms as of_family

    return _of_families(of_family, context, incomplete)


def presets(context: typer.Context, incomplete: str) -> list[str]:
    """Presets of the family's generator."""
    from hindsched.instances.generators.registry import presets as of_family

    return _of_families(of_family, context, incomplete)


def figures(context: typer.Context, incomplete: str) -> list[str]:
    """Numbers of the family's figures."""
    from hindsched.analysis.figures.base import figures as of_family

    return _of_families(of_family, context, incomplete)


def suites(context: typer.Context, incomplete: str) -> list[str]:
    """Suites, and the library's names once a family's word begins one."""
    from hindsched.instances.generators.registry import suites as of_family

    return _of_families(of_family, context, incomplete) + instances(context, incomplete)


def instances(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the library that begin so; none before a family's word is there."""
    family = next((word for word in _all_families() if incomplete.startswith(word)), None)
    if family is None:
        return []
    from hindsched.instances.library import list_instances

    return _beginning((str(row["name"]) for row in list_instances(family)), incomplete)


def _of_families(
    of_family: Callable[[str], Iterable[str]], context: typer.Context, incomplete: str
) -> list[str]:
    found = dict.fromkeys(name for family in _families(context) for name in of_family(family))
    return _beginning(found, incomplete)


def _families(context: typer.Context) -> tuple[str, ...]:
    """The family that the line names by its word, by an instance's name or in a file; or all."""
    known = _all_families()
    said = [context.params.get("family"), context.params.get("file"), *context.args]
    for text in map(str, filter(None, said)):  # before an option's value, arguments are in args
        family = re.split("[/-]", text)[0]
        if os.path.isfile(text):
            head = _head(text)
            family = next(iter(re.findall(r'"family": *"(\w+)"', head)), "")
        if family in known:
            return (family,)
    return known


def _all_families() -> tuple[str, ...]:
    from hindsched.instances.base import FAMILIES

    return FAMILIES


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _head(path: str) -> str:
    """How a file begins; nothing of one that cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(HEAD).decode("utf-8", "replace")
    except OSError:
        return ""
