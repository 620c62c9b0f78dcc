"""One self-contained HTML page from a folder of results: verdict, tables, pictures, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis import plot
from hindsched.analysis.bounds import ratio_text
from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.ratio import INVERSE_NOTE, STAR_NOTE, AlgorithmRatio
from hindsched.analysis.statistics import FamilyVerdict
from hindsched.analysis.store import REPORT, ResultStore
from hindsched.analysis.tables import cell
from hindsched.analysis.tasks import OFFLINE, Record, file_name
from hindsched.instances.catalogue import shown_name
from hindsched.instances.io import write_text
from hindsched.json_types import JsonObject, Keywords
from hindsched.printable import printable
from hindsched.solutions.base import read_solution

if TYPE_CHECKING:
    from jinja2 import Environment

OTHER_RULES = "other rules"
NOT_DRAWN = (
    r"<metadata>.*?</metadata>", r' xmlns(:\w+)?="[^"]*"', r'(?<=<g) id="[^"]*"',
    r"font-family: [^;\"]*;", r' transform="rotate\(-0 [^"]*"',
)  # fmt: skip
"""What a picture on a page does without: its fonts are the page's."""
OPTIONS = {"method": "--method", "solver": "--solver", "time_limit": "--time-limit", "gap": "--gap"}


def write_report(store: ResultStore, comparison: Comparison | None = None) -> Path:
    """Write ``report.html`` of a folder of results from what it holds, and return its path."""
    path = store.folder / REPORT
    write_text(render_report(store, comparison), path)
    return path


def render_report(store: ResultStore, comparison: Comparison | None = None) -> str:
    """Make the page as text."""
    comparison = comparison or Comparison(store.records())
    environment = page_environment("hindsched.analysis.report")
    environment.filters |= {
        "number": cell, "command": _command_of, "file": _file_of, "shown": shown_name,
        "note": _note, "ratio": ratio_text, "anchor": file_name,
    }  # fmt: skip
    tried = {record["task"] for record in comparison.records}
    families = [_family(store, comparison, verdict) for verdict in comparison.verdicts()]
    return environment.get_template("page.html").render(
        title=store.folder.name,
        families=families,
        style=page_style(),
        errors=comparison.errors,
        missing=[task.key for task in store.tasks if task.key not in tried],
        manifest=store.manifest,
        tasks=len(store.tasks),
        note=INVERSE_NOTE,
        star_note=STAR_NOTE if any(summary.starred for summary in comparison.summaries) else None,
    )


def page_style() -> str:
    """What all pages look like."""
    return (files("hindsched.analysis.report") / "page.css").read_text(encoding="utf-8")


def _family(store: ResultStore, comparison: Comparison, verdict: FamilyVerdict) -> JsonObject:
    """What the page says of a family."""
    items = [item for item in comparison.instances if item.family == verdict.family]
    known = {instance.name: instance for instance in store.instances}
    return {
        "verdict": verdict,
        "algorithms": [s for s in comparison.summaries if s.family == verdict.family],
        "standings": comparison.standing_rows(verdict.family) if len(items) > 1 else [],
        "picture": _picture(comparison, verdict.family),
        "worst": _worst(store, verdict, items),
        "instances": [(item, known[item.instance], _check_command(store, item)) for item in items],
    }


def _note(row: AlgorithmRatio) -> str:
    others = not row.in_feasible_set and row.ratio.exists
    return "; ".join([*filter(None, [OTHER_RULES if others else row.ratio.reason]), *row.errors])


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


def _file_of(record: Record) -> str:
    return f"instances/{file_name(record['instance'])}.json"


def _command_of(record: Record) -> str:
    """The command that does a task again."""
    file = _file_of(record)
    settings: Keywords = record["settings"]
    if record["kind"] == OFFLINE:
        given = [(OPTIONS[key], settings[key]) for key in OPTIONS if key in settings]
        return _line("solve", file, *(word for pair in given for word in pair))
    pairs = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    options = ["--algorithm", record["algorithm"], "--seed", record["seed"]]
    return _line("simulate", file, *options, *pairs)


def _check_command(store: ResultStore, item: InstanceComparison) -> str | None:
    """The command that checks a schedule and a bound without a solver; None if nothing is there."""
    solution = store.solution_file(item.offline)
    if solution is None:
        return None
    certificate = f"certificates/{file_name(item.instance)}.json"
    prices = ["--prices", certificate] if (store.folder / certificate).is_file() else []
    return _line("verify", _file_of(item.offline), f"solutions/{solution.name}", *prices)


def _line(*words: object) -> str:
    return shlex.join(["hindsched", *(str(word) for word in words)])


def _picture(comparison: Comparison, family: str) -> str | None:
    """A picture of a family's ratios; none without matplotlib."""
    if not plot.has_matplotlib():
        return None
    frame = comparison.to_frame()
    named = frame.assign(instance=frame["instance"].map(file_name))
    return svg_markup(plot.ratios(named, family=family))


def _worst(
    store: ResultStore, verdict: FamilyVerdict, items: Sequence[InstanceComparison]
) -> JsonObject | None:
    """The paper's algorithm, or else the best, where its ratio is worst: drawn above the optimum.

    One axis of slots and one scale of colours serve both pictures.
    """
    chosen = verdict.paper or verdict.best
    if chosen is None or not plot.has_matplotlib():
        return None
    solved = [item for item in items if store.solution_file(item.offline) is not None]
    every = [(row, item) for item in solved for row in item.algorithms]
    rows = [
        (row, item)
        for row, item in every
        if row.algorithm == chosen.algorithm and row.ratio.interval.lower is not None
    ]
    if not rows:
        return None
    row, item = max(rows, key=lambda each: each[0].ratio.interval.lower or 0.0)
    files = [store.solution_file(record) for record in (row.runs[0][0], item.offline)]
    (instance,) = (each for each in store.instances if each.name == item.instance)
    schedules = [read_solution(file, instance) for file in files if file is not None]
    last = max([row["completion"] or 1 for each in schedules for row in each.job_rows()], default=1)
    axes = [plot.gantt(each) for each in schedules]
    for each, name in zip(axes, (chosen.label, "the best schedule known"), strict=False):
        each.set_title(f"{name}: {each.get_title(loc='left').rpartition(': ')[2]}", loc="left")
        each.set_xlim(0.5, max(last, each.get_xlim()[1] - 0.5) + 0.5)
    return {
        "algorithm": chosen.label, "instance": file_name(item.instance),
        "shown": shown_name(instance), "ratio": row.ratio.interval,
        "pictures": [svg_markup(each) for each in axes],
    }  # fmt: skip


def svg_markup(axes: Any) -> str:
    """A picture as a part of a page, which names no address and has only what is drawn."""
    text = plot.render(axes.figure, "svg", "none").decode()
    text = text[text.index("<svg") :]
    for pattern in NOT_DRAWN:
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    text = re.sub(r'(?<= )(d|x|y|width|height)="[^"]*"', _in_tenths, text)
    return re.sub(r"\s+", " ", text).replace("> <", "><")


def _in_tenths(attribute: re.Match[str]) -> str:
    """Its lengths to a tenth of a point."""
    return re.sub(r"-?\d+\.\d+", lambda each: f"{float(each[0]):.1f}", attribute[0])
