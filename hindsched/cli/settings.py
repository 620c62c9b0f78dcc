"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hindsched.cli.output import say
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import is_replaceable

Family = Annotated[
    str,
    typer.Argument(help="The family's word, as in `hindsched list families`."),
]
OneFamily = Annotated[str | None, typer.Option(help="Only this family.")]
File = Annotated[
    str,
    typer.Argument(
        help="Instance file, - for standard input, or a name of `hindsched list instances`."
    ),
]
Algorithm = Annotated[
    str,
    typer.Option(help="Name of `hindsched list algorithms`, FILE.py:CLASS or exec:COMMAND."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting as NAME=VALUE; may be repeated.")
]
Algorithms = Annotated[
    list[str] | None,
    typer.Option(help="As of `simulate`; may be repeated; all of the family if absent."),
]
Engine = Annotated[
    str | None,
    typer.Option(help="Who computes best responses: oracle or model."),
]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds for a solve.")]
Method = Annotated[
    str,
    typer.Option(help="auto, milp, relaxation, bound, ..."),
]
Solver = Annotated[
    str,
    typer.Option(help="highs, scip, cbc, glpk or gurobi."),
]
Threads = Annotated[int | None, typer.Option(help="Cores of a solve.")]
WorkLimit = Annotated[
    int | None, typer.Option(help="Iterations and nodes in place of seconds: same bytes always.")
]
Gap = Annotated[float, typer.Option(help="Relative gap at which a solve counts as optimal.")]
TraceFile = Annotated[str | None, typer.Option(help="Make the instance from this cluster trace.")]
TraceFormat = Annotated[str | None, typer.Option(help="elasticflow, philly, chronus, ...")]
TracePart = Annotated[str | None, typer.Option(help="Cluster or file within the trace.")]
Jobs = Annotated[int | None, typer.Option(help="Number of jobs to take from the trace.")]
Servers = Annotated[int | None, typer.Option(help="Servers of the cluster, with --from-trace.")]
SlotSeconds = Annotated[float | None, typer.Option(help="Seconds of a slot, with --from-trace.")]
Start = Annotated[float | None, typer.Option(help="Second of the trace from which jobs are taken.")]


def parse_settings(pairs: Sequence[str] | None, engine: str | None = None) -> dict[str, str]:
    """Read ``NAME=VALUE`` pairs; the algorithm or generator converts the values.

    Raises
    ------
    InputError
        For a pair without ``=`` or a name given twice.
    """
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError("set", pair, "must be NAME=VALUE")
        if name in settings:
            raise InputError("set", pair, "must not set a name twice")
        settings[name] = value
    if engine is not None:
        if engine not in ("oracle", "model"):
            raise InputError("engine", engine, "must be oracle or model")
        settings["engine"] = engine
    return settings


def load(source: str) -> Instance:
    """Read an instance file or standard input, or find an instance of the library by name."""
    from hindsched.instances.catalogue import is_library_name, named_instance
    from hindsched.instances.io import read

    path = Path("/dev/stdin" if source == "-" else source)
    if is_library_name(source) and path.suffix != ".json" and not path.exists():
        return named_instance(source)
    return read(path)


def trace_instance(
    family: str,
    trace: str,
    trace_format: str | None,
    part: str | None,
    *,
    jobs: int | None,
    start: float | None,
    seed: int,
    servers: int | None,
    slot_seconds: float | None,
    settings: Mapping[str, object],
) -> Instance:
    """Make an instance from a trace file, and say what came from it and what was made up."""
    from hindsched.instances.generators.registry import from_trace, trace_settings
    from hindsched.instances.traces.table import load_trace

    if trace_format is None:
        raise InputError("trace-format", "(absent)", "is required with --from-trace")
    if jobs is not None and jobs < 1:
        raise InputError("jobs", jobs, "must be at least 1")
    if start is not None and not 0 <= start < float("inf"):
        raise InputError("start", start, "must be a number of seconds, at least 0")
    refuse_options(settings, "jobs", "seed", "family", "table")
    typed = ["jobs", "start"]
    for option, value in (("servers", servers), ("slot_seconds", slot_seconds)):
        if value is None:
            continue
        if option not in trace_settings(family):
            raise InputError(option.replace("_", "-"), value, f"{family} has none from a trace")
        refuse_options(settings, option)
        settings = {option: value, **settings}
        typed.append(option)
    table = load_trace(trace, trace_format, part=part)
    if start is not None:
        if "start" in trace_settings(family):  # the family may skip rows: it cuts its own window
            settings = {"start": start, **settings}
        else:
            later = int((table.rows["submit_seconds"] >= start).sum())
            table = table.window(start, later if jobs is None else jobs)
    with options_named(typed):
        made = from_trace(family, table, jobs=jobs, seed=seed, **settings)
    for key, words in (("took", "from the trace"), ("made_up", "made up")):
        say(f"{words}: {'; '.join((made.provenance or {}).get(key, ['nothing']))}")
    return made


@contextmanager
def options_named(names: Sequence[str]) -> Iterator[None]:
    """Say ``servers``, not ``set.servers``, of what was typed as an option ``--servers``."""
    try:
        yield
    except InputError as error:
        name = error.where.removeprefix("set.")
        if error.where == name or name not in names:
            raise
        raise InputError(name.replace("_", "-"), error.value, error.rule) from None


def refuse_options(settings: Mapping[str, object], *names: str) -> None:
    """Refuse ``--set NAME=VALUE`` where NAME is an argument or option of its own."""
    for name in names:
        if name in settings:
            raise InputError(f"set.{name}", settings[name], "is no setting but an option")


def check_targets(inputs: Sequence[str | None] = (), **outputs: str | None) -> None:
    """Refuse outputs that cannot be written, or would destroy something, before anything begins.

    Parameters
    ----------
    inputs : sequence of str
        Files that are read: no output may be one of them.
    **outputs
        Path by option; None where the option was not given.
    """
    taken = {os.path.realpath(path): "is read by this command" for path in inputs if path}
    for option, path in outputs.items():
        if path is None:
            continue
        _check_target(option, path)
        if is_replaceable(path):
            place = os.path.realpath(path)
            if place in taken:
                raise InputError(option, path, f"must be a file of its own: it {taken[place]}")
            taken[place] = f"is what --{option} writes"


def _check_target(option: str, path: str) -> None:
    """Refuse a file that cannot be written; nothing is created to find out."""
    target = Path(path)
    if "\0" in path or not target.name:
        raise InputError(option, path, "must be a file")
    try:
        if target.is_dir():
            raise InputError(option, path, "must be a file, not a folder")
        folder = Path(os.path.realpath(path)).parent
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        place = folder if is_replaceable(path) else target
        if not folder.is_dir():
            raise InputError(option, path, f"must be writable ({folder} is no folder)")
    except OSError as error:  # a name too long, a loop of links
        raise InputError(option, path, f"must be writable ({error.strerror})") from None
    if not os.access(place, os.W_OK):
        raise InputError(option, path, "must be writable (permission denied)")
