"""``hindsched figure``: a paper's figure as CSV and PNG."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, console, say, show_rows
from hindsched.errors import InputError


def figure(
    family: opt.Family,
    number: Annotated[str, opt.argument("Its number in the paper, as 4a or table-2.")],
    quick: Annotated[bool, opt.option("A small version, within seconds.", "--quick")] = False,
    schemes: Annotated[str | None, opt.option("Only these schemes, as in A,B.")] = None,
    settings: opt.Settings = None,
    from_trace: opt.Trace = None,
    seeds: Annotated[int | None, opt.option("Instances a setting; 5, with --quick 1.")] = None,
    output: opt.Folder = "results/figures",
    as_json: opt.Json = False,
) -> None:
    """Run a paper's experiment; write CSV and PNG, and print the means that are drawn.

    What such tables say of the paper's claims: docs/results/claims.md. Without matplotlib there is
    no PNG. A trace is one in Philly's format.
    """
    from hindsched.analysis import plot
    from hindsched.analysis.figures import base
    from hindsched.analysis.tables import to_csv
    from hindsched.instances.io import write_text

    experiment, trace = base.figure(family, number), None
    texts = opt.parse_settings(settings, "family", "preset", "seed", "table")
    chosen = {name: _setting_value(text) for name, text in texts.items()}
    csv, png = (Path(str(output)) / f"{family}-{number}.{kind}" for kind in ("csv", "png"))
    opt.check_targets([from_trace], csv=str(csv), png=str(png))
    if from_trace is not None:
        fit = [name for name, item in base.figures(family).items() if item.traced]
        if not experiment.traced:
            none = f"{family} has no figures from a trace"
            rule = f"is for {family}'s figures {', '.join(fit)}" if fit else none
            raise InputError("from-trace", from_trace, rule)
        table = hs.load_trace(from_trace, "philly", part=chosen.pop("part", None))
        trace = base.TraceInput(table, from_trace)
    only = None if schemes is None else tuple(re.split(r",(?! )", schemes))  # names may have ", "
    if seeds is None:
        seeds = base.QUICK_SEEDS if quick else base.FULL_SEEDS
    elif seeds < 1:
        raise InputError("seeds", seeds, "must be at least 1")
    scale = base.FigureScale(quick, seeds, chosen, trace, only)
    with console("stderr").status(f"{family}, figure {number}") as status:
        frame = experiment.run(scale, lambda text: status.update(text))
    say(f"{family}, figure {number}: {experiment.title}")
    write_text(to_csv(frame), csv)
    has_picture = plot.has_matplotlib()
    if has_picture:
        plot.save(experiment.picture(frame, scale), png)
    else:
        say(plot.NO_PICTURES)
    summary = {
        "family": family, "figure": number, "title": experiment.title,
        "quick": quick, "seeds": seeds, "settings": chosen or None, "trace": from_trace,
        "rows": len(frame), "csv": str(csv), "png": str(png) if has_picture else None,
    }  # fmt: skip
    if answer(as_json, summary, {"settings": chosen}):
        show_rows(experiment.plot.y_words, base.curves(frame, experiment.plot))


def _setting_value(text: str) -> Any:
    """A setting's value: JSON where it is JSON, else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
