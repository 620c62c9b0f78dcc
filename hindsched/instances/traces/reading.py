"""A log's cells as text by role, and the neutral frame that every reader makes of them.

========  ==========================================================================
column    meaning
========  ==========================================================================
row       line of the file (the header counts), or record of a JSON file
job       the log's own name of the job; several rows are its runs, or parts of a gang
submit    submission, in microseconds as all times; missing (NA) where unknown, as all are
start     when the row's GPUs were taken
end       when they were given back
gpus      GPUs, may be a share of one
========  ==========================================================================

Where the log has them: ``duration``, ``deadline``, ``weight``, ``user``, ``server``, ``state``,
``part`` (cluster or tenant), ``gpu_kinds`` (on one of which it runs: ``V100|P100``), ``paused``
(how long it stood still within a run), ``failed`` (the run came to nothing), and what
`hindsched.instances.traces.table` adds for values that fall with time.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.instances.io import MOST_BYTES, decoded, json_records, read_bytes
from hindsched.instances.traces.capacity import Capacity
from hindsched.instances.traces.times import LogClock, by_rules, is_time, numbers, seconds_text
from hindsched.json_types import JsonObject

NONE_WORDS = frozenset(("", "None", "null", "NULL", "NaN", "nan", "NA", "N/A", "NaT"))
"""How tables write that there is no value."""
MOST_GPUS = 1_000_000
LONGEST_NAME = 200
UNPRINTABLE = r"([\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff])"
REQUEUES = ("restart", "resume", "separate")
"""A job run again begins anew, goes on where it was, or is a job of its own."""
OTHER_FORMATS = {"JobID": "sacct", "{": "kubernetes", "[": "kubernetes", "": "swf"}
"""By how a file begins: the format of one that is no table."""
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ASIDE = "set aside: not judged"
LEFT_OUT = "row left out"
UNJUDGED = (ASIDE, LEFT_OUT, "not a job", "record left out", "its bursts are read instead")
"""What is done to a row that no judged job has."""
NO_GPU = "asked for no GPU"
TEXTS = ("user", "server", "state", "part", "gpu_kinds")  # roles that are taken as they stand
MOST_EXAMPLES = 100
MOMENTS = ("submit", "start", "end", "deadline")


class CannotJudge(InputError):
    """A log that can be read, and does not say what a judgement needs."""

    because = ""  # the same as a clause
    rows_read = 0
    notes: Sequence[JsonObject] = ()  # what was noticed till then, a row a kind


@dataclass(frozen=True)
class Format:
    """A format of logs."""

    name: str  # the word of ``--format``
    what: str  # such a file in one phrase
    read: Callable[[Reading], pd.DataFrame]  # makes the neutral frame
    columns: Mapping[str, str] = field(default_factory=dict)  # by role; empty where there are none
    needed: tuple[str, ...] = ()  # roles without which it cannot be read; all if empty
    instead: Mapping[str, str] = field(default_factory=dict)  # roles that do as well as others
    # Other usual names of columns by role, letters and digits only; those before are preferred.
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Settings with their default, or with the words that they may be, the default first.
    settings: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    time_zone: str | None = None  # of stamps without offset, where the publisher says it
    time_unit: str = "s"  # of its numbers, unless the user says otherwise
    missing: Collection[str] = NONE_WORDS  # how it writes that there is no value


class Notes:
    """What a reader noticed, a row each: row of the log, column, value, rule, what was done."""

    def __init__(self) -> None:
        self._frames = [pd.DataFrame(columns=["row", "column", "value", "rule", "done"])]

    def __len__(self) -> int:
        return sum(map(len, self._frames))

    def add(self, rows: Any, column: str, values: Any, rule: str, done: str) -> None:
        """Note the same of some rows (0 for the log as a whole); one value for all, or one each."""
        rows = np.atleast_1d(np.asarray(rows))
        if len(rows):
            values = values if isinstance(values, str) else list(values)
            columns = {"row": rows, "column": column, "value": values, "rule": rule, "done": done}
            self._frames.append(pd.DataFrame(columns))

    def _kinds(self) -> Any:
        notes = pd.concat(self._frames[1:] or self._frames, ignore_index=True)
        notes["value"] = notes["value"].map(short)
        return notes.groupby(["column", "rule", "done"], sort=False, as_index=False)

    def to_frame(self) -> pd.DataFrame:
        """At most 100 notes of a kind, by row."""
        notes: pd.DataFrame = self._kinds().head(MOST_EXAMPLES)
        return notes.sort_values("row", kind="stable", ignore_index=True)

    def summary(self) -> list[JsonObject]:
        """A row a kind: how many, where first, what was done; most frequent first."""
        kinds = self._kinds().agg(
            count=("row", "size"), first_row=("row", "first"), first_value=("value", "first")
        )
        rows: list[JsonObject] = kinds.sort_values("count", ascending=False, kind="stable").to_dict(
            "records"
        )
        return rows


def short(value: object, limit: int = 80) -> str:
    """A cell for people: printable, on one line and not too long."""
    marks = (mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in str(value))
    text = "".join(marks)
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass
class Reading:
    """One log while it is read: how the user wants it read, its cells, and what it says."""

    form: Format
    path: Path
    clock: LogClock
    columns: Mapping[str, str] = field(default_factory=dict)  # that the user names; then all
    settings: Mapping[str, Any] = field(default_factory=dict)  # likewise
    skip_broken: bool = False  # leave rows out that break a rule, instead of refusing
    keeps_broken: bool = False  # keep rows with a broken cell, which is missing then
    most_bytes: int = MOST_BYTES  # that the file may unpack to
    word: str = "row"  # what a row is in errors, and what stands behind them
    hint: str = " (`skip_broken` leaves such rows out)"
    notes: Notes = field(default_factory=Notes)
    sha256: str = ""
    rows_read: int = 0
    capacity: Capacity | None = None
    requeues: str = ""  # one of `REQUEUES`; empty where the rows say it
    facts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        form, self.said = self.form, set(self.columns)
        for role, column in self.columns.items():
            if role not in form.columns or not column:
                known = ", ".join(form.columns) or "(none: this format has no columns to name)"
                rule = f"must name one of {known}" if column else "must name a column of the log"
                raise InputError("column", f"{role}={column}", rule)
        for name in self.settings:
            if name not in form.settings:
                known = ", ".join(form.settings) or "(none)"
                raise InputError("set", name, f"{form.name} has the settings {known}")
        self.columns, given, self.settings = {**form.columns, **self.columns}, self.settings, {}
        for name, words in form.settings.items():
            first = words if isinstance(words, str) else words[0]
            self.settings[name] = value = str(given.get(name, first))
            if not isinstance(words, str) and value not in words:
                raise InputError(name, value, f"must be one of {', '.join(words)}")
        self.take(pd.DataFrame())

    @property
    def source(self) -> str:
        """The log's name in errors."""
        return str(self.path)

    def content(self) -> str:
        """The file's text; its hash is kept."""
        data, self.sha256 = read_bytes(self.path, self.most_bytes)
        if not data:
            raise InputError(self.source, "(empty)", "must hold something")
        return decoded(data, self.source)

    def take(self, cells: pd.DataFrame) -> None:
        """Go on with these cells."""
        self.cells = cells  # texts, a column a role, by row of the file
        moments = cells[[role for role in MOMENTS if role in cells]].to_numpy(dtype=object)
        self.clock.settle_dates(pd.Series(pd.unique(moments.ravel()), dtype=object), self.source)
        self.broken = pd.Series(False, index=cells.index)  # rows that break a rule

    def table(self, delimiter: str = "", *, quoted: bool = True, what: str = "") -> None:
        """Take the file as a table with a header; no delimiter for the one that its header has."""
        what = what or f"{self.form.what} with a header"
        self.take_table(read_table(self.content(), self.source, delimiter, quoted, what), what)

    def take_table(self, table: pd.DataFrame, what: str) -> None:
        """Take the columns that have roles; rows of too few or too many cells are broken."""
        odd = table.pop("(cells)") if "(cells)" in table else pd.Series(0, index=table.index)
        names, needed = list(table.columns), {*(self.form.needed or self.form.columns), *self.said}
        self._guess_columns(table, needed)
        for role, column in self.columns.items():
            if column not in names and role in needed - self._served(names):
                shown = ", ".join(names[:30]) or "(none)"
                names_it = f"`columns` {role}=NAME names it"
                other = OTHER_FORMATS.get(names[0] if names[0].isalpha() else names[0][:1])
                if other is not None and self.form.name == "csv":
                    names_it = f"`format` {other} reads files that begin like this one"
                hint = "" if self.keeps_broken else f" for {role}: {names_it}"
                rule = f"must be {what} with a column {column!r}{hint}"
                error = CannotJudge(f"{self.source}, row 1, columns", shown, rule)
                error.because = f"no column says {role} (there are {shown}; {names_it})"
                if role in ("start", "end"):
                    error.because += "; generate --from-trace makes an instance of jobs alone"
                if numbers(pd.Series(names, dtype=object)).notna().any():
                    error.because += "; the first row must name the columns"
                raise error
        self.rows_read += len(table)
        rule = f"must have {len(names)} cells as the header has"
        for row, count in odd[odd > 0].items():
            if not self.keeps_broken:
                self.break_row(row, "(all)", f"{count} cells", rule)
            elif count > len(names):
                raise InputError(f"{self.source}, row {row}", f"{count} cells", rule)
        kept = table if self.keeps_broken else table[odd == 0]
        roles = {role: column for role, column in self.columns.items() if column in names}
        made = {role: kept[column].fillna("").str.strip() for role, column in roles.items()}
        self.take(pd.DataFrame(made, index=kept.index, dtype=object))

    def _served(self, names: Collection[str]) -> set[str]:
        """Roles that have no column and need none, for another does as well."""
        instead = self.form.instead.items()
        return {role for role, other in instead if self.columns[other] in names}

    def _guess_columns(self, table: pd.DataFrame, needed: Collection[str]) -> None:
        """Find columns that go by other usual names and hold what they should; say which."""
        names = [str(name) for name in table]
        plain = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in names}
        guessed: dict[str, str] = {}
        for role, words in self.form.synonyms.items():
            taken = {*self.columns.values(), *guessed.values()}
            served = {
                other for one, other in self.form.instead.items()
                if self.columns[one] not in plain and one not in guessed
            }  # fmt: skip
            wanted = {*needed, *TEXTS, "elapsed", *served}
            if self.columns[role] in plain or not ({role} - self.said & wanted):
                continue
            for word in (re.sub("_", "", role), *words):
                fits = [name for name in names if plain[name] == word and name not in taken]
                if fits and self._can_be(role, table[fits[0]]):
                    guessed[role] = fits[0]
                    break
        self.columns = {**self.columns, **guessed}
        if guessed:
            found = ", ".join(f'{role} from "{column}"' for role, column in guessed.items())
            self.facts.append(f"Read {found}; `columns` to change.")

    def _can_be(self, role: str, cells: pd.Series) -> bool:
        """Whether most of the first cells of a column are times, or numbers, where the role is."""
        texts = cells.fillna("").str.strip()
        some = texts[~texts.isin(self.form.missing)].head(MOST_EXAMPLES).astype(object)
        if role in MOMENTS:
            return bool(is_time(some).mean() > 0.5)
        return role != "gpus" or bool(numbers(some).notna().mean() > 0.5)

    def take_records(
        self, text: str, key: str, word: str, columns: Mapping[str, str],
        cells_of: Callable[[int, Any], list[dict[str, str]]],
    ) -> None:  # fmt: skip
        """Take the records of a JSON text, each of which gives rows of cells by role."""
        if self.said:
            raise InputError("column", ", ".join(sorted(self.said)), "JSON has no columns to name")
        self.columns, self.word = columns, word
        index: list[int] = []
        rows: list[dict[str, str]] = []
        for number, record in enumerate(json_records(text, key, self.source), start=1):
            self.rows_read += 1
            try:
                rows += cells_of(number, record)
            except Malformed as error:
                self.break_row(number, *error.args)
            index += [number] * (len(rows) - len(index))
        self.take(pd.DataFrame(rows, index, list(columns), dtype=object).fillna(""))

    def take_frame(self, frame: pd.DataFrame) -> None:
        """Take a frame's columns; rows are counted from 1."""
        self.hint = ""
        if not len(frame):
            raise InputError("frame", "0 rows", "must have a row a job")
        names = [str(name) for name in frame.columns]
        _check_unique_names(names, "frame, row 1")
        texts = {n: _texts_of(frame.iloc[:, at]).to_numpy() for at, n in enumerate(names)}
        rows = pd.RangeIndex(1, len(frame) + 1)
        self.take_table(pd.DataFrame(texts, index=rows), "a frame")

    def has(self, role: str) -> bool:
        """Whether the log has a column for this role."""
        return role in self.cells

    def column(self, role: str) -> str:
        """The log's name of a role's column."""
        return self.columns.get(role, role)

    def text(self, role: str) -> pd.Series:
        """Cells of a role; empty where the log has no such column."""
        return self.cells[role] if self.has(role) else pd.Series("", index=self.cells.index)

    def names(self, role: str) -> pd.Series:
        """Names: printable, of at most 200 characters and not empty."""
        self._parsed(role, _parse_names, missing=())
        return self.text(role)

    def times(self, role: str, *before: pd.Series, notes: bool = True) -> pd.Series:
        """Times of a role in microseconds.

        Of the two times of a stamp in the hour that a clock set back repeats, the first counts,
        unless it would precede what it must follow (the first known of `before`) and the second
        would not.
        """
        parsed = self._parsed(role, self.clock.times, self.form.missing)
        least, second = parsed["value"], parsed["later"]
        for times in reversed(before):
            least = times.fillna(least)
        repeats = second.notna()
        taken = repeats & known_true((parsed["value"] < least) & (least <= second))
        rule = f"the clock of {self.clock.zone} shows this time twice"
        done = "taken as the second, for it follows what is before it"
        if notes:
            self.note(repeats & ~taken, role, self.text(role), rule, "taken as the first")
            self.note(taken, role, self.text(role), rule, done)
        return parsed["value"].mask(taken, second)

    def spans(self, role: str) -> pd.Series:
        """Durations of a role in microseconds."""
        return self._parsed(role, self.clock.spans, self.form.missing)["value"]

    def amounts(self, role: str) -> pd.Series:
        """Numbers of GPUs; NaN where there is none."""
        return self._parsed(role, _parse_amounts, self.form.missing)["value"].astype(float)

    def weights(self, role: str) -> pd.Series:
        """Positive numbers; 1 where there is none."""
        return (
            self._parsed(role, _parse_weights, self.form.missing)["value"].astype(float).fillna(1.0)
        )

    def break_row(self, row: Any, column: str, value: object, rule: str) -> None:
        """Refuse the log for one cell, or note that its row is left out."""
        if not (self.skip_broken or self.keeps_broken):
            where = f"{self.source}, {self.word} {row}, column {column}"
            raise InputError(where, value if str(value) else "(empty)", rule + self.hint)
        self.notes.add(int(row), column, str(value), rule, LEFT_OUT)

    def refuse(self, mask: pd.Series, role: str, values: Any, rules: Any) -> None:
        """Refuse the log for the first of some rows, or leave them all out."""
        refused = pd.DataFrame({"value": values, "rule": rules}, index=mask.index)[mask]
        for row, value, rule in refused.itertuples():
            self.break_row(row, self.column(role), value, rule)
        self.broken |= mask

    def note(self, mask: pd.Series, role: str, values: Any, rule: str, done: str) -> None:
        """Note the same of the rows of a mask."""
        values = values if isinstance(values, str) else values[mask]
        self.notes.add(mask.index[mask], self.column(role), values, rule, done)

    def neutral(self, keep: pd.Series | None = None, **columns: Any) -> pd.DataFrame:
        """The neutral frame of these columns and the log's texts, without broken rows."""
        given = {role: self.text(role) for role in TEXTS if self.has(role)} | columns
        given = {name: values for name, values in given.items() if values is not None}
        made = pd.DataFrame({"row": self.cells.index, **given}, index=self.cells.index)
        kept = ~self.broken | self.keeps_broken
        return made[kept if keep is None else kept & keep].reset_index(drop=True)

    def standard(self, **changed: Any) -> pd.DataFrame:
        """The neutral frame of the usual roles, with some columns changed.

        A job without a name is its row; one without a start has a wait, one without an end a
        duration.
        """
        made: dict[str, Any] = {"submit": self.times("submit"), **changed}
        submit = made["submit"]
        if "start" not in made and self.has("wait") and not self.has("start"):
            made["start"] = submit + self.spans("wait")
        if "start" not in made:
            made["start"] = self.times("start", submit)
        if "end" not in made and self.has("duration") and not self.has("end"):
            made["end"] = made["start"] + self.spans("duration")
        if "end" not in made:
            made["end"] = self.times("end", made["start"], submit)
        if "gpus" not in made:
            made["gpus"] = self.amounts("gpus")
        readers = {"duration": self.spans, "deadline": self.times, "weight": self.weights}
        made |= {role: read(role) for role, read in readers.items() if self.has(role)}
        numbers = [f"row-{number}" for number in range(1, len(self.cells) + 1)]
        made["job"] = self.names("job") if self.has("job") else numbers
        return self.neutral(**made)

    def _parsed(
        self, role: str, parse: Callable[[pd.Series], pd.DataFrame], missing: Collection[str]
    ) -> pd.DataFrame:
        """Parse each different cell once; a cell that breaks a rule is refused."""
        cells = self.text(role)
        different = pd.Index([cell for cell in cells.unique() if cell not in missing], dtype=object)
        parsed = parse(pd.Series(different, index=different, dtype=object)).reindex(cells)
        parsed.index = cells.index
        wrong = parsed["rule"].fillna("") != ""
        self.refuse(wrong, role, cells, parsed["rule"])
        parsed.loc[wrong, "value"] = pd.NA
        return parsed


def read_table(
    text: str, source: str, delimiter: str = "", quoted: bool = True,
    what: str = "a table with a header",
) -> pd.DataFrame:  # fmt: skip
    """A table's rows as text, indexed by line; ``(cells)`` counts those of odd rows."""
    if not text.strip():
        raise InputError(source, "(empty)", f"must be {what}")
    if not delimiter:
        header_line = text.lstrip().partition("\n")[0]
        delimiter = max(DELIMITERS.values(), key=header_line.count)
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, quoting=quoting, strict=True)
    csv.field_size_limit(1 << 24)
    lines: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                lines.append((reader.line_num, cells))
    except csv.Error as error:
        where = f"{source}, row {reader.line_num}"
        raise InputError(where, str(error), f"must be {what}") from None
    (line, header), rows = lines[0], lines[1:]
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


def _texts_of(values: pd.Series) -> pd.Series:
    """A frame's column as a table would write it; nothing for what is missing."""
    if pd.api.types.is_timedelta64_dtype(values):
        micro: Any = values / pd.Timedelta(microseconds=1)  # type: ignore[operator]
        texts = micro.round().fillna(0).map(seconds_text)
    else:
        texts = values.map(str)
    return texts.where(values.notna(), "").astype(object)


def _parse_names(texts: pd.Series) -> pd.DataFrame:
    odd = texts.str.extract(UNPRINTABLE)[0].fillna("")
    return by_rules(texts, {
        "must not be empty": texts == "",
        f"must have at most {LONGEST_NAME} characters": texts.str.len() > LONGEST_NAME,
        **{f"must not hold the invisible character U+{ord(mark):04X}": odd == mark
           for mark in {*odd} - {""}},
    })  # fmt: skip


def _parse_amounts(texts: pd.Series) -> pd.DataFrame:
    value = numbers(texts)
    return by_rules(value, {
        "must be a number of GPUs": value.isna(),
        "must not be negative": value < 0,
        f"must be at most {MOST_GPUS} GPUs": value > MOST_GPUS,
    })  # fmt: skip


def _parse_weights(texts: pd.Series) -> pd.DataFrame:
    value = numbers(texts)
    return by_rules(value, {"must be a number above 0, at most 1e15": ~value.between(1e-15, 1e15)})


def known_true(mask: pd.Series) -> pd.Series:
    """A comparison that a missing value does not satisfy."""
    return mask.fillna(False).astype(bool)


class Malformed(Exception):
    """Column, value and rule of a record that breaks it."""


def inner(holder: JsonObject, key: str) -> JsonObject:
    """The object in a JSON object; an empty one where there is none."""
    value = holder.get(key)
    if value is not None and not isinstance(value, dict):
        raise Malformed(key, value, "must be an object")
    return value or {}


def inner_list(holder: JsonObject, key: str, kind: type = dict) -> list[Any]:
    """The list (of objects) in a JSON object; an empty one where there is none."""
    value = holder.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise Malformed(key, value, "must be a list" + " of objects" * (kind is dict))
    return value
