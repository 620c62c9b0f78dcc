"""One self-contained HTML page from a folder of results: verdict, tables, pictures, commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.interval import Interval
from hindsched.analysis.ratio import INVERSE_NOTE, STAR_NOTE, AlgorithmRatio
from hindsched.analysis.report import svg
from hindsched.analysis.statistics import Row, interval_of, profile_rows
from hindsched.analysis.store import REPORT, ResultStore
from hindsched.analysis.tasks import OFFLINE, Record, file_name
from hindsched.analysis.verdict import Verdict
from hindsched.instances.catalogue import shown_name
from hindsched.instances.io import write_text
from hindsched.json_types import JsonObject, Keywords
from hindsched.printable import printable
from hindsched.solutions.base import read_solution

if TYPE_CHECKING:
    from jinja2 import Environment

PROFILE_POINTS = 25
MOST_JOBS_DRAWN, MOST_PICTURE_BYTES = 60, 60_000
"""Schedules of more jobs, and what goes beyond so many bytes a page, stay in their files."""
MOST_NAMED = 3
"""Instances named of an error that befell many."""
OTHER_RULES = "other rules"
OPTIONS = {"method": "--method", "solver": "--solver", "time_limit": "--time-limit", "gap": "--gap"}


def write_report(store: ResultStore, comparison: Comparison | None = None) -> Path:
    """Write ``report.html`` of a folder of results from what it holds, and return its path."""
    path = store.folder / REPORT
    write_text(render_report(store, comparison), path)
    return path


def render_report(store: ResultStore, comparison: Comparison | None = None) -> str:
    """Make the page as text; parameters as of `write_report`."""
    comparison = comparison or Comparison(store.records())
    environment = page_environment("hindsched.analysis.report")
    environment.filters |= {"number": show_number, "percent": show_percent}
    summary = comparison.summary_rows()
    tried = {record["task"] for record in comparison.records}
    pictures = Pictures(store)
    families = [
        _family(store, comparison, found, summary, pictures) for found in comparison.verdicts()
    ]
    style = (files("hindsched.analysis.report") / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        title=store.folder.name,
        families=families,
        style=style,
        errors=_grouped(comparison.errors),
        missing=[task.key for task in store.tasks if task.key not in tried],
        manifest=store.manifest,
        tasks=len(store.tasks),
        undrawn=pictures.undrawn,
        note=INVERSE_NOTE,
        star_note=STAR_NOTE if any(row["starred"] for row in summary) else None,
    )


def _grouped(errors: Sequence[str]) -> list[str]:
    """Errors of instances, each told once with the instances that it befell."""
    befallen: dict[str, list[str]] = {}
    for line in errors:
        instance, _, what = line.partition(": ")
        befallen.setdefault(what, []).append(instance)
    return [
        f"{what} (on {', '.join(names[:MOST_NAMED])}"
        + (f" and {len(names) - MOST_NAMED} more)" if len(names) > MOST_NAMED else ")")
        for what, names in befallen.items()
    ]


def _family(
    store: ResultStore,
    comparison: Comparison,
    found: Verdict,
    summary: Sequence[Row],
    pictures: Pictures,
) -> JsonObject:
    """What the page says of a family."""
    rows = [row for row in summary if row["family"] == found.family]
    items = [item for item in comparison.instances if item.family == found.family]
    ratios = comparison.by_family.get(found.family, {})
    points: dict[str, list[tuple[float, float]]] = {}
    for point in profile_rows(ratios, PROFILE_POINTS):
        points.setdefault(point["algorithm"], []).append((point["factor"], point["share"]))
    return {
        "word": found.family,
        "verdict": found,
        "best": _named(found.best),
        "own": _named(found.own),
        "proven": f"{sum(item.is_proven for item in found.optima)} of {len(found.optima)}",
        "algorithms": [
            {
                **row,
                "median": interval_of(row, "median"),
                "worst": interval_of(row, "worst"),
                "sums": interval_of(row, "sums"),
            }
            for row in rows
        ],
        "intervals": svg.intervals(
            {name: [row.ratio.interval for row in own] for name, own in ratios.items()}
        ),
        "profiles": svg.profiles(points),
        "instances": [_instance(store, item, pictures) for item in items],
    }


def _named(row: Row | None) -> JsonObject | None:
    """An algorithm and its median ratio."""
    if row is None:
        return None
    return {"name": row["label"], "ratio": str(interval_of(row, "median"))}


def _instance(store: ResultStore, item: InstanceComparison, pictures: Pictures) -> JsonObject:
    """What the page says of an instance: optimum, runs, commands, and two schedules."""
    instance = next(one for one in store.instances() if one.name == item.instance)
    certificate = f"certificates/{file_name(item.instance)}.json"
    has_certificate = (store.folder / certificate).is_file()
    known = [row for row in item.algorithms if row.objective is not None]
    sign = -1.0 if instance.sense == "max" else 1.0
    best = min(known, key=lambda row: sign * float(row.objective or 0.0), default=None)
    drawn = [("offline", item.offline)]
    drawn += [] if best is None else [(best.algorithm, best.runs[0][0])]
    solution = store.solution_file(item.offline)
    return {
        "name": shown_name(instance),
        "jobs": len(instance.jobs),
        "optimum": item.optimum,
        "seconds": item.offline.get("seconds"),
        "sha256": store.manifest["instances"][item.instance],
        "command": _command_of(item.offline),
        "simulate": f"hindsched simulate {_instance_file(item.instance)} --algorithm NAME --seed 0",
        "check": _check_command(
            item.instance,
            None if solution is None else f"solutions/{solution.name}",
            certificate if has_certificate else None,
        ),
        "runs": [_run(row) for row in item.algorithms],
        "pictures": [
            (name, picture)
            for name, record in drawn
            if (picture := pictures.of(record)) is not None
        ],
    }


def _run(row: AlgorithmRatio) -> JsonObject:
    record = row.runs[0][0]
    reason = row.ratio.reason
    if not row.in_feasible_set and row.ratio.exists:
        reason = OTHER_RULES
    return {
        "label": row.label,
        "starred": row.ratio.starred,
        "objective": row.objective,
        "ratio": row.ratio.interval if row.ratio.exists else Interval(),
        "completed": record.get("jobs_completed"),
        "note": "; ".join([*filter(None, [reason]), *row.errors]),
        "command": _command_of(record) if record["settings"] else None,
    }


class Pictures:
    """Schedules drawn for a page, as many as it may carry."""

    def __init__(self, store: ResultStore) -> None:
        self.store, self.size, self.undrawn = store, 0, 0
        self.instances = {instance.name: instance for instance in store.instances()}

    def of(self, record: Record) -> str | None:
        """The picture of a record's schedule; None where it has none or the page is full."""
        path, instance = self.store.solution_file(record), self.instances[record["instance"]]
        if path is None:
            return None
        if len(instance.jobs) > MOST_JOBS_DRAWN or self.size > MOST_PICTURE_BYTES:
            self.undrawn += 1
            return None
        picture = svg.gantt(read_solution(path, instance))
        self.size += len(picture)
        return picture


def page_environment(package: str) -> Environment:
    """Templates of a package, in which names are text and nothing else, spelled out."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader(package, ".")
    return Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_spelled_out
    )


def _spelled_out(value: object) -> Any:
    """The same with every text as `printable` has it; what is markup already stays."""
    if isinstance(value, str):
        return value if hasattr(value, "__html__") else printable(value)
    if isinstance(value, dict):
        return {_spelled_out(key): _spelled_out(item) for key, item in value.items()}
    return [_spelled_out(item) for item in value] if isinstance(value, list) else value


def show_number(value: object) -> str:
    """Write a number for a table: six digits, absent is a dash."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def show_percent(share: float | None) -> str:
    """Write a share as a percentage; absent is a dash."""
    return "–" if share is None else f"{share:.2%}"


def _instance_file(name: str) -> str:
    """Path of an instance within the folder."""
    return f"instances/{file_name(name)}.json"


def _command_of(record: Record) -> str:
    """The command that does a task again."""
    file = _instance_file(record["instance"])
    settings: Keywords = record["settings"]
    if record["kind"] == OFFLINE:
        given = [(OPTIONS[key], settings[key]) for key in OPTIONS if key in settings]
        return _line("solve", file, *(word for pair in given for word in pair))
    pairs = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    options = ["--algorithm", record["algorithm"], "--seed", record["seed"]]
    return _line("simulate", file, *options, *pairs)


def _check_command(instance: str, solution: str | None, certificate: str | None) -> str | None:
    """The command that checks a schedule and a bound without a solver; None if nothing is there."""
    if solution is None:
        return None
    prices = [] if certificate is None else ["--prices", certificate]
    return _line("verify", _instance_file(instance), solution, *prices)


def _line(*words: object) -> str:
    return shlex.join(["hindsched", *(str(word) for word in words)])
