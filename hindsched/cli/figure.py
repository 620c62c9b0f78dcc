"""``hindsched figure``: a paper's figure as CSV and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, errors, facts, out, say
from hindsched.errors import InputError


def figure(
    family: Annotated[str, typer.Argument(help="The family's word.")],
    number: Annotated[str, typer.Argument(help="The paper's number of the figure.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, within seconds.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Seeds; 5, or 1 with --quick.")] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="Folder.")] = "results/figures",
    as_json: Json = False,
) -> None:
    """Run a paper's experiment; write its table as CSV and its drawing as PNG."""
    from hindsched.analysis.figures.base import FULL_SEEDS, QUICK_SEEDS, FigureScale
    from hindsched.analysis.figures.base import figure as find
    from hindsched.analysis.plots.style import save
    from hindsched.analysis.spreadsheets import for_spreadsheets
    from hindsched.analysis.store import check_folder
    from hindsched.instances.io import write_text

    found = find(family, number)
    if seeds is not None and seeds < 1:
        raise InputError("seeds", seeds, "must be at least 1")
    folder: Path = check_folder(output)
    count = seeds or (QUICK_SEEDS if quick else FULL_SEEDS)
    say(f"{family}, figure {number}: {found.title}")
    with errors.console.status("starting") as status:
        frame = found.run(FigureScale(quick=quick, seeds=count), lambda text: status.update(text))
    stem = folder / f"{family}-{number}"
    csv, png = stem.with_suffix(".csv"), stem.with_suffix(".png")
    write_text(for_spreadsheets(frame).to_csv(index=False), csv)
    save(found.draw(frame), png)
    summary = {
        "family": family,
        "figure": number,
        "title": found.title,
        "claim": found.claim,
        "quick": quick,
        "seeds": count,
        "rows": len(frame),
        "csv": str(csv),
        "png": str(png),
    }
    if as_json:
        emit_json(summary)
    else:
        out.print(facts(summary))
