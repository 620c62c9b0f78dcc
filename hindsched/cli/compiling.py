"""``hindsched compile``: the kernels of this machine, ahead of the work that needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from hindsched.cli.output import Json, emit_json, errors, say
from hindsched.cli.settings import OneFamily

Workers = Annotated[int, typer.Option(min=1, help="Families compiled at once.")]


def compile_(
    family: OneFamily = None,
    workers: Workers = 2,
    as_json: Json = False,
) -> None:
    """Compile what this machine has not compiled yet; every other command does so where it must."""
    from hindsched.analysis.compiling import not_compiled
    from hindsched.instances.library import families_or_all
    from hindsched.online.registry import algorithms
    from hindsched.solvers.compiling import REPLAYS

    words = families_or_all(family)
    missing = not_compiled({word: [*algorithms(word), REPLAYS] for word in words})
    compile_first(missing, workers)
    if as_json:
        emit_json({"compiled": list(missing), "before": [w for w in words if w not in missing]})
    elif not missing:
        say("everything is compiled")


def compile_first(work: Mapping[str, Sequence[str]], workers: int) -> None:
    """Compile some work with a bar, if there is any, and say so."""
    from hindsched.analysis.compiling import compile_work
    from hindsched.analysis.progress import progress_bar

    if not work:
        return
    say(f"compiling kernels, once on this machine: {', '.join(work)}")
    with progress_bar(len(work), "compiling", console=errors.console) as advance:
        compile_work(work, workers=workers, advance=advance)
