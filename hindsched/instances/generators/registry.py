"""Finding generators by the family's name, what settings they are given, and trees of futures."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import Instance, family_module, whole_number
from hindsched.instances.generators.ranges import Draws
from hindsched.json_types import JsonObject, Keywords

SMALLEST_SETTING = 1e-12
"""Numbers nearer to 0 are mistakes: what is divided by them could not be counted."""
MOST_FUTURES, MOST_DRAWS = 10_000, 100


def presets(family: str) -> dict[str, JsonObject]:
    """Presets of a family's generator: settings by preset name."""
    found: dict[str, JsonObject] = family_module("instances", family, "generator").PRESETS
    return found


def generate(family: str, preset: str = "small", seed: int = 0, **settings: object) -> Instance:
    """Generate a random instance; the same arguments give the same bytes everywhere.

    Parameters
    ----------
    family : str
        The family's name.
    preset : str
        Name of a preset: a set of settings.
    seed : int
        Seed of the draws, at least 0.
    **settings
        Settings in place of the preset's; text is read as JSON where it is JSON.

    Raises
    ------
    InputError
        For an unknown family, preset or setting, or a value that breaks a rule.

    Examples
    --------
    >>> import hindsched as hs
    >>> hs.generate("oasis", seed=2, jobs=3) == hs.generate("oasis", seed=2, jobs=3)
    True
    """
    names = {name for one in _presets(family, preset).values() for name in one}
    values = _plain_settings(settings, names, f"the generator of {family}")
    function = family_module("instances", family, "generator").generate
    made: Instance = function(preset, whole_number("seed", seed, 0), **values)
    return made


def suites_of(
    make: Callable[..., Instance], **suites: Sequence[tuple[Any, ...]]
) -> dict[str, Callable[[], list[Instance]]]:
    """Suites of a family's generator, made when asked for.

    Their rows are preset, seed, settings and, if it differs, what the generator's name ends with.
    """

    def made(rows: Sequence[tuple[Any, ...]]) -> list[Instance]:
        each = [(make(preset, seed, **settings), *end) for preset, seed, settings, *end in rows]
        return [one.with_fields(name=one.name + "".join(end)) for one, *end in each]

    return {name: partial(made, rows) for name, rows in suites.items()}


def from_trace(
    family: str, table: Any, *, jobs: int | None = None, seed: int = 0, **settings: object
) -> Instance:
    """Make an instance from a cluster trace.

    Parameters
    ----------
    family : str
        The family's name.
    table : TraceTable
        Rows of a trace, from ``hindsched.instances.traces``.
    jobs : int, optional
        How many rows to use; None for the family's default.
    seed : int
        Seed of what the trace does not say.
    **settings
        Settings of the family's mapping; in every family ``start`` is the second of the trace from
        which jobs are taken, and with ``every`` only every so many-th row is.

    Examples
    --------
    >>> import hindsched as hs
    >>> from pathlib import Path
    >>> rows = ["job_id,submission_time,duration,num_gpu", "a,0,600,1", "b,60,900,2"]
    >>> _ = Path("jobs.csv").write_text(chr(10).join(rows))
    >>> table = hs.load_trace("jobs.csv", "elasticflow")
    >>> [job.name for job in hs.from_trace("oasis", table, jobs=2).jobs]
    ['a', 'b']
    """
    names = trace_settings(family)
    values = _plain_settings(settings, names, f"the trace mapping of {family}")
    if "preset" in values:
        _presets(family, values["preset"])
    count = {} if jobs is None else {"jobs": whole_number("jobs", jobs, 1)}
    function = family_module("instances", family, "generator").from_trace
    made: Instance = function(table, seed=whole_number("seed", seed, 0), **count, **values)
    return made


def trace_settings(family: str) -> set[str]:
    """Names of the settings of a family's mapping from traces."""
    module = family_module("instances", family, "generator")
    if not hasattr(module, "from_trace"):
        raise InputError("family", family, f"module {module.__name__} offers no from_trace")
    names = {*module.TraceSettings.model_fields}
    if "preset" in names:
        names |= {name for preset in presets(family).values() for name in preset}
    return names - {"jobs"}


def _presets(family: str, preset: object) -> dict[str, JsonObject]:
    known = presets(family)
    if preset not in known:
        raise InputError("preset", preset, f"{family} has the presets {', '.join(known)}")
    return known


def _plain_settings(settings: Keywords, names: Collection[str], owner: str) -> JsonObject:
    """Settings as JSON has them, each one that there is; `Settings` checks their values."""
    values: JsonObject = {}
    for key, given in settings.items():
        if key not in names:
            allowed = ", ".join(sorted(names)) or "none"
            raise InputError(f"set.{key}", given, f"{owner} has the settings: {allowed}")
        values[key] = value = plain(given)
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, float) and 0 < abs(number) < SMALLEST_SETTING:
                rule = f"must be 0 or of a size from {SMALLEST_SETTING:g}"
                raise InputError(f"set.{key}", value, rule)
    return values


def plain(value: object) -> Any:
    """A value as JSON has it: numpy's numbers and arrays are Python's, text is read."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(item.item() if isinstance(item, np.generic) else item for item in value)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def tree(
    family: str, preset: str = "small", *, at: Sequence[int] = (2,), branches: int = 2,
    seed: int = 0, **settings: object,
) -> list[Instance]:  # fmt: skip
    """Draw futures of one cluster: after each slot of `at` the rest is drawn anew per branch.

    Parameters
    ----------
    family, preset
        Whose generator draws.
    at : sequence of int
        Arrivals up to and with the slot are common to the branches after it; in order.
    branches : int
        How many futures follow each history: ``branches ** len(at)`` scenarios in all.
    seed : int
        Of the draws: the same tree everywhere.
    **settings
        Of the generator.

    Raises
    ------
    InputError
        For slots out of order, or more scenarios than `MOST_FUTURES`.

    Examples
    --------
    >>> import hindsched as hs
    >>> [len(instance.jobs) > 0 for instance in hs.tree("gang", at=[2], branches=3)]
    [True, True, True]
    """
    slots = [whole_number(f"at[{place}]", slot, 1) for place, slot in enumerate(at)]
    if not slots or slots != sorted(set(slots)):
        raise InputError("at", list(at), "must be slots in order")
    if whole_number("branches", branches, 1) ** len(slots) > MOST_FUTURES:
        raise InputError("branches", branches, f"must give at most {MOST_FUTURES} scenarios")
    first = generate(family, preset, seed, **settings)
    horizon, paths = first.horizon, [("", first.jobs)]
    for slot in slots:
        grown = []
        for path, jobs in paths:
            past = [job for job in jobs if first.arrival_of(job) <= slot]
            for branch in range(branches):
                here = f"{path}.{branch}" if path else str(branch)
                later = [job for job in jobs if first.arrival_of(job) > slot]
                draws = Draws(seed, "tree", here)
                for _ in range(MOST_DRAWS if branch else 0):  # the first goes on as it was
                    drawn = generate(family, preset, draws.integer(0, 2**31 - 1), **settings)
                    later = [job.model_copy(update={"name": f"{job.name}x{here}"})
                             for job in drawn.jobs if first.arrival_of(job) > slot]  # fmt: skip
                    if past or later:
                        horizon = max(horizon, drawn.horizon)
                        break
                grown.append((here, (*past, *later)))
        paths = grown
    return [
        first.with_fields(
            name=f"{first.name}-{path}", horizon=horizon, jobs=jobs,
            provenance={**(first.provenance or {}), "tree": {"at": slots, "branch": path}},
        )
        for path, jobs in paths
    ]  # fmt: skip
