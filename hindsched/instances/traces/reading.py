"""Reading a trace's files within limits: tables, members of archives, JSON."""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.open_compressed import Bounded, Limits, Source

TRACE_LIMITS = Limits(most_bytes=4 << 30)
"""What a file of a trace may unpack to: a bomb ends in one line."""


def read_table(
    source: Path, where: Any, columns: Sequence[str], *, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Read a CSV file (plain or gzip) or an open stream as text.

    Parameters
    ----------
    source : Path
        What to call it in errors.
    where : path or stream
        What to read.
    columns : sequence of str
        Columns that must be there.
    names : sequence of str, optional
        Names of the columns of a file without a header.

    Raises
    ------
    InputError
        If it cannot be read, is empty, is no CSV, or lacks a column.
    """
    try:
        frame = pd.read_csv(
            trace_stream(where) if isinstance(where, Path) else where,
            names=None if names is None else list(names),
            dtype=str,
            keep_default_na=False,
            na_values=["", "None", "null", "NULL"],
            skip_blank_lines=True,
        )
    except InputError:
        raise
    except pd.errors.EmptyDataError:
        raise InputError(str(source), "(empty)", "must be a CSV file with a header") from None
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(str(source), reason, "must be a readable CSV file") from None
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(str(source), str(error), "must be a CSV file") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas took the first field for an index
        raise InputError(str(source), "(a field too many)", "rows must be as long as the header")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        found = ", ".join(map(str, frame.columns))
        plural = "s" if len(missing) > 1 else ""
        raise InputError(str(source), found, f"lacks the column{plural} {', '.join(missing)}")
    return frame


def trace_stream(path: Path) -> io.BufferedReader:
    """A trace's bytes, unpacked, within `TRACE_LIMITS`."""
    return Source(path, TRACE_LIMITS).stream()


def member_stream(archive: tarfile.TarFile, member: tarfile.TarInfo) -> io.BufferedReader:
    """A file of a tar archive within `TRACE_LIMITS`; `InputError` if it is a dangling link."""
    where = f"{archive.name!s}, {member.name}"
    try:
        stream = archive.extractfile(member)
    except KeyError:
        stream = None
    if stream is None:
        raise InputError(where, "(a link that leads nowhere)", "must be a file")
    return io.BufferedReader(Bounded(stream, where, TRACE_LIMITS.most_bytes))


def trace_json(path: Path) -> Any:
    """A trace's JSON; what is wrong with it is one line."""
    try:
        return json.load(trace_stream(path))
    except InputError:
        raise
    except RecursionError:
        raise InputError(str(path), "(nested too deep)", "must be JSON") from None
    except ValueError as error:
        raise InputError(str(path), str(error), "must be JSON") from None


def number(frame: pd.DataFrame, column: str) -> pd.Series:
    """A column as numbers; what is no number is missing."""
    return pd.to_numeric(frame[column], errors="coerce")
