"""Reading what a scheduler did, from a file of any format or a frame, into one neutral `Log`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.io import MOST_BYTES
from hindsched.instances.traces import published, schedulers
from hindsched.instances.traces.capacity import said_capacity
from hindsched.instances.traces.log import Log, build_log
from hindsched.instances.traces.reading import Format, Reading
from hindsched.instances.traces.times import Clock

FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        schedulers.CSV, schedulers.SWF, schedulers.SACCT, schedulers.KUBERNETES,
        published.ELASTICFLOW_SCHEDULE, published.OPENB, published.PHILLY_LOG,
    )
}  # fmt: skip
"""Formats by their word, in the order of the documentation."""
TABLES = {
    "tiresias": "job=job_id submit=submit_time start=start_time end=end_time gpus=num_gpu "
    "duration=executed_time",
    "batsim": "job=job_id submit=submission_time start=starting_time end=finish_time "
    "gpus=requested_number_of_resources",
}
"""Columns by which a table of a simulator that was a format once is read as ``csv``."""


def read_log(
    path: str | Path | pd.DataFrame,
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
    path : str, Path or DataFrame
        The log: a file (plain, gzip, bzip2 or xz), a pipe, or for some formats a folder; or a frame
        with the columns of ``csv``, its times numbers, texts, datetimes or timedeltas (durations),
        its rows counted from 1.
    format : str
        One of `FORMATS`, of a file.
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
        Round times to multiples of so many seconds; otherwise to microseconds.
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
    if format in TABLES:
        named = " ".join(f"--column {pair}" for pair in TABLES[format].split(" "))
        raise InputError("format", format, f"is a table of jobs: --format csv {named}")
    if format not in FORMATS:
        raise InputError("format", format, f"must be one of {', '.join(FORMATS)}")
    form = FORMATS[format]
    clock = Clock(time_zone or form.time_zone, time_unit, time_step)
    file = Path("frame") if isinstance(path, pd.DataFrame) else Path(path)
    reading = Reading(
        form, file, clock, columns=columns, settings=settings, skip_broken=skip_broken,
        most_bytes=most_bytes,
    )  # fmt: skip
    said = said_capacity(gpus, servers)
    if isinstance(path, pd.DataFrame):
        reading.take_frame(path)
        rows = reading.standard()
    else:
        rows = form.read(reading)
    reading.capacity = said or reading.capacity
    ends: list[Any] = []
    for name, text in (("submitted_from", submitted_from), ("submitted_to", submitted_to)):
        found = clock.times(pd.Series([text] if text is not None else [], dtype=object))
        for rule in found["rule"][found["rule"] != ""]:
            raise InputError(name, text, rule)
        ends.append(None if text is None else int(found["value"].iloc[0]))
    return build_log(reading, rows, *ends)
