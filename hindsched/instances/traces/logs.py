"""Reading what a scheduler did, from a file of any format or a frame, into one neutral `Log`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import MOST_BYTES
from hindsched.instances.traces import (
    batsim,
    kubernetes,
    openb,
    philly,
    plain,
    sacct,
    simulators,
    swf,
)
from hindsched.instances.traces.assemble import assemble
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.cells import Format, Reading, texts_of
from hindsched.instances.traces.log import Log
from hindsched.instances.traces.times import Clock

FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        plain.FORMAT, swf.FORMAT, sacct.FORMAT, kubernetes.FORMAT, simulators.TIRESIAS,
        simulators.ELASTICFLOW, openb.FORMAT, philly.FORMAT, batsim.FORMAT,
    )
}  # fmt: skip
"""Formats by their word, in the order of the documentation."""


def find_format(name: str) -> Format:
    """A format by its word, or `InputError`."""
    if name not in FORMATS:
        raise InputError("format", name, f"must be one of {', '.join(FORMATS)}")
    return FORMATS[name]


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
    form = find_format(format)
    capacity = said_capacity(gpus, servers)
    reading = Reading.begin(
        form, Path(path), Clock(time_zone or form.time_zone, time_unit, time_step),
        columns=columns, settings=settings, skip_broken=skip_broken, most_bytes=most_bytes,
    )  # fmt: skip
    rows = form.read(reading)
    reading.capacity = capacity or reading.capacity
    window = (
        _moment(reading, "submitted_from", submitted_from),
        _moment(reading, "submitted_to", submitted_to),
    )
    return assemble(reading, rows, *window)


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
    capacity = said_capacity(gpus, servers)
    clock = Clock(time_zone, time_unit, time_step)
    reading = frame_reading(clock, plain.FORMAT, columns, skip_broken=skip_broken)
    rows = frame_cells(reading, frame).standard()
    reading.capacity = capacity
    window = (
        _moment(reading, "submitted_from", submitted_from),
        _moment(reading, "submitted_to", submitted_to),
    )
    return assemble(reading, rows, *window)


def frame_reading(
    clock: Clock, form: Format, columns: Mapping[str, str] | None, *, skip_broken: bool = False
) -> Reading:
    """A reading of a frame."""
    reading = Reading.begin(form, Path("frame"), clock, columns=columns, skip_broken=skip_broken)
    reading.notes.hint = ""
    return reading


def frame_cells(reading: Reading, frame: pd.DataFrame) -> Any:
    """A frame's columns as cells; rows are counted from 1."""
    if not len(frame):
        raise InputError("frame", "0 rows", "must have a row a job")
    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError("frame, row 1", name, "must stand once in the header")
    rows = pd.RangeIndex(1, len(frame) + 1)
    texts = {name: texts_of(frame.iloc[:, at]) for at, name in enumerate(names)}
    made = pd.DataFrame({name: values.to_numpy() for name, values in texts.items()}, index=rows)
    return reading.cells_of(names, made, "a frame")


def _moment(reading: Reading, name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return reading.clock.time(text)[0]
    except ValueError as error:
        raise InputError(name, text, str(error)) from None
