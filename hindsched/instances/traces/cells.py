"""A log's cells as text by role, and the neutral frame that every reader makes of them.

========  ==========================================================================
column    meaning
========  ==========================================================================
row       line of the file (the header counts), or record of a JSON file
job       the log's own name of the job; several rows are its runs, or parts of a gang
submit    submission, in nanoseconds as all times; missing (NA) where unknown, as all are
start     when the row's GPUs were taken
end       when they were given back
gpus      GPUs, may be a share of one
========  ==========================================================================

Where the log has them: ``duration``, ``deadline``, ``weight``, ``user``, ``server``, ``state``,
``part`` (cluster or tenant), ``paused`` (how long it stood still within a run), ``failed`` (the run
came to nothing), and what `hindsched.instances.traces.table` adds for values that fall with time.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import MOST_BYTES, decoded, read_bytes
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.notes import Notes
from hindsched.instances.traces.times import DECIMAL, Clock, seconds_text

NONE_WORDS = frozenset(("", "None", "null", "NULL", "NaN", "nan", "NA", "N/A", "NaT"))
"""How tables write that there is no value."""
MOST_GPUS = 1_000_000
LONGEST_NAME = 200
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
RERUNS = ("restart", "resume", "separate")
"""A job run again begins anew, goes on where it was, or is a job of its own."""
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


@dataclass(frozen=True)
class Format:
    """A format of logs.

    Parameters
    ----------
    name : str
        The word of ``--format``.
    what : str
        What such a file is, in one phrase.
    read : callable
        Makes the neutral frame of a `Reading`.
    columns : mapping
        Column of each role, unless the user says otherwise; empty for formats without columns.
    needed : tuple of str
        Roles without which the log cannot be read.
    settings : mapping
        Settings of the format: default and what they mean.
    time_zone : str, optional
        Zone of stamps without offset, where the format's publisher says it.
    time_unit : str
        Unit of its numbers, unless the user says otherwise.
    """

    name: str
    what: str
    read: Callable[[Reading], pd.DataFrame]
    columns: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    time_zone: str | None = None
    time_unit: str = "s"


@dataclass
class Reading:
    """One log while it is read: what it is, how the user wants it read, and what it says.

    Parameters
    ----------
    format : Format
        Its format.
    path : Path
        Where it is; ``frame`` for a frame.
    clock : Clock
        Reads its times.
    notes : Notes
        What is noticed.
    columns : dict
        Column of each role.
    said : set of str
        Roles that the user named a column for.
    settings : dict
        Values of the format's settings.
    keeps_broken : bool
        Keep rows with a broken cell, which is missing then.
    """

    format: Format
    path: Path
    clock: Clock
    notes: Notes
    columns: dict[str, str]
    said: set[str] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)
    most_bytes: int = MOST_BYTES
    keeps_broken: bool = False
    sha256: str = ""
    rows_read: int = 0
    capacity: Capacity | None = None
    gpus_a_server: int | None = None
    reruns: str = ""
    """What several runs of a job are, one of `RERUNS`; empty where the rows say it."""
    facts: list[str] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        form: Format,
        path: Path,
        clock: Clock,
        *,
        columns: Mapping[str, str] | None = None,
        settings: Mapping[str, object] | None = None,
        **given: Any,
    ) -> Reading:
        """A reading with the user's columns and settings in place of the format's."""
        for role, column in (columns or {}).items():
            if role not in form.columns:
                known = ", ".join(form.columns) or "(none: this format has no columns to name)"
                raise InputError("column", f"{role}={column}", f"must name one of {known}")
            if not column:
                raise InputError("column", f"{role}=", "must name a column of the log")
        for name in settings or {}:
            if name not in form.settings:
                known = ", ".join(form.settings) or "(none)"
                raise InputError("set", name, f"{form.name} has the settings {known}")
        values = {name: default for name, (default, _) in form.settings.items()}
        values |= {name: str(value) for name, value in (settings or {}).items()}
        notes = Notes(str(path), bool(given.pop("skip_broken", False)))
        roles = {**form.columns, **(columns or {})}
        return cls(form, path, clock, notes, roles, set(columns or ()), values, **given)

    @property
    def source(self) -> str:
        """The log's name in errors."""
        return str(self.path)

    def text(self) -> str:
        """The file's text; its hash is kept."""
        data, self.sha256 = read_bytes(self.path, self.most_bytes)
        if not data:
            raise InputError(self.source, "(empty)", "must hold something")
        return decoded(data, self.source)

    def choice(self, setting: str, known: Sequence[str]) -> str:
        """Value of a setting that is one of some words."""
        value = self.settings[setting]
        if value not in known:
            raise InputError(setting, value, f"must be one of {', '.join(known)}")
        return value

    def refuse_columns(self, what: str) -> None:
        """Refuse columns that the user named where there are none."""
        if self.said:
            raise InputError("column", ", ".join(sorted(self.said)), f"{what} has no columns")

    def table(self, delimiter: str = "", *, quoted: bool = True, what: str = "") -> Cells:
        """The file as a table with a header; no delimiter for the one that its header has."""
        what = what or f"{self.format.what} with a header"
        names, frame = read_table(self.text(), self.source, delimiter, quoted=quoted, what=what)
        return self.cells_of(names, frame, what)

    def cells_of(self, names: Sequence[str], frame: pd.DataFrame, what: str) -> Cells:
        """Cells of the columns that have roles; rows of too few or too many cells are broken."""
        check_header(self, names, what)
        self.rows_read = len(frame)
        odd = frame.pop("(cells)") if "(cells)" in frame else pd.Series(0, index=frame.index)
        rule = f"must have {len(names)} cells as the header has"
        for row, count in odd[odd > 0].items():
            if not self.keeps_broken:
                self.notes.broken(int(str(row)), "(all)", f"{count} cells", rule)
            elif count > len(names):
                raise InputError(f"{self.source}, row {row}", f"{count} cells", rule)
        kept = frame if self.keeps_broken else frame[odd == 0]
        roles = {role: column for role, column in self.columns.items() if column in names}
        made = {role: kept[column].fillna("").str.strip() for role, column in roles.items()}
        return Cells(self, pd.DataFrame(made, index=kept.index, dtype=object))


def read_table(
    text: str,
    source: str,
    delimiter: str = "",
    *,
    quoted: bool = True,
    first: int = 1,
    what: str = "a table with a header",
) -> tuple[list[str], pd.DataFrame]:
    """A table's header and rows as text, indexed by line; ``(cells)`` counts those of odd rows."""
    if not text.strip():
        raise InputError(source, "(empty)", f"must be {what}")
    if not delimiter:
        header_line = text.lstrip().partition("\n")[0]
        delimiter = max(DELIMITERS.values(), key=header_line.count)
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, quoting=quoting, strict=True)
    csv.field_size_limit(1 << 24)
    found: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                found.append((reader.line_num + first - 1, cells))
    except csv.Error as error:
        where = f"{source}, row {reader.line_num + first - 1}"
        raise InputError(where, str(error), f"must be {what}") from None
    (line, header), rows = found[0], found[1:]
    width, names = len(header), [name.strip() for name in header]
    while not names[-1]:  # a delimiter at the end of each line
        names.pop()
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{source}, row {line}", name, "must stand once in the header")
    padded = [cells[:width] + [""] * (width - len(cells)) for _, cells in rows]
    frame = pd.DataFrame(padded, index=[row for row, _ in rows], columns=range(width), dtype=object)
    odd = [len(cells) if len(cells) != width else 0 for _, cells in rows]
    frame = frame.iloc[:, : len(names)].set_axis(names, axis=1)
    return names, frame.assign(**{"(cells)": odd})


def check_header(reading: Reading, names: Sequence[str], what: str) -> None:
    """Refuse a header without the columns needed."""
    for role, column in reading.columns.items():
        if column not in names and role in {*reading.format.needed, *reading.said}:
            shown = ", ".join(names[:30]) or "(none)"
            hint = "" if reading.keeps_broken else (
                f" for {role}: --column {role}=NAME says which it is"
            )  # fmt: skip
            rule = f"must be {what} with a column {column!r}{hint}"
            raise InputError(f"{reading.source}, row 1, columns", shown, rule)


class Cells:
    """Texts of some rows, a column a role, indexed by row of the file.

    Parameters
    ----------
    reading : Reading
        What is being read.
    frame : DataFrame
        The texts.
    """

    def __init__(self, reading: Reading, frame: pd.DataFrame) -> None:
        self.reading = reading
        self.frame = frame
        self.broken = pd.Series(False, index=frame.index)

    def __len__(self) -> int:
        return len(self.frame)

    def has(self, role: str) -> bool:
        """Whether the log has a column for this role."""
        return role in self.frame

    def column(self, role: str) -> str:
        """The log's name of a role's column."""
        return self.reading.columns.get(role, role)

    def text(self, role: str) -> pd.Series:
        """Cells of a role; empty where the log has no such column."""
        return self.frame[role] if role in self.frame else pd.Series("", index=self.frame.index)

    def names(self, role: str) -> pd.Series:
        """Names: printable, of at most 200 characters and not empty."""
        return self._each(role, frozenset(), _name).astype(object)

    def times(
        self,
        role: str,
        missing: frozenset[str] = NONE_WORDS,
        after: pd.Series | None = None,
        *,
        notes: bool = True,
    ) -> pd.Series:
        """Times of a role in nanoseconds.

        Of the two times of a stamp in the hour that a clock set back repeats, the first counts,
        unless it would precede what it must follow (`after`) and the second would not.
        """
        found = self._each(role, missing, self.reading.clock.time)
        twice = found.map(lambda moment: isinstance(moment, tuple) and moment[1] is not None)
        values = [moment[0] if isinstance(moment, tuple) else None for moment in found]
        times = pd.Series(pd.array(values, dtype="Int64"), index=found.index)
        rule = f"the clock of {self.reading.clock.zone} shows this time twice"
        for place in np.flatnonzero(twice).tolist():
            first, second = found.iloc[place]
            least = None if after is None else after.iloc[place]
            takes_second = least is not None and not pd.isna(least) and first < least <= second
            times.iloc[place] = second if takes_second else first
            which = "the second, for it follows what is before it" if takes_second else "the first"
            row, cell = self.frame.index[place], self.text(role).iloc[place]
            if notes:
                self.reading.notes.add(row, self.column(role), cell, rule, f"taken as {which}")
        return times

    def spans(self, role: str, missing: frozenset[str] = NONE_WORDS) -> pd.Series:
        """Durations of a role in nanoseconds."""
        found = self._each(role, missing, self.reading.clock.span)
        return pd.Series(pd.array(list(found), dtype="Int64"), index=found.index)

    def amounts(self, role: str, missing: frozenset[str] = NONE_WORDS) -> pd.Series:
        """Numbers of GPUs; NaN where there is none."""
        return self._each(role, missing, _amount).astype(float)

    def weights(self, role: str) -> pd.Series:
        """Positive numbers; 1 where there is none."""
        return self._each(role, NONE_WORDS, _weight).astype(float).fillna(1.0)

    def refuse(self, rows: Any, role: str, values: Any, rule: str) -> None:
        """Refuse the log for the first of some rows, or leave them all out."""
        for row, value in zip(rows, values, strict=True):
            self.broken[row] = True
            self.reading.notes.broken(int(row), self.column(role), value, rule)

    def note(self, mask: pd.Series, role: str, values: Any, rule: str, done: str) -> None:
        """Note the same of the rows of a mask."""
        if mask.any():
            values = values if isinstance(values, str) else values[mask]
            self.reading.notes.add(mask.index[mask], self.column(role), values, rule, done)

    def neutral(self, keep: pd.Series | None = None, **columns: Any) -> pd.DataFrame:
        """The neutral frame of these columns, without broken rows; None for an absent column."""
        given = {name: values for name, values in columns.items() if values is not None}
        made = pd.DataFrame({"row": self.frame.index, **given}, index=self.frame.index)
        kept = pd.Series(True, index=made.index) if keep is None else keep
        if not self.reading.keeps_broken:
            kept = kept & ~self.broken
        return made[kept].reset_index(drop=True)

    def standard(self, **changed: Any) -> pd.DataFrame:
        """The neutral frame of the usual roles, with some columns changed."""
        submit = self.times("submit")
        columns: dict[str, Any] = {"job": self.names("job"), "submit": submit}
        if "start" not in changed:
            columns["start"] = self.times("start", after=submit)
        if "end" not in changed:
            start: pd.Series = changed["start"] if "start" in changed else columns["start"]
            columns["end"] = self.times("end", after=start.where(start.notna(), submit))
        if "gpus" not in changed:
            columns["gpus"] = self.amounts("gpus")
        optional: dict[str, Callable[[str], pd.Series]] = {
            "duration": self.spans, "deadline": self.times, "weight": self.weights,
            "user": self.text, "server": self.text, "state": self.text, "part": self.text,
        }  # fmt: skip
        columns |= {
            role: read(role)
            for role, read in optional.items()
            if self.has(role) and role not in changed
        }
        return self.neutral(**{**columns, **changed})

    def _each(self, role: str, missing: frozenset[str], one: Callable[[str], Any]) -> pd.Series:
        """Convert each distinct cell once; a cell whose rule is broken is refused."""
        cells = self.text(role)
        found: dict[str, Any] = dict.fromkeys(missing)
        rules: dict[str, str] = {}
        for cell in cells.unique():
            if cell not in found:
                try:
                    found[cell] = one(cell)
                except ValueError as error:
                    found[cell], rules[cell] = None, str(error)
        if rules:
            for row, cell in cells[cells.isin(list(rules))].items():
                self.refuse([row], role, [cell], rules[cell])
        return pd.Series([found[cell] for cell in cells], index=cells.index, dtype=object)


def texts_of(values: pd.Series) -> pd.Series:
    """A frame's column as a table would write it; nothing for what is missing."""
    if pd.api.types.is_timedelta64_dtype(values):
        found = values.astype("timedelta64[ns]").astype("int64").map(seconds_text)
    else:
        found = values.map(str)
    return found.where(values.notna(), "").astype(object)


def _name(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    if len(text) > LONGEST_NAME:
        raise ValueError(f"must have at most {LONGEST_NAME} characters")
    if found := UNPRINTABLE.search(text):
        raise ValueError(f"must not hold the invisible character U+{ord(found[0]):04X}")
    return text


def _amount(text: str) -> float:
    if not DECIMAL.fullmatch(text):
        raise ValueError("must be a number of GPUs")
    if abs(float(text)) > MOST_GPUS:
        raise ValueError(f"must be at most {MOST_GPUS} GPUs")
    if float(text) < 0:
        raise ValueError("must not be negative")
    return float(text)


def _weight(text: str) -> float:
    if not DECIMAL.fullmatch(text) or not 1e-15 <= float(text) <= 1e15:
        raise ValueError("must be a number above 0, at most 1e15")
    return float(text)
