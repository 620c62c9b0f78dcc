"""``hindsched figure``: a paper's figure as CSV and PNG, and what it says of the paper's claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindsched.cli import settings as opt
from hindsched.cli.output import Json, emit_json, errors, facts, out, rows_table, say
from hindsched.errors import InputError

if TYPE_CHECKING:
    from hindsched.analysis.figures.base import Figure, TraceInput

VERDICT = ("claim", "the paper", "measured", "rule", "verdict")


def figure(
    family: opt.Family,
    number: Annotated[str, typer.Argument(help="Its number in the paper, as 4a or table-2.")],
    quick: Annotated[bool, opt.option("A small version, within seconds.", "--quick")] = False,
    schemes: Annotated[str | None, opt.option("Only these schemes, as in A,B.")] = None,
    settings: opt.Settings = None,
    from_trace: opt.Trace = None,
    output: opt.Folder = "results/figures",
    as_json: Json = False,
) -> None:
    """Run a paper's experiment; write CSV and PNG, and print a verdict on each of its claims.

    Without matplotlib there is no PNG. A trace is one in Philly's format.
    """
    from hindsched.analysis import plots
    from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale
    from hindsched.analysis.figures.base import figure as find
    from hindsched.analysis.figures.claims import claims_of, verdicts_on
    from hindsched.analysis.tables import to_csv
    from hindsched.instances.io import write_text

    found = find(family, number)
    given = opt.parse_settings(settings, "family", "preset", "seed", "table")
    chosen = {name: _read(text) for name, text in given.items()}
    csv, png = (Path(str(output)) / f"{family}-{number}.{kind}" for kind in ("csv", "png"))
    opt.check_targets([from_trace], csv=str(csv), png=str(png))
    trace = _trace(found, family, from_trace, chosen.pop("part", None))
    only = None if schemes is None else tuple(schemes.split(","))
    seeds = QUICK_SEEDS if quick else FULL_SEEDS
    scale = FigureScale(quick, seeds, chosen, trace, only)
    with errors.console.status(f"{family}, figure {number}") as status:
        frame = found.run(scale, lambda text: status.update(text))
    say(f"{family}, figure {number}: {found.title}")
    write_text(to_csv(frame), csv)
    has_picture = plots.has_matplotlib()
    if has_picture:
        plots.save(found.picture(frame), png)
    else:
        say(plots.NO_PICTURES)
    summary = {
        "family": family, "figure": number, "title": found.title,
        "claim": "; ".join(claim.words for claim in claims_of(family, number)),
        "quick": quick, "seeds": seeds, "settings": chosen or None, "trace": from_trace,
        "rows": len(frame), "csv": str(csv), "png": str(png) if has_picture else None,
    }  # fmt: skip
    verdicts = verdicts_on(family, number, frame, at_scale=scale.is_papers)
    if as_json:
        emit_json({**summary, "settings": chosen, "verdicts": verdicts})
        return
    out.print(facts(summary))
    if verdicts:
        out.print(rows_table("", verdicts, VERDICT))


def _trace(found: Figure, family: str, path: str | None, part: str | None) -> TraceInput | None:
    """Read the trace that a figure is to run on; `InputError` if the paper runs it on none."""
    from hindsched.analysis.figures.base import TraceInput, figures
    from hindsched.instances.traces.table import load_trace

    if path is None:
        return None
    if not found.traced:
        fit = [name for name, item in figures(family).items() if item.traced]
        rule = f"is for {family}'s figures {', '.join(fit)}"
        rule = rule if fit else f"{family} has no figures from a trace"
        raise InputError("from-trace", path, rule)
    return TraceInput(load_trace(path, "philly", part=part), path)


def _read(text: str) -> Any:
    """A setting's value: JSON where it is JSON, else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
