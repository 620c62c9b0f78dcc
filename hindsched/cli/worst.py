"""``hindsched worst``: search the instance on which an algorithm is worst."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, out, say
from hindsched.cli.settings import Algorithm, Family, check_targets, parse_settings
from hindsched.errors import INTERRUPTED, InputError
from hindsched.json_types import JsonObject


def worst(
    family: Family,
    algorithm: Algorithm,
    against: Annotated[
        str | None, typer.Option(help="Another algorithm in place of the optimum.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Search space of the family; its first one.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: a range as [low,high], or a setting."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Most jobs of the instance.")] = None,
    formulation: Annotated[str | None, typer.Option(help="Which of the family's problems.")] = None,
    start: Annotated[
        list[str] | None, typer.Option(help="Instance file to begin with; may be repeated.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds; 60 without a work limit.")
    ] = None,
    work_limit: Annotated[int | None, typer.Option(help="Candidates to evaluate.")] = None,
    target: Annotated[float | None, typer.Option(help="A ratio that is enough.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    seeds: Annotated[int, typer.Option(help="Seeds of a randomised algorithm.")] = 5,
    workers: Annotated[int, typer.Option(help="Local processes; 0 for none.")] = 0,
    shrink: Annotated[bool, typer.Option(help="Make the instance found simpler.")] = True,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Folder of the witness.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the folder's search.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Search the instance on which an algorithm is worst; Ctrl-C keeps what was found."""
    from hindsched.analysis.worst.search import worst as search_worst
    from hindsched.instances.search_space import find_space

    space = find_space(family, preset)
    values: JsonObject = dict(parse_settings(settings))
    if jobs is not None:
        if "jobs" in values:
            raise InputError("set.jobs", values["jobs"], "must not be given with --jobs")
        values["jobs"] = [min(space.jobs[0], jobs), jobs]
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise InputError("output", output, "must be a folder")
    check_targets(output=None if output is None else os.path.join(output, "instance.json"))
    told = -1.0

    def progress(done: int, ratio: float) -> None:
        nonlocal told
        if ratio > told:
            told = ratio
            say(f"{done:7d} evaluated: ratio {ratio:.6g}")

    names = space.names()
    found = search_worst(
        family, algorithm, against, preset=preset,
        ranges={key: value for key, value in values.items() if key in names},
        settings={key: value for key, value in values.items() if key not in names},
        formulation=formulation, starts=start or (), seeds=seeds, seed=seed,
        time_limit=time_limit, work_limit=work_limit, target=target, workers=workers,
        shrink=shrink, folder=output, resume=resume, on_progress=progress,
    )  # fmt: skip
    facts = found.search
    if as_json:
        emit_json(found.to_dict())
    else:
        say(f"{facts['evaluations']} candidates in {facts['seconds']:.1f} s ({facts['ended']})")
        out.print(found.explain(), markup=False, soft_wrap=True)
        if output is not None:
            place = shlex.quote(output)
            out.print(f"witness: {output}", markup=False, soft_wrap=True)
            say(f"check it: hindsched verify {place}/instance.json {place}/reference.json")
    if facts["ended"] == "interrupted":
        if output is not None:
            say(f"interrupted; the same command with --resume goes on in {shlex.quote(output)}")
        return INTERRUPTED
    return 0
