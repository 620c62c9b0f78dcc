"""``hindsched score``: a certified score for a scheduler that nobody trusts."""

from __future__ import annotations

from typing import Annotated

from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, show_rows, tell

HIDDEN = ("instance", "score", "status", "reason")
LADDER = ("algorithm", "score", "better", "worse", "ties")


def score(
    candidate: Annotated[str, opt.argument("FILE.py, FILE.py:CLASS, a command or a name.")],
    family: Annotated[str | None, opt.option("Draw instances of this family.")] = None,
    suite: Annotated[str | None, opt.option("FAMILY/SUITE in place of seeds.")] = None,
    seeds_file: Annotated[str | None, opt.option("Secrets, one a line; drawn if absent.")] = None,
    preset: Annotated[str, opt.option("Preset of the family's generator.")] = "small",
    step_limit: Annotated[float, opt.option("Seconds for each decision.")] = 10.0,
    run_limit: Annotated[float, opt.option("Seconds for each run.")] = 120.0,
    memory: Annotated[float, opt.option("GB of memory of the candidate.")] = 2.0,
    sandbox: Annotated[str, opt.option("bwrap, or none: unsandboxed.")] = "bwrap",
    output: opt.Folder = None,
    as_json: opt.Json = False,
) -> int:
    """Score a scheduler that nobody trusts, on instances that it cannot know."""
    from hindsched.analysis.score import referee

    result = referee.score(
        candidate, family=family, suite=suite, seeds=seeds_file, preset=preset,
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
