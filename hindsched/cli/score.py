"""``hindsched score``: a certified score for a scheduler that nobody trusts."""

from __future__ import annotations

from typing import Annotated

import typer

from hindsched.cli.output import Json, digits, emit_json, out, say, table
from hindsched.errors import InputError
from hindsched.memory import parse_bytes


def score(
    candidate: Annotated[
        list[str],
        typer.Argument(help="FILE.py, FILE.py:CLASS, a command, a name; with --board folders."),
    ],
    family: Annotated[str | None, typer.Option(help="Draw instances of this family.")] = None,
    suite: Annotated[str | None, typer.Option(help="FAMILY/SUITE in place of seeds.")] = None,
    seeds_file: Annotated[
        str | None,
        typer.Option(help="Secrets, one a line, that draw the instances; drawn anew if absent."),
    ] = None,
    preset: Annotated[str, typer.Option(help="Preset of the family's generator.")] = "small",
    step_limit: Annotated[float, typer.Option(help="Seconds for each decision.")] = 10.0,
    run_limit: Annotated[float, typer.Option(help="Seconds for each run.")] = 120.0,
    memory: Annotated[str, typer.Option(help="Memory of the candidate.")] = "2G",
    sandbox: Annotated[str, typer.Option(help="auto, bwrap or none.")] = "auto",
    work_limit: Annotated[int, typer.Option(help="Work for each denominator.")] = 500,
    board: Annotated[bool, typer.Option("--board", help="Rank scored folders.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Folder to write; of a board its page.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Score a scheduler that nobody trusts, on instances that it cannot know."""
    if board:
        return _board(candidate, output, as_json=as_json)
    from hindsched.analysis.score.referee import score as score_one

    if len(candidate) > 1:
        raise InputError("candidate", candidate[1], "must be one: quote a command with arguments")
    found = score_one(
        candidate[0], family=family, suite=suite, seeds=seeds_file, preset=preset,
        step_limit=step_limit, run_limit=run_limit, memory=parse_bytes(memory) or 0,
        sandbox=sandbox, work_limit=work_limit, out=output, say=say,
    )  # fmt: skip
    if as_json:
        emit_json(found.data)
        return 0
    for title, rows, columns in (
        ("Hidden instances", found.data["instances"], ("instance", "score", "status", "reason")),
        (
            "The ladder of known algorithms",
            found.data["ladder"],
            ("algorithm", "score", "better", "worse", "ties"),
        ),
    ):
        cells = [[digits(row[name], 6) for name in columns] for row in rows]
        out.print(table(title, columns, cells))
    out.print(f"score {found.combined_score!r}, {found.data['sandbox']}", markup=False)
    if output is not None:
        say(f"page {output}/score.html; for the author {output}/feedback.txt, nothing else")
    return 0


def _board(folders: list[str], output: str | None, *, as_json: bool) -> int:
    from hindsched.analysis.score.page import board, write_board

    rows = board(folders)
    if output is not None:
        write_board(rows, output)
    if as_json:
        emit_json({"candidates": rows})
    else:
        columns = ("rank", "candidate", "score", "interval", "tie", "sandbox", "made")
        cells = [[digits(row[name], 6) for name in columns] for row in rows]
        out.print(table("Candidates, best first", columns, cells))
    return 0
