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

import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.files import MOST_BYTES, decoded, read_bytes
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.reader_warnings import ReaderWarnings
from hindsched.instances.traces.times import DECIMAL, Clock, seconds_text

NONE_WORDS = frozenset(("", "None", "null", "NULL", "NaN", "nan", "NA", "N/A", "NaT"))
"""How tables write that there is no value."""
MOST_GPUS = 1_000_000
LONGEST_NAME = 200
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
REQUEUES = ("restart", "resume", "separate")
"""A job run again begins anew, goes on where it was, or is a job of its own."""
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ASIDE = "set aside: not judged"


@dataclass(frozen=True)
class Format:
    """A format of logs.

    Parameters
    ----------
    name, what : str
        The word of ``--format``, and what such a file is in one phrase.
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
    columns, settings : mapping, optional
        The user's columns by role and settings, in place of the format's.
    skip_broken : bool
        Leave rows out that break a rule, instead of refusing the log.
    keeps_broken : bool
        Keep rows with a broken cell, which is missing then.
    most_bytes : int
        What the file may unpack to.
    """

    def __init__(
        self,
        format: Format,  # noqa: A002
        path: Path,
        clock: Clock,
        *,
        columns: Mapping[str, str] | None = None,
        settings: Mapping[str, object] | None = None,
        skip_broken: bool = False,
        keeps_broken: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        for role, column in (columns or {}).items():
            if role not in format.columns:
                known = ", ".join(format.columns) or "(none: this format has no columns to name)"
                raise InputError("column", f"{role}={column}", f"must name one of {known}")
            if not column:
                raise InputError("column", f"{role}=", "must name a column of the log")
        for name in settings or {}:
            if name not in format.settings:
                known = ", ".join(format.settings) or "(none)"
                raise InputError("set", name, f"{format.name} has the settings {known}")
        self.format, self.path, self.clock = format, path, clock
        self.columns = {**format.columns, **(columns or {})}
        self.said = set(columns or ())
        self.settings = {name: default for name, (default, _) in format.settings.items()}
        self.settings |= {name: str(value) for name, value in (settings or {}).items()}
        self.keeps_broken, self.most_bytes = keeps_broken, most_bytes
        self.notes = ReaderWarnings(str(path), skip_broken)
        self.sha256 = ""
        self.rows_read = 0
        self.capacity: Capacity | None = None
        self.gpus_a_server: int | None = None
        self.requeues = ""  # one of `REQUEUES`; empty where the rows say it
        self.facts: list[str] = []

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
        return self.cells_of(
            read_table(self.text(), self.source, delimiter, quoted=quoted, what=what), what
        )

    def cells_of(self, table: pd.DataFrame, what: str) -> Cells:
        """Cells of the columns that have roles; rows of too few or too many cells are broken."""
        odd = table.pop("(cells)") if "(cells)" in table else pd.Series(0, index=table.index)
        names = list(table.columns)
        for role, column in self.columns.items():
            if column not in names and role in {*self.format.needed, *self.said}:
                shown = ", ".join(names[:30]) or "(none)"
                hint = f" for {role}: --column {role}=NAME says which it is"
                rule = f"must be {what} with a column {column!r}{'' if self.keeps_broken else hint}"
                raise InputError(f"{self.source}, row 1, columns", shown, rule)
        self.rows_read += len(table)
        rule = f"must have {len(names)} cells as the header has"
        for row, count in odd[odd > 0].items():
            if not self.keeps_broken:
                self.notes.broken(int(str(row)), "(all)", f"{count} cells", rule)
            elif count > len(names):
                raise InputError(f"{self.source}, row {row}", f"{count} cells", rule)
        kept = table if self.keeps_broken else table[odd == 0]
        roles = {role: column for role, column in self.columns.items() if column in names}
        made = {role: kept[column].fillna("").str.strip() for role, column in roles.items()}
        return Cells(self, pd.DataFrame(made, index=kept.index, dtype=object))

    def cells_of_frame(self, frame: pd.DataFrame) -> Cells:
        """A frame's columns as cells; rows are counted from 1."""
        self.notes.hint = ""
        if not len(frame):
            raise InputError("frame", "0 rows", "must have a row a job")
        texts = [_texts_of(frame.iloc[:, at]).to_numpy() for at in range(frame.shape[1])]
        names = [str(name) for name in frame.columns]
        _check_unique_names(names, "frame, row 1")
        rows = pd.RangeIndex(1, len(frame) + 1)
        return self.cells_of(
            pd.DataFrame(dict(zip(names, texts, strict=True)), index=rows), "a frame"
        )


def read_table(
    text: str,
    source: str,
    delimiter: str = "",
    *,
    quoted: bool = True,
    first: int = 1,
    what: str = "a table with a header",
) -> pd.DataFrame:
    """A table's rows as text, indexed by line; ``(cells)`` counts those of odd rows."""
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
    _check_unique_names(names, f"{source}, row {line}")
    padded = [cells[: len(names)] + [""] * (len(names) - len(cells)) for _, cells in rows]
    frame = pd.DataFrame(padded, index=[row for row, _ in rows], columns=names, dtype=object)
    return frame.assign(**{"(cells)": [0 if len(c) == width else len(c) for _, c in rows]})


def _check_unique_names(names: Sequence[str], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(where, name, "must stand once in the header")


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
        values = [moment[0] if isinstance(moment, tuple) else None for moment in found]
        times = pd.Series(pd.array(values, dtype="Int64"), index=found.index)
        rule = f"the clock of {self.reading.clock.zone} shows this time twice"
        for place, moment in enumerate(found):
            if not isinstance(moment, tuple) or moment[1] is None:
                continue
            least, which = None if after is None else after.iloc[place], "the first"
            if least is not None and not pd.isna(least) and moment[0] < least <= moment[1]:
                times.iloc[place] = moment[1]
                which = "the second, for it follows what is before it"
            if notes:
                row, cell = self.frame.index[place], self.text(role).iloc[place]
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

    def refuse(self, mask: pd.Series, role: str, values: Any, rule: str) -> None:
        """Refuse the log for the first of some rows, or leave them all out."""
        values = pd.Series(values, index=mask.index)
        for row, value in values[mask].items():
            self.reading.notes.broken(int(str(row)), self.column(role), value, rule)
        self.broken |= mask

    def note(self, mask: pd.Series, role: str, values: Any, rule: str, done: str) -> None:
        """Note the same of the rows of a mask."""
        values = values if isinstance(values, str) else values[mask]
        self.reading.notes.add(mask.index[mask], self.column(role), values, rule, done)

    def neutral(self, keep: pd.Series | None = None, **columns: Any) -> pd.DataFrame:
        """The neutral frame of these columns, without broken rows.

        None stands for an absent column, a role's name for its text if the log has it.
        """
        given = {
            name: self.text(values) if isinstance(values, str) else values
            for name, values in columns.items()
            if values is not None and (not isinstance(values, str) or self.has(values))
        }
        made = pd.DataFrame({"row": self.frame.index, **given}, index=self.frame.index)
        kept = pd.Series(True, index=made.index) if keep is None else keep
        if not self.reading.keeps_broken:
            kept = kept & ~self.broken
        return made[kept].reset_index(drop=True)

    def standard(self, **changed: Any) -> pd.DataFrame:
        """The neutral frame of the usual roles, with some columns changed."""
        columns: dict[str, Any] = {"job": self.names("job"), "submit": self.times("submit")}
        submit = columns["submit"]
        if "start" not in changed:
            columns["start"] = self.times("start", after=submit)
        if "end" not in changed:
            start = changed["start"] if "start" in changed else columns["start"]
            columns["end"] = self.times("end", after=start.where(start.notna(), submit))
        usual: dict[str, Callable[[str], pd.Series]] = {
            "gpus": self.amounts, "duration": self.spans, "deadline": self.times,
            "weight": self.weights, "user": self.text, "server": self.text, "state": self.text,
            "part": self.text,
        }  # fmt: skip
        columns |= {
            role: read(role)
            for role, read in usual.items()
            if role not in changed and (self.has(role) or role == "gpus")
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
        wrong = cells.isin(list(rules))
        for row, cell in cells[wrong].items():
            self.reading.notes.broken(int(str(row)), self.column(role), cell, rules[cell])
        self.broken |= wrong
        return pd.Series([found[cell] for cell in cells], index=cells.index, dtype=object)


def _texts_of(values: pd.Series) -> pd.Series:
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
    if float(text) < 0:
        raise ValueError("must not be negative")
    if float(text) > MOST_GPUS:
        raise ValueError(f"must be at most {MOST_GPUS} GPUs")
    return float(text)


def _weight(text: str) -> float:
    if not DECIMAL.fullmatch(text) or not 1e-15 <= float(text) <= 1e15:
        raise ValueError("must be a number above 0, at most 1e15")
    return float(text)
