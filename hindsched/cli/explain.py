"""``hindsched explain``: the gap, term by term."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, facts, out, say, table
from hindsched.cli.settings import File, check_targets, load

TERMS_SHOWN = 15


def explain(
    file: File,
    solution: Annotated[str, typer.Argument(help="Solution file.")],
    prices: Annotated[str, typer.Option(help="Certificate file of a bound.")],
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Heat map of the gap as PNG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which jobs and which (server, slot) hold the gap between a solution and a bound."""
    from hindsched.instances.catalogue import shown_name
    from hindsched.instances.io import read_json
    from hindsched.solutions.base import read_solution
    from hindsched.solvers.certificates.explain import explain as explain_gap
    from hindsched.solvers.certificates.file import verify_certificate

    instance = load(file)
    check_targets([file, solution, prices], output=output)
    if output is not None:
        from hindsched.analysis.plots.style import check_matplotlib

        check_matplotlib()
    decided = read_solution(solution, instance)
    certificate = verify_certificate(instance, read_json(prices), prices).certificate
    explanation = explain_gap(decided, certificate)
    if output is not None:
        from hindsched.analysis.plots.gaps import plot_gap
        from hindsched.analysis.plots.style import save

        save(plot_gap(explanation).figure, output)
    summary = explanation.to_dict()
    if as_json:
        emit_json(summary)
        return
    summary.pop("note")
    shown = {key: value for key, value in summary.items() if not isinstance(value, list)}
    out.print(facts({**shown, "instance": shown_name(instance)}))
    for key, rows in summary.items():
        if isinstance(rows, list) and rows:
            columns = list(rows[0])
            cells = [[row.get(column) for column in columns] for row in rows[:TERMS_SHOWN]]
            out.print(table(f"{key} ({len(rows)})", columns, cells))
    if explanation.note is not None:
        say(explanation.note)
    if output is not None:
        say(f"heat map: {output}")
