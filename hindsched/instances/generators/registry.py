"""Finding generators by the family's name, what settings they are given, and trees of futures."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hindsched.errors import InputError, check_type
from hindsched.instances.base import Instance, family_module, whole_number
from hindsched.instances.generators.ranges import Draws, RowSettings
from hindsched.json_types import JsonObject, Keywords

Suite = Callable[[], list[Instance]]
SMALLEST_SETTING = 1e-12
"""Numbers nearer to 0 are mistakes: what is divided by them could not be counted."""
MOST_FUTURES, MOST_DRAWS = 10_000, 100


@dataclass(frozen=True)
class FamilyGenerator:
    """What a family's module ``generator`` offers, as `GENERATOR`."""

    presets: Mapping[str, JsonObject]  # settings by preset name
    generate: Callable[..., Instance]  # (preset, seed, **settings)
    suites: Mapping[str, Suite] = field(default_factory=dict)
    from_trace: Callable[..., Instance] | None = None  # (table, *, jobs, seed, **settings)
    trace_settings: type[RowSettings] | None = None  # what `from_trace` is set by
    # With these settings, and servers so many times as large, preset ``small`` meets what the
    # paper's theorem assumes of instances; None without a paper.
    assumptions: JsonObject | None = None
    enlargement: int = 1


def family_generator(family: str) -> FamilyGenerator:
    """The generator of a family, found by its word."""
    generator: FamilyGenerator = family_module("instances", family, "generator").GENERATOR
    return generator


def presets(family: str) -> Mapping[str, JsonObject]:
    """Presets of a family's generator: settings by preset name."""
    return family_generator(family).presets


def generate(
    family: str, preset: str = "small", seed: int = 0, *, assumptions: Any = False,
    **settings: object,
) -> Instance:  # fmt: skip
    """Generate a random instance; the same arguments give the same bytes everywhere.

    Parameters
    ----------
    family : str
        The family's name.
    preset : str
        Name of a preset: a set of settings.
    seed : int
        Seed of the draws, at least 0.
    assumptions : bool
        Whether to meet what the paper's theorem assumes of instances, as far as presets and
        settings let it; `hindsched.ratio` says of each assumption whether it holds.
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
    check_preset(family, preset)
    names = {name for preset_settings in presets(family).values() for name in preset_settings}
    values = _plain_settings(settings, names, f"the generator of {family}")
    generator, seed = family_generator(family), whole_number("seed", seed, 0)
    check_type("assumptions", assumptions, bool, "true or false")
    if not assumptions:
        return generator.generate(preset, seed, **values)
    if generator.assumptions is None:
        raise InputError("assumptions", True, f"{family} has no paper's theorem")
    drawn = generator.generate(preset, seed, **{**generator.assumptions, **values})
    return _enlarged(drawn, generator.enlargement)


def _enlarged(drawn: Instance, times: int) -> Instance:
    """The instance with servers so many times as large; its name and provenance say why."""
    data = drawn.to_dict()
    kinds = ("servers", "worker_servers", "ps_servers") if times > 1 else ()
    for server in (server for kind in kinds for server in data.get(kind, ())):
        sizes = server["capacity"].items()
        server["capacity"] = {name: times * amount for name, amount in sizes}
    data |= {"name": f"{drawn.name}-assumptions"}
    data["provenance"] |= {"assumptions": True}
    return type(drawn).parse(data)


def suites_of(
    make: Callable[..., Instance], **suites: Sequence[tuple[Any, ...]]
) -> dict[str, Suite]:
    """Suites of a family's generator, made when asked for.

    Their rows are preset, seed, settings and, if it differs, what the generator's name ends with.
    """

    def made(rows: Sequence[tuple[Any, ...]]) -> list[Instance]:
        each = [(make(preset, seed, **settings), *end) for preset, seed, settings, *end in rows]
        return [item.with_fields(name=item.name + "".join(end)) for item, *end in each]

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
    make = family_generator(family).from_trace
    if make is None:
        raise InputError("family", family, "its generator makes no instance from a trace")
    values = _plain_settings(settings, trace_settings(family), f"the trace mapping of {family}")
    if "preset" in values:
        check_preset(family, values["preset"])
    count = {} if jobs is None else {"jobs": whole_number("jobs", jobs, 1)}
    return make(table, seed=whole_number("seed", seed, 0), **count, **values)


def trace_settings(family: str) -> set[str]:
    """Names of the settings of a family's mapping from traces, which may be none."""
    generator = family_generator(family)
    names = {*generator.trace_settings.model_fields} if generator.trace_settings else set()
    if "preset" in names:
        names |= {name for preset in generator.presets.values() for name in preset}
    return names - {"jobs"}


def check_preset(family: str, preset: object) -> None:
    """Raise `InputError` unless a family's generator has a preset."""
    known = presets(family)
    if preset not in known:
        raise InputError("preset", preset, f"{family} has the presets {', '.join(known)}")


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
