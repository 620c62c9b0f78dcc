"""``hindsched worst``: search the instance on which an algorithm is worst."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, tell
from hindsched.errors import INTERRUPTED


def worst(
    family: opt.Family,
    algorithm: opt.Algorithm,
    preset: Annotated[str, opt.option("Of the generator, near which to search.")] = "small",
    settings: opt.Settings = None,
    formulation: opt.Formulation = None,
    time_limit: opt.TimeLimit = None,
    work_limit: Annotated[int | None, opt.option("Candidates to evaluate.")] = None,
    seed: opt.Seed = 0,
    workers: opt.Workers = 0,
    output: opt.Folder = None,
    resume: opt.Resume = False,
    as_json: opt.Json = False,
) -> int:
    """Search the instance on which an algorithm is worst; Ctrl-C keeps what was found.

    --set NAME=[low,high] is a range of a field of the instance; jobs is how many.
    """
    from hindsched.instances.search_space import find_space

    values, space = opt.parse_settings(settings), find_space(family, preset)
    ranges = {key: value for key, value in values.items() if space.has(key)}
    opt.check_targets(output=None if output is None else os.path.join(output, "instance.json"))
    best = [-1.0]

    def progress(done: int, ratio: float) -> None:
        if ratio > best[0]:
            best[0] = ratio
            say(f"{done:7d} evaluated: ratio {ratio:.6g}")

    witness = hs.worst(
        family, algorithm, preset=preset, ranges=ranges,
        settings={key: value for key, value in values.items() if key not in ranges},
        formulation=formulation, seed=seed, time_limit=time_limit, work_limit=work_limit,
        workers=workers, folder=output, resume=resume, on_progress=progress,
    )  # fmt: skip
    facts, place = witness.search, shlex.quote(output or "")
    if as_json:
        emit_json(witness.to_dict())
    else:
        say(f"{facts['evaluations']} candidates in {facts['seconds']:.1f} s ({facts['ended']})")
        tell(witness.explain())
        if output is not None:
            tell(f"witness: {output}")
            say(f"check it: hindsched verify {place}/instance.json {place}/reference.json")
    if facts["ended"] != "interrupted":
        return 0
    if output is not None:
        say(f"interrupted; the same command with --resume goes on in {place}")
    return INTERRUPTED
