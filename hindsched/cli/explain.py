"""``hindsched explain``: the gap, term by term."""

from __future__ import annotations

from typing import Annotated

import hindsched as hs
from hindsched.analysis.tables import cell
from hindsched.cli import settings as opt
from hindsched.cli.output import answer, show_rows, tell

TERMS_SHOWN = 15


def explain(
    file: opt.File,
    solution: Annotated[str, opt.argument("Solution file.")],
    prices: Annotated[str, opt.option("Certificate file of a bound.")],
    as_json: opt.Json = False,
) -> None:
    """Say which jobs and which (server, slot) hold the gap between a solution and a bound."""
    instance = opt.load_instance(file)  # what is wrong is said before a solver is loaded
    decided = hs.read_solution(solution, instance)
    explanation = hs.explain(decided, hs.read_certificate(prices, instance))
    summary = explanation.to_dict()
    tables = {key: rows for key, rows in summary.items() if isinstance(rows, list)}
    if answer(as_json, summary, hidden=(*tables, "note"), instance=instance):
        if summary["note"] is not None:
            left = abs(explanation.proven - explanation.objective)
            tell(f"Of the whole certificate the gap is {cell(left)}: {summary['note']}.")
        for key, rows in tables.items():
            if rows:
                show_rows(f"{key} ({len(rows)})", rows[:TERMS_SHOWN], list(rows[0]))
