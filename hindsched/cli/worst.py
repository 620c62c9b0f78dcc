"""``hindsched worst``: search the instance on which an algorithm is worst."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindsched.analysis.sweep import DEFAULT_WORKERS
from hindsched.cli.output import Json, emit_json, errors, out, say
from hindsched.cli.settings import Algorithm, Family, check_targets, parse_settings
from hindsched.errors import INTERRUPTED, InputError
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    from hindsched.analysis.worst.search import Search
    from hindsched.analysis.worst.witness import Witness

WITNESS = "instance.json"
"""A file of the folder that is written."""


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
        list[str] | None,
        typer.Option(
            help="gadgets, random, an instance file, a folder of bench; may be repeated. "
            "Gadgets and random if absent."
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds; 60 without a work limit.")
    ] = None,
    work_limit: Annotated[int | None, typer.Option(help="Candidates to evaluate.")] = None,
    target: Annotated[float | None, typer.Option(help="A ratio that is enough.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    seeds: Annotated[int, typer.Option(help="Seeds of a randomised algorithm.")] = 5,
    workers: Annotated[int, typer.Option(help="Local processes; 0 for none.")] = DEFAULT_WORKERS,
    random_search: Annotated[
        bool, typer.Option("--random-search", help="Only draw: what a search must beat.")
    ] = False,
    polish: Annotated[bool, typer.Option(help="Polish numbers by CMA-ES.")] = True,
    shrink: Annotated[bool, typer.Option(help="Make the instance found simpler.")] = True,
    keep: Annotated[float, typer.Option(help="Share of the ratio that shrinking keeps.")] = 0.99,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Folder of the witness.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the folder's search.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Search the instance on which an algorithm is worst; Ctrl-C keeps what was found."""
    from hindsched.analysis.worst.api import worst as search_worst
    from hindsched.analysis.worst.polish import can_polish
    from hindsched.analysis.worst.starts import DEFAULT_STARTS
    from hindsched.instances.search.space import find_space

    space = find_space(family, preset)
    values: JsonObject = dict(parse_settings(settings))
    if jobs is not None:
        if "jobs" in values:
            raise InputError("set.jobs", values["jobs"], "must not be given with --jobs")
        values["jobs"] = [min(space.jobs[0], jobs), jobs]
    names = space.names()
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise InputError("output", output, "must be a folder")
    check_targets(output=None if output is None else os.path.join(output, WITNESS))
    if polish and not random_search and not can_polish():
        say("numbers are not polished: CMA-ES needs the extra hindsched[worst]")
    found = search_worst(
        family,
        algorithm,
        against,
        preset=preset,
        ranges={key: value for key, value in values.items() if key in names},
        settings={key: value for key, value in values.items() if key not in names},
        formulation=formulation,
        starts=start or DEFAULT_STARTS,
        seeds=seeds,
        seed=seed,
        time_limit=time_limit,
        work_limit=work_limit,
        target=target,
        workers=workers,
        evolve=not random_search,
        polish=polish,
        shrink=shrink,
        keep=keep,
        folder=output,
        resume=resume,
        on_progress=_Progress(),
    )
    if as_json:
        emit_json(found.to_dict())
    else:
        _show(found, output)
    if found.search["ended"] == "interrupted":
        if output is not None:
            say(f"interrupted; the same command with --resume goes on in {shlex.quote(output)}")
        return INTERRUPTED
    return 0


class _Progress:
    """A line whenever the ratio has grown."""

    def __init__(self) -> None:
        self.told = float("-inf")

    def __call__(self, search: Search) -> None:
        best = search.best
        if best is not None and best.score > self.told:
            self.told = best.score
            say(
                f"{search.seconds:7.1f} s {search.counts['evaluations']:7d} evaluated: "
                f"ratio {best.score:.6g} ({search.best_from})"
            )


def _show(found: Witness, output: str | None) -> None:
    facts = found.search
    counts = facts["counts"]
    say(
        f"{facts['evaluations']} candidates in {facts['seconds']:.1f} s ({facts['ended']}): "
        f"{counts.get('bounded', 0)} ended by a bound, {counts.get('invalid', 0)} invalid, "
        f"{counts.get('failed', 0)} failed, {counts.get('limited', 0)} solves cut by their limit"
    )
    for line in found.explain().splitlines():
        if found.contradicts and line == found.verdict:
            errors.console.print(line, style="bold red", markup=False, soft_wrap=True)
        else:
            out.print(line, markup=False, soft_wrap=True)
    if output is not None:
        place = shlex.quote(output)
        out.print(f"witness: {output}", markup=False, soft_wrap=True)
        say(f"check it: hindsched verify {place}/instance.json {place}/reference.json --exact")
