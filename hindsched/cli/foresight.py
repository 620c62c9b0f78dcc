"""``hindsched foresight``: the price of not knowing the future."""

from __future__ import annotations

from typing import Annotated

import hindsched as hs
from hindsched.cli import settings as opt
from hindsched.cli.output import emit_json, say, show_facts, tell
from hindsched.errors import InputError


def foresight(
    files: Annotated[list[str] | None, opt.argument("The futures: instances.")] = None,
    family: Annotated[str | None, opt.option("Draw a tree of futures of this family.")] = None,
    preset: Annotated[str, opt.option("Preset of the family's generator.")] = "small",
    at: Annotated[list[int] | None, opt.option("Slots after which futures part.")] = None,
    branches: Annotated[int, opt.option("Futures after each history.")] = 4,
    seed: opt.Seed = 0,
    settings: opt.Settings = None,
    probability: Annotated[list[float] | None, opt.option("Of each future, in order.")] = None,
    algorithm: opt.Algorithms = None,
    policies: Annotated[str, opt.option("run: slot by slot; commit: at arrival.")] = "run",
    formulation: opt.Formulation = None,
    time_limit: opt.TimeLimit = None,
    output: opt.Folder = None,
    as_json: opt.Json = False,
) -> None:
    """How much of a loss nobody could have avoided, and how much is the algorithm's own."""
    if bool(files) == (family is not None):
        raise InputError("files", files or "(absent)", "must be instances, or --family draws them")
    if family is None:
        futures = [opt.load_instance(file) for file in files or ()]
    else:
        values = opt.parse_settings(settings, "family", "preset", "seed", "at", "branches")
        futures = hs.tree(family, preset, at=at or [2], branches=branches, seed=seed, **values)
    opt.check_targets(output=None if output is None else f"{output}/foresight.json")
    result = hs.foresight(
        futures, probability, algorithm, policies, formulation=formulation,
        time_limit=60.0 if time_limit is None else time_limit,
    )  # fmt: skip
    if output is not None:
        result.write(output)
        say(f"check it: hindsched verify {output}")
    if as_json:
        emit_json(result.to_dict())
        return
    show_facts({"futures": len(futures), "policies": policies, **result.intervals})
    for sentence in result.sentences():
        tell(sentence)
