"""Reading a log of any format into one neutral result."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hindsched.errors import InputError
from hindsched.instances.logs.assemble import Window, assemble
from hindsched.instances.logs.capacity import Capacity, parse_servers, pool
from hindsched.instances.logs.log import Log
from hindsched.instances.logs.notes import Notes
from hindsched.instances.logs.reading import Format, Reading, resolve_columns, resolve_settings
from hindsched.instances.logs.rows import BYTES_A_ROW
from hindsched.instances.logs.times import MISSING, Clock
from hindsched.instances.open_compressed import Limits, Source
from hindsched.json_types import Keywords

FORMATS = (
    "csv", "swf", "sacct", "kubernetes", "tiresias", "elasticflow", "openb", "philly", "batsim",
)  # fmt: skip
"""Formats in the order of the documentation; each is a module of this package."""


def find_format(name: str) -> Format:
    """A format by its word, or `InputError`."""
    if name not in FORMATS:
        raise InputError("format", name, f"must be one of {', '.join(FORMATS)}")
    found: Format = importlib.import_module(f"hindsched.instances.logs.{name}").FORMAT
    return found


def read_log(
    path: str | Path,
    format: str = "csv",  # noqa: A002
    *,
    columns: Mapping[str, str] | None = None,
    gpus: int | None = None,
    servers: object = None,
    time_zone: str | None = None,
    time_unit: str = "s",
    time_step: str | None = None,
    submitted_from: str | None = None,
    submitted_to: str | None = None,
    skip_broken: bool = False,
    limits: Limits | None = None,
    settings: Keywords | None = None,
) -> Log:
    """Read what a scheduler did.

    Parameters
    ----------
    path : str or Path
        The log: a file (plain, gzip, bzip2 or xz), a pipe, or for some formats a folder.
    format : str
        One of `FORMATS`.
    columns : mapping, optional
        The log's column for a role, where it is not the format's own, such as ``{"job": "JobID"}``.
    gpus : int, optional
        GPUs of the cluster, one pool.
    servers : str or pairs, optional
        Servers instead: ``"16x8"``, ``"a=8,b=4"``, (name, GPUs) pairs, or a CSV file.
    time_zone : str, optional
        Zone of stamps without an offset, such as ``"Europe/Berlin"``.
    time_unit : str
        Unit of numbers: s, ms, us, ns, min or h.
    time_step : str, optional
        Round times to multiples of so many seconds; otherwise nothing is rounded.
    submitted_from, submitted_to : str, optional
        Judge only jobs submitted in this window, given as the log writes times.
    skip_broken : bool
        Leave rows out that break a rule and note them, instead of refusing the log.
    limits : Limits, optional
        How large the log may be.
    settings : mapping, optional
        Settings of the format.

    Returns
    -------
    Log

    Raises
    ------
    InputError
        For a log that cannot be read, or a row that breaks a rule: one line with row and column.

    Examples
    --------
    >>> from pathlib import Path
    >>> rows = ["job,submit,start,end,gpus", "a,0,0,60,1", "b,0,60,90,2"]
    >>> _ = Path("log.csv").write_text(chr(10).join(rows))
    >>> read_log("log.csv", gpus=2).rows_read
    2
    """
    form = find_format(format)
    said = dict(columns or {})
    clock = Clock(time_zone or form.time_zone, time_unit, time_step)
    source = Source(Path(path), (limits or Limits()).with_rows(BYTES_A_ROW))
    reading = Reading(
        format=form,
        source=source,
        clock=clock,
        notes=Notes(source.name, skip_broken),
        columns=resolve_columns(form, said),
        needed={*form.needed, *said},
        settings=resolve_settings(form, settings or {}),
        said=set(said),
    )
    capacity = say_capacity(gpus, servers)
    form.read(reading)
    return finish(reading, capacity, submitted_from, submitted_to)


def finish(reading: Reading, capacity: Capacity | None, begin: str | None, end: str | None) -> Log:
    """Make the log from what has been read, within the user's window and capacity."""
    window = Window(
        _window_end(reading.clock, "submitted_from", begin),
        _window_end(reading.clock, "submitted_to", end),
    )
    log = assemble(reading, window)
    return log if capacity is None else log.with_capacity(capacity)


def say_capacity(gpus: int | None, servers: Any) -> Capacity | None:
    """The capacity that the user says, or None."""
    if gpus is not None and servers is not None:
        raise InputError("gpus", gpus, "either gpus or servers can be given, not both")
    if servers is not None:
        return parse_servers(servers, "the user")
    return None if gpus is None else pool(gpus, "the user")


def _window_end(clock: Clock, name: str, text: str | None) -> int | None:
    if text is None:
        return None

    def refuse(index: int, column: str, value: str, rule: str) -> None:
        raise InputError(column, value, rule)

    found = int(clock.parse([text], name, frozenset(), refuse)[0][0])
    return None if found == MISSING else found
