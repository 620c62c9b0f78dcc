"""``hindsched figure``: a paper's figure as CSV and PNG, and what it says of the paper's claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindsched.cli.output import Json, emit_json, errors, facts, out, say, table
from hindsched.cli.settings import (
    Family,
    Settings,
    TraceFormat,
    TracePart,
    check_targets,
    parse_settings,
    refuse_options,
)
from hindsched.errors import InputError

if TYPE_CHECKING:
    from hindsched.analysis.figures.base import Figure, TraceInput


def figure(
    family: Family,
    number: Annotated[
        str,
        typer.Argument(help="The paper's number of the figure, as in 4a or table-2."),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, within seconds.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Seeds; 5, or 1 with --quick.")] = None,
    schemes: Annotated[
        str | None, typer.Option(help="Only these of the figure's schemes, as in A,B.")
    ] = None,
    settings: Settings = None,
    from_trace: Annotated[
        str | None, typer.Option("--from-trace", help="Take the jobs from this cluster trace.")
    ] = None,
    trace_format: TraceFormat = "philly",
    trace_part: TracePart = None,
    output: Annotated[str, typer.Option("-o", "--output", help="Folder.")] = "results/figures",
    as_json: Json = False,
) -> None:
    """Run a paper's experiment; write CSV and PNG, and print a verdict on each of its claims.

    Without matplotlib there is no PNG.
    """
    from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale
    from hindsched.analysis.figures.base import figure as find
    from hindsched.analysis.figures.claims import verdicts_on
    from hindsched.analysis.plots.style import NO_PICTURES, has_matplotlib, save
    from hindsched.analysis.spreadsheets import for_spreadsheets
    from hindsched.analysis.store import folder_to_fill
    from hindsched.instances.io import write_text

    found = find(family, number)
    if seeds is not None and seeds < 1:
        raise InputError("seeds", seeds, "must be at least 1")
    chosen = {name: _read(text) for name, text in parse_settings(settings).items()}
    refuse_options(chosen, "family", "preset", "seed", "table")
    stem = Path(output) / f"{family}-{number}"
    csv, png = stem.with_suffix(".csv"), stem.with_suffix(".png")
    check_targets([from_trace], csv=str(csv), png=str(png))
    trace = _trace(family, found, from_trace, trace_format, trace_part)
    count = seeds or (QUICK_SEEDS if quick else FULL_SEEDS)
    scale = FigureScale(
        quick=quick,
        seeds=count,
        settings=chosen,
        trace=trace,
        schemes=None if schemes is None else tuple(schemes.split(",")),
    )
    with (
        folder_to_fill(output),
        errors.console.status(f"{family}, figure {number}") as status,
    ):
        frame = found.run(scale, lambda text: status.update(text))
    say(f"{family}, figure {number}: {found.title}")
    write_text(for_spreadsheets(frame).to_csv(index=False), csv)
    if has_matplotlib():
        save(found.picture(frame), png)
    else:
        say(NO_PICTURES)
    summary = {
        "family": family,
        "figure": number,
        "title": found.title,
        "claim": found.claim,
        "quick": quick,
        "seeds": count,
        "settings": json.dumps(chosen) if chosen else None,
        "trace": from_trace,
        "rows": len(frame),
        "csv": str(csv),
        "png": str(png) if has_matplotlib() else None,
    }
    verdicts = [] if schemes is not None else verdicts_on(family, number, frame)
    if as_json:
        emit_json({**summary, "settings": chosen, "verdicts": verdicts})
        return
    out.print(facts(summary))
    if verdicts:
        columns = ("claim", "the paper", "measured", "rule", "verdict")
        out.print(table("", columns, [[row[name] for name in columns] for row in verdicts]))


def _read(text: str) -> Any:
    """A setting's value: JSON where it is JSON, else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _trace(
    family: str, found: Figure, path: str | None, trace_format: str | None, part: str | None
) -> TraceInput | None:
    """Read the trace that a figure is to run on; `InputError` if the paper runs it on none."""
    from hindsched.analysis.figures.base import TraceInput, figures
    from hindsched.instances.traces.table import load_trace

    if path is None:
        if part is not None:
            raise InputError("trace-part", part, "is only for --from-trace")
        return None
    if not found.traced:
        fit = [name for name, item in figures(family).items() if item.traced]
        rule = f"{family} has no figures from a trace" if not fit else None
        raise InputError("from-trace", path, rule or f"is for {family}'s figures {', '.join(fit)}")
    if trace_format is None:
        raise InputError("trace-format", "(absent)", "is required with --from-trace")
    return TraceInput(load_trace(path, trace_format, part=part), path)
