"""Logs that are pandas frames already: a row a run, with the columns of the format ``csv``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.logs.api import finish, say_capacity
from hindsched.instances.logs.csv import FORMAT, add_chunk
from hindsched.instances.logs.log import Log
from hindsched.instances.logs.notes import Notes
from hindsched.instances.logs.reading import Reading, resolve_columns
from hindsched.instances.logs.table import Chunk, check_header
from hindsched.instances.logs.times import Clock, seconds_text
from hindsched.instances.open_compressed import Limits, Source

NAME = "frame"


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
    reading = frame_reading(frame, FORMAT.needed, columns, time_zone, time_unit, time_step)
    reading.notes.skip_broken = skip_broken
    capacity = say_capacity(gpus, servers)
    add_chunk(reading, frame_chunk(reading, frame))
    return finish(reading, capacity, submitted_from, submitted_to)


def frame_reading(
    frame: pd.DataFrame,
    needed: tuple[str, ...],
    columns: Mapping[str, str] | None,
    time_zone: str | None,
    time_unit: str,
    time_step: str | None,
) -> Reading:
    """A reading of a frame that has columns for the roles needed."""
    said = dict(columns or {})
    reading = Reading(
        format=FORMAT,
        source=Source(Path(NAME), Limits()),
        clock=Clock(time_zone, time_unit, time_step),
        notes=Notes(NAME, hint=""),
        columns=resolve_columns(FORMAT, said),
        needed={*needed, *said},
        settings={},
    )
    if not len(frame):
        raise InputError(NAME, "0 rows", "must have a row a job")
    check_header(reading, [str(name) for name in frame.columns], "a frame")
    return reading


def frame_chunk(reading: Reading, frame: pd.DataFrame) -> Chunk:
    """The frame's columns as texts."""
    reading.count_rows(len(frame))
    names = {str(name): name for name in frame.columns}
    wanted = [column for column in reading.columns.values() if column in names]
    cells = {column: texts(frame[names[column]]) for column in wanted}
    return Chunk(reading, np.arange(1, len(frame) + 1, dtype=np.int64), cells)


def texts(values: pd.Series) -> list[str]:
    """Values as a table would write them; nothing for what is missing."""
    missing = values.isna().to_numpy()
    if pd.api.types.is_timedelta64_dtype(values):
        nanoseconds = values.astype("timedelta64[ns]").astype("int64").tolist()
        found = [seconds_text(number) for number in nanoseconds]
    else:
        found = [str(value) for value in values.tolist()]
    return ["" if gone else text.strip() for text, gone in zip(found, missing, strict=True)]
