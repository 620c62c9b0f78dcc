"""``hindsched explain``: the gap, term by term."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli import settings as opt
from hindsched.cli.output import Json, emit_json, facts, out, rows_table, say

TERMS_SHOWN = 15


def explain(
    file: opt.File,
    solution: Annotated[str, typer.Argument(help="Solution file.")],
    prices: Annotated[str, opt.option("Certificate file of a bound.")],
    as_json: Json = False,
) -> None:
    """Say which jobs and which (server, slot) hold the gap between a solution and a bound."""
    instance = opt.load(file)  # what is wrong is said before a solver is loaded
    from hindsched.instances.catalogue import shown_name
    from hindsched.instances.io import read_json
    from hindsched.solutions.base import read_solution
    from hindsched.solvers.certificates.explain import explain as explain_gap
    from hindsched.solvers.certificates.file import verify_certificate

    decided = read_solution(solution, instance)
    certificate = verify_certificate(instance, read_json(prices), prices).certificate
    explanation = explain_gap(decided, certificate)
    summary = explanation.to_dict()
    if as_json:
        emit_json(summary)
        return
    note = summary.pop("note")
    shown = {key: value for key, value in summary.items() if not isinstance(value, list)}
    out.print(facts({**shown, "instance": shown_name(instance)}))
    for key, rows in summary.items():
        if isinstance(rows, list) and rows:
            out.print(rows_table(f"{key} ({len(rows)})", rows[:TERMS_SHOWN], list(rows[0])))
    if note is not None:
        say(str(note))
