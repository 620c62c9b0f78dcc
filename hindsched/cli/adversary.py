"""``hindsched adversary``: futures on which every online algorithm is bad."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, say_better, search_code, show_rows, tell


def adversary(
    family: opt.Family,
    policies: Annotated[str | None, opt.option("run: slot by slot; commit: at arrival.")] = None,
    preset: opt.Near = "small",
    settings: opt.Settings = None,
    jobs: Annotated[int, opt.option("Most jobs of a future.")] = 8,
    futures: Annotated[int, opt.option("Most futures.")] = 8,
    deterministic: Annotated[
        bool, opt.option("Search where those that do not randomise are bad.", "--deterministic")
    ] = False,
    formulation: opt.Formulation = None,
    time_limit: opt.TimeLimit = None,
    work_limit: opt.Candidates = None,
    seed: opt.Seed = 0,
    workers: opt.Workers = 0,
    output: opt.Folder = None,
    resume: opt.Resume = False,
    as_json: opt.Json = False,
) -> int:
    """What no online algorithm can do, searched and proven; Ctrl-C keeps what was found.

    --set NAME=[low,high] is a range of a field of the instances.
    """
    from hindsched.analysis.foresight.mixed import tree_lines

    opt.check_targets(output=None if output is None else os.path.join(output, "adversary.json"))
    result = hs.adversary(
        family, policies, preset=preset, ranges=opt.parse_settings(settings), jobs=jobs,
        futures=futures, deterministic=deterministic, formulation=formulation, seed=seed,
        time_limit=time_limit, work_limit=work_limit, workers=workers, folder=output,
        resume=resume, on_progress=say_better(),
    )  # fmt: skip
    facts, place = result.search, shlex.quote(output or "")
    if as_json:
        emit_json(result.to_dict())
    else:
        say(f"{facts['evaluations']} candidates in {facts['seconds']:.1f} s ({facts['ended']})")
        again = zip(result.rows(), result.replayed, strict=True)
        show_rows("", [{**row, "replayed": value} for row, value in again])
        tell("The best policy, choice by choice:")
        for line in tree_lines(result.futures, result.tree):
            tell(line)
        for sentence in result.sentences():
            tell(sentence)
        if output is not None:
            say(f"check it: hindsched verify {place}")
    return search_code(facts, output)
