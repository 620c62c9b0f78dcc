"""Finding generators by the family's name, and checking the settings they are given."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from hindsched.errors import InputError
from hindsched.instances.base import (
    LARGEST_NUMBER,
    Instance,
    family_module,
    input_error,
    whole_number,
)
from hindsched.json_types import JsonObject, Keywords

SMALLEST_SETTING = 1e-12
"""Numbers nearer to 0 are mistakes: what is divided by them could not be counted."""


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
    known = presets(family)
    if preset not in known:
        raise InputError("preset", preset, f"{family} has the presets {', '.join(known)}")
    function = family_module("instances", family, "generator").generate
    names = _setting_names(function, known, {"preset", "seed"})
    values = _checked(settings, names, function, f"the generator of {family}")
    made: Instance = function(preset, whole_number("seed", seed, 0), **values)
    return made


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
        Settings of the family's mapping; ``start`` is in every family the second of the trace from
        which jobs are taken.

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
    function, names = trace_mapping(family), trace_settings(family)
    start = _plain(settings.get("start", 0))
    if not isinstance(start, int | float) or isinstance(start, bool) or not 0 <= start < math.inf:
        raise InputError("set.start", start, "must be a number of seconds, at least 0")
    if "start" in settings and "start" not in names:  # mlbroker skips rows: it cuts its own window
        settings = {key: settings[key] for key in settings if key != "start"}
        table = table.window(start, int((table.rows["submit_seconds"] >= start).sum()))
    values = _checked(settings, names, function, f"the trace mapping of {family}")
    seed = whole_number("seed", seed, 0)
    count = {} if jobs is None else {"jobs": whole_number("jobs", jobs, 1)}
    made: Instance = function(table, seed=seed, **count, **values)
    return made


def trace_mapping(family: str) -> Callable[..., Instance]:
    """A family's function from traces; `InputError` for a family without one."""
    module = family_module("instances", family, "generator")
    if not hasattr(module, "from_trace"):
        raise InputError("family", family, f"module {module.__name__} offers no from_trace")
    found: Callable[..., Instance] = module.from_trace
    return found


def trace_settings(family: str) -> set[str]:
    """Names of the settings of a family's mapping from traces."""
    function = trace_mapping(family)
    return _setting_names(function, presets(family), {"table", "jobs", "seed"})


def _checked(
    settings: Keywords, names: set[str], function: Callable[..., Instance], owner: str
) -> JsonObject:
    """Settings as JSON has them, each one that there is, of a countable size and the right kind.

    What a preset's setting must be is its `Settings`' to check.
    """
    # The table's type may be imported for type checkers only; it is no setting.
    hints = get_type_hints(function, localns={"TraceTable": Any}, include_extras=True)
    values: JsonObject = {}
    for key, given in settings.items():
        where = f"set.{key}"
        if key not in names:
            allowed = ", ".join(sorted(names)) or "none"
            raise InputError(where, given, f"{owner} has the settings: {allowed}")
        values[key] = value = _plain(given)
        for number in _numbers(value):
            if number and not SMALLEST_SETTING <= abs(number) <= LARGEST_NUMBER:
                rule = f"must be 0 or of a size from {SMALLEST_SETTING:g} to {LARGEST_NUMBER:g}"
                raise InputError(where, value, rule)
        if key in hints:
            try:
                TypeAdapter(hints[key]).validate_python(value, strict=True)
            except ValidationError as error:
                wrong = input_error(error)
                at = "" if wrong.where == "instance" else f".{wrong.where}"
                raise InputError(where + at, wrong.value, wrong.rule) from None
    return values


def _numbers(value: object) -> Iterator[float]:
    """Every number in a setting."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(item)


def _setting_names(
    function: Callable[..., Instance], known: Mapping[str, Mapping[str, object]], taken: set[str]
) -> set[str]:
    """Names of the parameters and, behind ``**settings``, of what the presets set."""
    parameters = inspect.signature(function).parameters.values()
    names = {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names |= {name for preset in known.values() for name in preset}
    return names - taken


def _plain(value: object) -> Any:
    """A value as JSON has it: numpy's numbers and arrays are Python's, text is read."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(item.item() if isinstance(item, np.generic) else item for item in value)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
