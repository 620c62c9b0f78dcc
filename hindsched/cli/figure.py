"""``hindsched figure``: a paper's figure as CSV and PNG, and what it says of the paper's claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindsched.cli import settings as opt
from hindsched.cli.output import Json, emit_json, errors, facts, out, say, table
from hindsched.errors import InputError

if TYPE_CHECKING:
    from hindsched.analysis.figures.base import Figure, TraceInput


def figure(
    family: opt.Family,
    number: Annotated[str, typer.Argument(help="Its number in the paper, as 4a or table-2.")],
    quick: opt.Quick = False,
    seeds: Annotated[int | None, opt.option("Seeds; 5, or 1 with --quick.")] = None,
    schemes: Annotated[str | None, opt.option("Only these schemes, as in A,B.")] = None,
    settings: opt.Settings = None,
    from_trace: opt.Trace = None,
    trace_format: opt.TraceFormat = "philly",
    output: opt.Folder = "results/figures",
    as_json: Json = False,
) -> None:
    """Run a paper's experiment; write CSV and PNG, and print a verdict on each of its claims.

    Without matplotlib there is no PNG.
    """
    from hindsched.analysis import plots
    from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale
    from hindsched.analysis.figures.base import figure as find
    from hindsched.analysis.figures.claims import verdicts_on
    from hindsched.analysis.store import folder_to_fill
    from hindsched.analysis.tables import to_csv
    from hindsched.instances.io import write_text

    found = find(family, number)
    if seeds is not None and seeds < 1:
        raise InputError("seeds", seeds, "must be at least 1")
    chosen = {name: _read(text) for name, text in opt.parse_settings(settings).items()}
    opt.refuse_options(chosen, "family", "preset", "seed", "table")
    folder = str(output)
    csv, png = (Path(folder) / f"{family}-{number}.{kind}" for kind in ("csv", "png"))
    opt.check_targets([from_trace], csv=str(csv), png=str(png))
    trace = _trace(found, family, from_trace, trace_format, chosen.pop("part", None))
    only = None if schemes is None else tuple(schemes.split(","))
    count = seeds or (QUICK_SEEDS if quick else FULL_SEEDS)
    scale = FigureScale(quick, count, chosen, trace, only)
    with (
        folder_to_fill(folder),
        errors.console.status(f"{family}, figure {number}") as status,
    ):
        frame = found.run(scale, lambda text: status.update(text))
    say(f"{family}, figure {number}: {found.title}")
    write_text(to_csv(frame), csv)
    has_picture = plots.has_matplotlib()
    if has_picture:
        plots.save(found.picture(frame), png)
    else:
        say(plots.NO_PICTURES)
    summary = {
        "family": family, "figure": number, "title": found.title, "claim": found.claim,
        "quick": quick, "seeds": scale.seeds, "settings": chosen or None, "trace": from_trace,
        "rows": len(frame), "csv": str(csv), "png": str(png) if has_picture else None,
    }  # fmt: skip
    verdicts = verdicts_on(family, number, frame, at_scale=scale.is_papers)
    if as_json:
        emit_json({**summary, "settings": chosen, "verdicts": verdicts})
        return
    out.print(facts(summary))
    if verdicts:
        columns = ("claim", "the paper", "measured", "rule", "verdict")
        out.print(table("", columns, [[row[name] for name in columns] for row in verdicts]))


def _trace(
    found: Figure, family: str, path: str | None, trace_format: str | None, part: str | None
) -> TraceInput | None:
    """Read the trace that a figure is to run on; `InputError` if the paper runs it on none."""
    from hindsched.analysis.figures.base import TraceInput, figures
    from hindsched.instances.traces.table import load_trace

    if path is None:
        return None
    fit = [name for name, item in figures(family).items() if item.traced]
    if not found.traced:
        rule = f"is for {family}'s figures {', '.join(fit)}"
        rule = rule if fit else f"{family} has no figures from a trace"
        raise InputError("from-trace", path, rule)
    return TraceInput(load_trace(path, trace_format or "philly", part=part), path)


def _read(text: str) -> Any:
    """A setting's value: JSON where it is JSON, else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
