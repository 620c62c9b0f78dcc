"""One self-contained HTML page from a folder of results: verdict, tables, pictures, commands.

The pictures are inline SVG, which needs no plotting library and no script.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis.comparison import Comparison, InstanceComparison
from hindsched.analysis.interval import Interval
from hindsched.analysis.plots import PALETTE
from hindsched.analysis.ratio import INVERSE_NOTE, STAR_NOTE, AlgorithmRatio
from hindsched.analysis.statistics import Verdict, profile_rows
from hindsched.analysis.store import REPORT, ResultStore
from hindsched.analysis.tables import job_spans
from hindsched.analysis.tasks import OFFLINE, Record, file_name
from hindsched.instances.catalogue import shown_name
from hindsched.instances.io import write_text
from hindsched.json_types import JsonObject, Keywords
from hindsched.printable import printable
from hindsched.solutions.base import Solution, read_solution

if TYPE_CHECKING:
    from jinja2 import Environment

PROFILE_POINTS = 25
OTHER_RULES = "other rules"
MOST_JOBS_DRAWN = 60
LEFT, WIDTH, LINE = 190, 560, 16  # pixels for names, for the picture, of a line of text
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
    environment.filters["number"] = show_number
    tried = {record["task"] for record in comparison.records}
    families = [_family(store, comparison, found) for found in comparison.verdicts()]
    style = (files("hindsched.analysis.report") / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        title=store.folder.name,
        families=families,
        style=style,
        errors=comparison.errors,
        missing=[task.key for task in store.tasks if task.key not in tried],
        manifest=store.manifest,
        tasks=len(store.tasks),
        note=INVERSE_NOTE,
        star_note=STAR_NOTE if any(one.starred for one in comparison.summaries) else None,
    )


def _family(store: ResultStore, comparison: Comparison, found: Verdict) -> JsonObject:
    """What the page says of a family."""
    items = [item for item in comparison.instances if item.family == found.family]
    ratios = comparison.by_family.get(found.family, {})
    points: dict[str, list[tuple[float, float]]] = {}
    for point in profile_rows(ratios, PROFILE_POINTS):
        points.setdefault(point["algorithm"], []).append((point["factor"], point["share"]))
    return {
        "word": found.family,
        "verdict": found,
        "proven": f"{sum(item.is_proven for item in found.optima)} of {len(found.optima)}",
        "algorithms": [one for one in comparison.summaries if one.family == found.family],
        "intervals": draw_intervals(
            {name: [row.ratio.interval for row in own] for name, own in ratios.items()}
        ),
        "profiles": draw_profiles(points),
        "instances": [_instance(store, item) for item in items],
    }


def _instance(store: ResultStore, item: InstanceComparison) -> JsonObject:
    """What the page says of an instance: optimum, runs, commands, its schedule."""
    instance = next(one for one in store.instances() if one.name == item.instance)
    path, picture = store.solution_file(item.offline), None
    if path is not None and len(instance.jobs) <= MOST_JOBS_DRAWN:
        picture = draw_gantt(read_solution(path, instance))
    return {
        "name": shown_name(instance),
        "jobs": len(instance.jobs),
        "optimum": item.optimum,
        "seconds": item.offline.get("seconds"),
        "sha256": store.manifest["instances"][item.instance],
        "command": _command_of(item.offline),
        "simulate": f"hindsched simulate {_instance_file(item.instance)} --algorithm NAME --seed 0",
        "check": _check_command(store, item),
        "runs": [_run(row) for row in item.algorithms],
        "schedule": picture,
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
        "ratio": str(row.ratio.interval),
        "completed": record.get("jobs_completed"),
        "note": "; ".join([*filter(None, [reason]), *row.errors]),
        "command": _command_of(record) if record["settings"] else None,
    }


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


def _check_command(store: ResultStore, item: InstanceComparison) -> str | None:
    """The command that checks a schedule and a bound without a solver; None if nothing is there."""
    solution = store.solution_file(item.offline)
    if solution is None:
        return None
    certificate = f"certificates/{file_name(item.instance)}.json"
    prices = ["--prices", certificate] if (store.folder / certificate).is_file() else []
    return _line("verify", _instance_file(item.instance), f"solutions/{solution.name}", *prices)


def _line(*words: object) -> str:
    return shlex.join(["hindsched", *(str(word) for word in words)])


def draw_intervals(rows: Mapping[str, Sequence[Interval]]) -> str:
    """A line an algorithm; on it each instance's ratio from lower to upper end."""
    ends = [end for own in rows.values() for i in own for end in (i.lower, i.upper)]
    largest = max([1.01, *(end for end in ends if end is not None and math.isfinite(end))])
    least = min([1.0, *(end for end in ends if end is not None and end > 0)])

    def place(value: float) -> float:
        return LEFT + WIDTH * math.log(max(value, least) / least) / math.log(largest / least)

    parts = []
    for at, (name, own) in enumerate(rows.items()):
        y = at * LINE * 1.4 + LINE
        parts.append(_text(LEFT - 8, y + 4, name, "end"))
        for index, interval in enumerate(own):
            if interval.lower is None or not math.isfinite(interval.lower):
                continue
            is_open = interval.upper is None or not math.isfinite(interval.upper)
            upper = interval.lower if is_open else interval.upper
            assert upper is not None
            where = y + 6 * (index / max(1, len(own) - 1) - 0.5)
            colour = PALETTE[at % 8]  # as in the profiles
            fill = "none" if is_open else colour
            first, last = place(interval.lower), place(upper)
            parts.append(
                f'<path d="M{first:.1f} {where:.1f}H{last:.1f}" stroke="{colour}"/>'
                f'<circle cx="{last:.1f}" cy="{where:.1f}" r="2" fill="{fill}"'
                f' stroke="{colour}"/>'
            )
    height = len(rows) * LINE * 1.4 + LINE
    parts.append(f'<path d="M{place(1.0):.1f} 0V{height:.0f}" class="axis"/>')
    ticks = dict.fromkeys([1.0, math.sqrt(least * largest), largest])
    parts += [_text(place(tick), height + LINE, f"{tick:.3g}", "middle") for tick in ticks]
    return _picture(LEFT + WIDTH + 30, height + 1.5 * LINE, parts)


def draw_profiles(lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Performance profiles: share of the instances by the factor behind the best of all."""
    height, top = 220, 6
    largest = max([1.01, *(factor for points in lines.values() for factor, _ in points)])
    parts = [f'<path d="M{LEFT} {top}V{height}H{LEFT + WIDTH}" class="axis" fill="none"/>']
    for at, (name, points) in enumerate(lines.items()):
        path = []
        for factor, share in points:
            x = LEFT + WIDTH * math.log(factor) / math.log(largest)
            path.append(f"{x:.0f} {top + (height - top) * (1 - share):.0f}")
        style = f'stroke="{PALETTE[at % 8]}" stroke-dasharray="{"5 3" if at >= 8 else "none"}"'
        parts.append(f'<path d="M{"L".join(path)}" fill="none" {style}/>')
        y = top + LINE * (at + 0.5)
        parts.append(f'<path d="M2 {y}h18" {style}/>{_text(26, y + 4, name)}')
    bottom = max(height, LINE * len(lines) + top)
    for share in (0, 1):
        parts.append(_text(LEFT - 5, top + (height - top) * (1 - share) + 4, f"{share:.0%}", "end"))
    for factor in (1.0, largest):
        x = LEFT + WIDTH * math.log(factor) / math.log(largest)
        parts.append(_text(x, height + LINE, f"{factor:.3g} times", "middle"))
    return _picture(LEFT + WIDTH + 40, bottom + 1.5 * LINE, parts)


def draw_gantt(solution: Solution) -> str:
    """When each job runs: a bar a span, the darker the more workers; a tick at its arrival."""
    jobs, spans = solution.job_rows(), job_spans(solution)
    last = max([1, solution.instance.horizon, *(s.last for own in spans.values() for s in own)])
    most = max((s.workers for own in spans.values() for s in own), default=1.0)
    line, step = 9, WIDTH / last
    parts = []
    for at, row in enumerate(jobs):
        y = at * line + 1
        arrival = LEFT + step * (row["arrival"] - 1)
        parts.append(f'<path d="M{arrival:.0f} {y}v{line - 2}" class="axis"/>')
        for span in spans.get(row["job"], []):
            x, width = LEFT + step * (span.first - 1), step * (span.last - span.first + 1)
            parts.append(
                f'<path d="M{x:.0f} {y + 3}h{max(width, 0.5):.1f}" stroke="{PALETTE[0]}"'
                f' stroke-width="7" opacity="{0.3 + 0.7 * span.workers / most:.2f}"/>'
            )
        if len(jobs) <= 30:
            parts.append(_text(LEFT - 5, y + 7, str(row["job"]), "end"))
    parts.append(_text(LEFT + WIDTH, len(jobs) * line + LINE, f"slot {last}", "end"))
    return _picture(LEFT + WIDTH + 10, len(jobs) * line + 1.5 * LINE, parts)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    shown = escape(printable(text if len(text) <= 30 else f"{text[:28]}.."))
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{shown}</text>'


def _picture(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg {size} role="img">{"".join(parts)}</svg>'
