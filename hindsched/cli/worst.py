"""``hindsched worst``: search the instance on which an algorithm is worst."""

from __future__ import annotations

import os
import shlex

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, say_better, search_code, tell


def worst(
    family: opt.Family,
    algorithm: opt.Algorithm,
    preset: opt.Near = "small",
    settings: opt.Settings = None,
    formulation: opt.Formulation = None,
    time_limit: opt.TimeLimit = None,
    work_limit: opt.Candidates = None,
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
    witness = hs.worst(
        family, algorithm, preset=preset, ranges=ranges,
        settings={key: value for key, value in values.items() if key not in ranges},
        formulation=formulation, seed=seed, time_limit=time_limit, work_limit=work_limit,
        workers=workers, folder=output, resume=resume, on_progress=say_better(),
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
    return search_code(facts, output)
