"""The commands that make a number of the report again, to be run in the folder of results."""

from __future__ import annotations

import shlex

from hindsched.analysis.records import Record
from hindsched.analysis.tasks import OFFLINE, file_name
from hindsched.json_types import Keywords

OPTIONS = {"method": "--method", "solver": "--solver", "time_limit": "--time-limit", "gap": "--gap"}


def instance_file(name: str) -> str:
    """Path of an instance within the folder."""
    return f"instances/{file_name(name)}.json"


def command_of(record: Record) -> str:
    """The command that does a task again."""
    file = instance_file(record["instance"])
    settings: Keywords = record["settings"]
    if record["kind"] == OFFLINE:
        given = [(OPTIONS[key], settings[key]) for key in OPTIONS if key in settings]
        return _line("solve", file, *(word for pair in given for word in pair))
    pairs = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    options = ["--algorithm", record["algorithm"], "--seed", record["seed"]]
    return _line("simulate", file, *options, *pairs)


def check_command(instance: str, solution: str | None, certificate: str | None) -> str | None:
    """The command that checks a schedule and a bound without a solver; None if nothing is there."""
    if solution is None:
        return None
    prices = [] if certificate is None else ["--prices", certificate]
    return _line("verify", instance_file(instance), solution, *prices)


def _line(*words: object) -> str:
    return shlex.join(["hindsched", *(str(word) for word in words)])
