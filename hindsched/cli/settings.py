"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.io import is_replaceable


def option(text: str, *names: str) -> Any:
    """An option with its help; by default it is named as its parameter."""
    return typer.Option(*names, help=text)


def argument(text: str) -> Any:
    """An argument with its help."""
    return typer.Argument(help=text)


Family = Annotated[str, argument("The family's name, as in `hindsched list families`.")]
File = Annotated[str, argument("Instance: a file, -, or one of `list instances`.")]
Algorithm = Annotated[str, option("One of `list algorithms`, FILE.py:CLASS or exec:COMMAND.")]
Algorithms = Annotated[list[str] | None, option("May be repeated; all of the family if absent.")]
Settings = Annotated[list[str] | None, option("A setting NAME=VALUE; may be repeated.", "--set")]
Columns = Annotated[list[str] | None, option("A column's role: job=JobID.", "--column")]
Formulation = Annotated[str | None, option("Which of the family's problems.")]
Method = Annotated[str, option("auto, milp, relaxation, bound, ...")]
Near = Annotated[str, option("Of the generator, near which to search.", "--preset")]
Candidates = Annotated[int | None, option("Candidates to evaluate.", "--work-limit")]
TimeLimit = Annotated[float | None, option("Seconds.")]
Speed = Annotated[float | None, option("The paper's algorithm also at this speed; edgecloud.")]
Assumptions = Annotated[bool, option("Meet what the theorem assumes.", "--assumptions")]
Seed = Annotated[int, option("Seed of what is drawn.")]
Workers = Annotated[int, option("Local processes; 0 for none.")]
Dask = Annotated[str | None, option("Address of a Dask scheduler in place of processes.")]
Trace = Annotated[str | None, option("Take the jobs from this cluster trace.", "--from-trace")]
Output = Annotated[str | None, option("File to write.", "-o", "--output")]
Folder = Annotated[str | None, option("Folder to write.", "-o", "--out", "--output")]
Resume = Annotated[bool, option("Go on with what is in the folder.", "--resume")]
Certificate = Annotated[str | None, option("Write the bound's certificate to this file.")]
Json = Annotated[bool, option("Print one JSON object on standard output.", "--json")]


def parse_settings(
    pairs: Sequence[str] | None, *options: str, where: str = "set"
) -> dict[str, str]:
    """Read ``NAME=VALUE`` pairs, none of an option's name; their taker converts the values."""
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(where, pair, "must be NAME=VALUE")
        if name in settings:
            raise InputError(where, pair, "must not set a name twice")
        if name in options:
            raise InputError(f"{where}.{name}", value, "is no setting but an option")
        settings[name] = value
    return settings


def load_instance(source: str) -> Instance:
    """Read an instance file or standard input, or find an instance of the library by name."""
    from hindsched.instances.catalogue import is_library_name, named_instance
    from hindsched.instances.io import read

    path = Path("/dev/stdin" if source == "-" else source)
    if is_library_name(source) and path.suffix != ".json" and not path.exists():
        return named_instance(source)
    return read(path)


def check_targets(inputs: Sequence[str | None] = (), **outputs: str | None) -> None:
    """Refuse outputs that cannot be written, or would destroy something, before anything begins.

    Outputs are paths by option, None where it was not given; none may be a file that is read.
    """
    taken = {os.path.realpath(path): "is read by this command" for path in inputs if path}
    for name, path in outputs.items():
        if path is None:
            continue
        if rule := _broken_rule(path):
            raise InputError(name, path, rule)
        place = os.path.realpath(path)
        if place in taken and is_replaceable(path):
            raise InputError(name, path, f"must be a file of its own: it {taken[place]}")
        taken[place] = f"is what --{name} writes"


def _broken_rule(path: str) -> str | None:
    """Why a file cannot be written; nothing is created to find out."""
    target = Path(path)
    if "\0" in path or not target.name:
        return "must be a file"
    try:
        if target.is_dir():
            return "must be a file, not a folder"
        folder = next(each for each in Path(os.path.realpath(path)).parents if each.exists())
        if not folder.is_dir():
            return f"must be writable ({folder} is no folder)"
    except OSError as error:  # a name too long, a loop of links
        return f"must be writable ({error.strerror})"
    may_write = os.access(folder if is_replaceable(path) else target, os.W_OK)
    return None if may_write else "must be writable (permission denied)"
