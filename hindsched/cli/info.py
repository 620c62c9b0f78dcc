"""``hindsched list``, ``schema`` and ``describe``: looking without computing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any

import typer

from hindsched.cli.output import Json, cell, emit_json, facts, out, say, table
from hindsched.cli.settings import Family, File, OneFamily, load
from hindsched.errors import InputError
from hindsched.json_types import JsonObject

Rows = list[JsonObject]
WIDE = {"settings": "their settings: hindsched list algorithms --family FAMILY, or --json"}
"""Columns that a list of all families leaves out, and where they are."""
MOST_ENTRIES = 20
"""Entries of an object in an instance's provenance that `describe` spells out."""


def schema(
    family: Family,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of a family's instance files."""
    import json

    from hindsched.instances.io import schema as schema_of

    found = schema_of(family)
    if as_json:
        emit_json(found)
    else:
        out.print(json.dumps(found, indent=1), markup=False, soft_wrap=True)


def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            help="families, algorithms, suites, instances or solvers; what there is if absent."
        ),
    ] = None,
    family: OneFamily = None,
    as_json: Json = False,
) -> None:
    """List what there is."""
    if what is None:
        _say_lists(family, as_json=as_json)
        return
    if what not in LISTS:
        raise InputError("list", what, f"must be one of {', '.join(LISTS)}")
    rows = LISTS[what][0](family)
    if as_json:
        emit_json({what: rows})
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    left_out = WIDE if family is None else {}
    columns = [column for column in columns if column not in left_out]
    cells = [[row.get(column) for column in columns] for row in rows]
    out.print(table(what, [column.replace("_", " ") for column in columns], cells))
    if left_out.keys() & rows[0].keys():
        say(left_out["settings"])


def _say_lists(family: str | None, *, as_json: bool) -> None:
    """What can be listed, each with what it is."""
    if family is not None:
        raise InputError("list", "(absent)", f"must be one of {', '.join(LISTS)}")
    if as_json:
        emit_json({"lists": [{"list": word, "shows": shows} for word, (_, shows) in LISTS.items()]})
        return
    rows = [(f"hindsched list {word}", shows) for word, (_, shows) in LISTS.items()]
    out.print(table("", ("command", "shows"), rows))


def describe(file: File, as_json: Json = False) -> None:
    """Summarise an instance."""
    from hindsched.instances.catalogue import best_known, shown_name

    instance = load(file)
    given = getattr(instance, "arrivals", None)  # jobs of gang say when they were submitted
    arrivals = [job.arrival for job in instance.jobs] if given is None else given
    summary: JsonObject = {
        "family": instance.family,
        "instance": instance.name,
        "sense": instance.sense,
        "formulations": ", ".join(instance.formulations),
        "horizon": instance.horizon,
        "slot_seconds": instance.slot_seconds,
        "jobs": len(instance.jobs),
        "first_arrival": min(arrivals, default=None),
        "last_arrival": max(arrivals, default=None),
        "sha256": instance.sha256(),
    }
    for name in type(instance).model_fields:
        value = getattr(instance, name)
        if name != "jobs" and isinstance(value, tuple | list):
            names: list[Any] = [getattr(item, "name", item) for item in value]
            simple = len(names) <= 8 and all(isinstance(item, str) for item in names)
            summary[name] = ", ".join(names) if simple else len(names)
    for facts_known in best_known(instance):
        key = f"known_optimum_{facts_known.formulation or instance.formulations[0]}"
        summary[key] = [facts_known.lower, facts_known.upper]
    if as_json:
        emit_json({**summary, "provenance": instance.provenance})
        return
    out.print(facts({**summary, "instance": shown_name(instance)}))
    for key, value in (instance.provenance or {}).items():
        if isinstance(value, dict) and len(value) > MOST_ENTRIES:
            value = f"{len(value)} entries"
        out.print(f"  {key}: {cell(value)}", markup=False, soft_wrap=True)


def _families(family: str | None) -> Rows:
    from hindsched.instances.catalogue import families_or_all
    from hindsched.instances.io import instance_class

    rows: Rows = []
    for word in families_or_all(family, "instances", "instance"):
        cls = instance_class(word)
        rows.append(
            {"family": word, "sense": cls.sense, "formulations": ", ".join(cls.formulations)}
        )
    return rows


def _algorithms(family: str | None) -> Rows:
    from hindsched.instances.catalogue import families_or_all
    from hindsched.online.registry import algorithms, build_algorithm, settings_of

    rows: Rows = []
    for word in families_or_all(family, "online", "algorithms"):
        for name, factory in algorithms(word).items():
            algorithm = build_algorithm(word, name)
            rows.append(
                {
                    "family": word,
                    "algorithm": name,
                    "randomised": algorithm.randomised,
                    "in_feasible_set": not algorithm.relaxes_constraints,
                    "knows": algorithm.card.words,
                    "settings": _settings(settings_of(factory)),
                }
            )
    return rows


def _settings(parameters: Mapping[str, Parameter]) -> str:
    texts = []
    for name, parameter in parameters.items():
        has_default = parameter.default is not parameter.empty
        texts.append(f"{name}={parameter.default}" if has_default else name)
    return ", ".join(texts)


def _suites(family: str | None) -> Rows:
    from hindsched.instances.catalogue import list_suites

    return list_suites(family)


def _instances(family: str | None) -> Rows:
    from hindsched.instances.catalogue import list_instances

    return list_instances(family)


def _solvers(family: str | None) -> Rows:
    from hindsched.solvers.door.options import SOLVERS
    from hindsched.solvers.door.others import OTHERS

    if family is not None:
        raise InputError("family", family, "solvers belong to no family")
    return [
        {"solver": name, "installed": name not in OTHERS or OTHERS[name].is_installed}
        for name in SOLVERS
    ]


LISTS: dict[str, tuple[Callable[[str | None], Rows], str]] = {
    "families": (_families, "the problems, each with its formulations"),
    "algorithms": (_algorithms, "who can be run online, and what it knows"),
    "suites": (_suites, "sets of instances that bench takes"),
    "instances": (_instances, "names that solve, ratio and every other command take"),
    "solvers": (_solvers, "solvers of the offline programs, and which are installed"),
}
