"""``hindsched score``: a certified score for a scheduler that nobody trusts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hindsched.cli.output import Json, emit_json, out, rows_table, say
from hindsched.cli.settings import Folder, option
from hindsched.errors import InputError
from hindsched.instances.io import write_text


def score(
    candidate: Annotated[
        list[str], typer.Argument(help="FILE.py, FILE.py:CLASS, a command, a name; or folders.")
    ],
    family: Annotated[str | None, option("Draw instances of this family.")] = None,
    suite: Annotated[str | None, option("FAMILY/SUITE in place of seeds.")] = None,
    seeds_file: Annotated[str | None, option("Secrets, one a line; drawn if absent.")] = None,
    preset: Annotated[str, option("Preset of the family's generator.")] = "small",
    step_limit: Annotated[float, option("Seconds for each decision.")] = 10.0,
    run_limit: Annotated[float, option("Seconds for each run.")] = 120.0,
    memory: Annotated[float, option("GB of memory of the candidate.")] = 2.0,
    sandbox: Annotated[str, option("auto, bwrap or none.")] = "auto",
    board: Annotated[bool, option("Rank scored folders; write a page.", "--board")] = False,
    output: Folder = None,
    as_json: Json = False,
) -> int:
    """Score a scheduler that nobody trusts, on instances that it cannot know."""
    from hindsched.analysis.score import judge, referee

    if board:
        rows, title = judge.board(candidate), "Candidates, best first"
        if output is not None:
            write_text(referee.page(title, {"Board": rows}), output)
        if as_json:
            emit_json({"candidates": rows})
        else:
            _show(title, rows, "rank", "candidate", "score", "interval", "tie", "sandbox", "made")
        return 0
    if len(candidate) > 1:
        raise InputError("candidate", candidate[1], "must be one: quote a command with arguments")
    found = referee.score(
        candidate[0], family=family, suite=suite, seeds=seeds_file, preset=preset,
        step_limit=step_limit, run_limit=run_limit, memory=int(memory * 2**30), sandbox=sandbox,
        out=output, say=say,
    )  # fmt: skip
    if as_json:
        emit_json(found.data)
        return 0
    _show("Hidden instances", found.data["instances"], "instance", "score", "status", "reason")
    ladder = "The ladder of known algorithms", found.data["ladder"]
    _show(*ladder, "algorithm", "score", "better", "worse", "ties")
    out.print(f"score {found.combined_score!r}, {found.data['sandbox']}", markup=False)
    if output is not None:
        say(f"page {output}/score.html; for the author {output}/feedback.txt, nothing else")
    return 0


def _show(title: str, rows: list[dict[str, Any]], *columns: str) -> None:
    out.print(rows_table(title, rows, columns))
