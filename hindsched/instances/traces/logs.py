"""Reading what a scheduler did, from a file of any format or a frame, into one neutral `Log`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import MOST_BYTES
from hindsched.instances.traces import kubernetes, published, sacct, simulators, swf
from hindsched.instances.traces.build_log import build_log
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.reading import DELIMITERS, Format, Reading
from hindsched.instances.traces.times import Clock

ROLES = (
    "job", "submit", "start", "end", "gpus", "duration", "deadline", "weight", "user", "server",
)  # fmt: skip
AUTO = "auto"


def read_csv(reading: Reading) -> pd.DataFrame:
    """Read a table; several rows of one job are its runs, or its parts on several servers."""
    word = reading.choice("delimiter", (AUTO, *DELIMITERS))
    return reading.table(DELIMITERS.get(word, ""), what=CSV.what).standard()


CSV = Format(
    name="csv",
    what="a table with a header",
    read=read_csv,
    columns={role: role for role in ROLES},
    needed=("job", "submit", "start", "end", "gpus"),
    settings={"delimiter": (AUTO, f"what separates cells: auto, {', '.join(DELIMITERS)}")},
)
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        CSV, swf.FORMAT, sacct.FORMAT, kubernetes.FORMAT, simulators.TIRESIAS,
        simulators.ELASTICFLOW, published.OPENB, published.PHILLY_LOG, simulators.BATSIM,
    )
}  # fmt: skip
"""Formats by their word, in the order of the documentation."""


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
    most_bytes: int = MOST_BYTES,
    settings: Mapping[str, object] | None = None,
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
    most_bytes : int
        What the file may unpack to.
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
    if format not in FORMATS:
        raise InputError("format", format, f"must be one of {', '.join(FORMATS)}")
    form = FORMATS[format]
    clock = Clock(time_zone or form.time_zone, time_unit, time_step)
    reading = Reading(
        form, Path(path), clock, columns=columns, settings=settings, skip_broken=skip_broken,
        most_bytes=most_bytes,
    )  # fmt: skip
    return _log(reading, form.read, gpus, servers, submitted_from, submitted_to)


def read_frame(
    frame: pd.DataFrame,
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
) -> Log:
    """Read a frame with the columns ``job, submit, start, end, gpus`` as `read_log` reads a file.

    Times may be numbers, texts, datetimes or timedeltas (durations); rows are counted from 1.
    """
    clock = Clock(time_zone, time_unit, time_step)
    reading = Reading(CSV, Path("frame"), clock, columns=columns, skip_broken=skip_broken)

    def read(reading: Reading) -> pd.DataFrame:
        return reading.cells_of_frame(frame).standard()

    return _log(reading, read, gpus, servers, submitted_from, submitted_to)


def _log(
    reading: Reading,
    read: Callable[[Reading], pd.DataFrame],
    gpus: int | None,
    servers: object,
    submitted_from: str | None,
    submitted_to: str | None,
) -> Log:
    capacity = said_capacity(gpus, servers)
    rows = read(reading)
    reading.capacity = capacity or reading.capacity
    window: Any = []
    for name, text in (("submitted_from", submitted_from), ("submitted_to", submitted_to)):
        try:
            window.append(None if text is None else reading.clock.time(text)[0])
        except ValueError as error:
            raise InputError(name, text, str(error)) from None
    return build_log(reading, rows, *window)
