"""``hindsched list``, ``schema`` and ``describe``: looking without computing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import Parameter
from typing import Annotated, Any

from hindsched.analysis.tables import cell
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, emit_json, say, show_rows, tell
from hindsched.errors import InputError
from hindsched.json_types import JsonObject

LISTS = {
    "families": "the problems, each with its formulations",
    "algorithms": "who can be run online, and what it knows",
    "suites": "sets of instances that bench takes",
    "figures": "figures of the papers that can be drawn again",
    "instances": "names that solve, ratio and every other command take",
    "solvers": "solvers of the offline programs, and which are installed",
}
MOST_ENTRIES = 20  # entries of an object in an instance's provenance that `describe` spells out


def schema(family: opt.Family) -> None:
    """Print the JSON Schema of a family's instance files."""
    from hindsched.instances.io import schema as schema_of

    tell(json.dumps(schema_of(family), indent=1))


def list_(
    what: Annotated[str | None, opt.argument(f"{', '.join(LISTS)}; or nothing.")] = None,
    family: Annotated[str | None, opt.argument("Only this family.")] = None,
    as_json: opt.Json = False,
) -> None:
    """List what there is."""
    if what is not None and what not in LISTS:
        raise InputError("list", what, f"must be one of {', '.join(LISTS)}")
    rows = _list_rows(what, family)
    if as_json:
        emit_json({what or "lists": rows})
        return
    if what == "algorithms" and family is None:
        rows = [{key: value for key, value in row.items() if key != "settings"} for row in rows]
        say("their settings: hindsched list algorithms FAMILY, or --json")
    show_rows(what or "hindsched list ...", rows)


def _list_rows(what: str | None, family: str | None) -> list[JsonObject]:
    from hindsched.instances.catalogue import families_or_all, list_instances, suites
    from hindsched.instances.io import instance_class
    from hindsched.online.registry import algorithms, build_algorithm, settings_of

    match what:
        case "families":
            words = families_or_all(family, "instances", "instance")
            kinds = {word: instance_class(word) for word in words}
            return [
                {"family": word, "sense": kind.sense, "formulations": ", ".join(kind.formulations)}
                for word, kind in kinds.items()
            ]
        case "algorithms":
            words = families_or_all(family, "online", "algorithms")
            rows = [
                (word, name, build_algorithm(word, name), settings_of(factory))
                for word in words for name, factory in algorithms(word).items()
            ]  # fmt: skip
            return [
                {"family": word, "algorithm": name, "randomised": made.randomised,
                 "in_feasible_set": not made.relaxes_constraints, "knows": made.card.words,
                 "settings": _setting_texts(settings)}
                for word, name, made, settings in rows
            ]  # fmt: skip
        case "suites":
            words = families_or_all(family)
            return [{"family": word, "suite": name} for word in words for name in suites(word)]
        case "figures":
            from hindsched.analysis.figures.base import figures

            return [
                {"family": word, "figure": number, "shows": each.title}
                for word in families_or_all(family) for number, each in figures(word).items()
            ]  # fmt: skip
        case "instances":
            return list_instances(family)
        case "solvers":
            from hindsched.solvers.door.options import SOLVERS
            from hindsched.solvers.door.others import OTHERS

            return [
                {"solver": name, "installed": name not in OTHERS or OTHERS[name].is_installed}
                for name in SOLVERS
            ]
    return [{"list": word, "shows": shows} for word, shows in LISTS.items()]


def _setting_texts(settings: Mapping[str, Parameter]) -> str:
    return ", ".join(
        key if each.default is each.empty else f"{key}={each.default}"
        for key, each in settings.items()
    )


def describe(file: opt.File, as_json: opt.Json = False) -> None:
    """Summarise an instance."""
    from hindsched.instances.catalogue import best_known, best_on_file, shown_name

    instance = opt.load_instance(file)
    arrivals = [instance.arrival_of(job) for job in instance.jobs]
    summary: JsonObject = {
        "family": instance.family, "instance": instance.name, "sense": instance.sense,
        "formulations": ", ".join(instance.formulations), "horizon": instance.horizon,
        "slot_seconds": instance.slot_seconds, "jobs": len(instance.jobs),
        "first_arrival": min(arrivals, default=None), "last_arrival": max(arrivals, default=None),
        "sha256": instance.sha256(),
    }  # fmt: skip
    for name, value in instance:
        if name != "jobs" and isinstance(value, tuple | list):
            names: list[Any] = [getattr(item, "name", item) for item in value]
            simple = len(names) <= 8 and all(isinstance(item, str) for item in names)
            summary[name] = ", ".join(names) if simple else len(names)
    for known in best_known(instance):
        key = f"known_optimum_{known.formulation or instance.formulations[0]}"
        summary[key] = [known.lower, known.upper]
    name = shown_name(instance)
    if name in best_on_file():
        summary["best_known_objective"], summary["best_known_bound"] = best_on_file()[name]
    if answer(as_json, summary, {"provenance": instance.provenance}, instance=instance):
        for key, value in (instance.provenance or {}).items():
            is_long = isinstance(value, dict) and len(value) > MOST_ENTRIES
            tell(f"  {key}: {f'{len(value)} entries' if is_long else cell(value)}")
