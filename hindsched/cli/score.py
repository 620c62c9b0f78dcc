"""``hindsched score``: a certified score for a scheduler that nobody trusts."""

from __future__ import annotations

from typing import Annotated

from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, show_rows, tell
from hindsched.errors import InputError
from hindsched.instances.io import write_text

BOARD = ("rank", "candidate", "score", "interval", "tie", "sandbox", "made")
HIDDEN = ("instance", "score", "status", "reason")
LADDER = ("algorithm", "score", "better", "worse", "ties")


def score(
    candidate: Annotated[
        list[str], opt.argument("FILE.py, FILE.py:CLASS, a command, a name; or folders.")
    ],
    family: Annotated[str | None, opt.option("Draw instances of this family.")] = None,
    suite: Annotated[str | None, opt.option("FAMILY/SUITE in place of seeds.")] = None,
    seeds_file: Annotated[str | None, opt.option("Secrets, one a line; drawn if absent.")] = None,
    preset: Annotated[str, opt.option("Preset of the family's generator.")] = "small",
    step_limit: Annotated[float, opt.option("Seconds for each decision.")] = 10.0,
    run_limit: Annotated[float, opt.option("Seconds for each run.")] = 120.0,
    memory: Annotated[float, opt.option("GB of memory of the candidate.")] = 2.0,
    sandbox: Annotated[str, opt.option("bwrap, or none: unsandboxed.")] = "bwrap",
    board: Annotated[bool, opt.option("Rank scored folders; write a page.", "--board")] = False,
    output: opt.Folder = None,
    as_json: opt.Json = False,
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
            show_rows(title, rows, BOARD)
        return 0
    if len(candidate) > 1:
        raise InputError("candidate", candidate[1], "must be one: quote a command with arguments")
    result = referee.score(
        candidate[0], family=family, suite=suite, seeds=seeds_file, preset=preset,
        step_limit=step_limit, run_limit=run_limit, memory=int(memory * 2**30), sandbox=sandbox,
        out=output, say=say,
    )  # fmt: skip
    if as_json:
        emit_json(result.data)
        return 0
    show_rows("Hidden instances", result.data["instances"], HIDDEN)
    show_rows("The ladder of known algorithms", result.data["ladder"], LADDER)
    tell(f"{result.data['candidate']}: score {result.combined_score!r}, {result.data['sandbox']}")
    if output is not None:
        say(f"page {output}/score.html; for the author {output}/feedback.txt, nothing else")
    return 0
