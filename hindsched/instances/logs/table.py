"""Tables of text with a header, read in chunks: which column is what, and cells as values."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, islice
from typing import Literal

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.logs.reading import Reading
from hindsched.instances.logs.times import DECIMAL, MISSING, integers

CHUNK_ROWS = 50_000
NONE_WORDS = frozenset(("", "None", "null", "NULL", "NaN", "nan", "NA", "N/A", "NaT"))
"""How tables write that there is no value."""
MOST_GPUS = 1_000_000
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST_NAME = 200
SPACE = re.compile(r"[^\S\n]")


@dataclass
class Chunk:
    """Some rows of a table.

    Parameters
    ----------
    reading : Reading
        What is being read.
    rows : ndarray of int
        Line of each row.
    cells : dict
        Texts by column.
    """

    reading: Reading
    rows: Ints
    cells: Mapping[str, Sequence[str]]
    broken: Bools = field(init=False)

    def __post_init__(self) -> None:
        self.broken = np.zeros(len(self.rows), dtype=bool)

    def __len__(self) -> int:
        return len(self.rows)

    def has(self, role: str) -> bool:
        """Whether the table has a column for this role."""
        return self.reading.columns.get(role) in self.cells

    def texts(self, role: str) -> Sequence[str]:
        """Cells of a role's column."""
        return self.cells[self.reading.columns[role]]

    def names(self, role: str) -> Sequence[str]:
        """Names: printable, of at most 200 characters and not empty."""
        texts, column = self.texts(role), self.reading.columns[role]
        if max(map(len, texts), default=0) <= LONGEST_NAME and not UNPRINTABLE.search(
            "".join(texts)
        ):
            if "" in texts:
                for index in (i for i, text in enumerate(texts) if not text):
                    self.refuse(index, column, "", "must not be empty")
            return texts
        for index, text in enumerate(texts):
            self._check_name(index, column, text)
        return texts

    def times(self, role: str, missing: frozenset[str] = NONE_WORDS) -> tuple[Ints, dict[int, int]]:
        """Times of a role's column, and the later of two where the clock was set back."""
        column = self.reading.columns[role]
        return self.reading.clock.parse(self.texts(role), column, missing, self.refuse)

    def spans(self, role: str, missing: frozenset[str] = NONE_WORDS) -> Ints:
        """Durations of a role's column, in nanoseconds."""
        column = self.reading.columns[role]
        return self.reading.clock.span(self.texts(role), column, missing, self.refuse)

    def thousandths(self, role: str, missing: frozenset[str] = NONE_WORDS) -> Ints:
        """Amounts of GPUs in thousandths; `MISSING` where there is none."""
        texts, column = self.texts(role), self.reading.columns[role]
        whole = integers(texts, missing)
        values = np.full(len(texts), MISSING, dtype=np.int64)
        if whole is not None and ((whole == MISSING) | (np.abs(whole) <= MOST_GPUS)).all():
            values = np.where(whole == MISSING, MISSING, whole * 1000)
        else:
            for index, text in enumerate(texts):
                if text in missing:
                    continue
                if not DECIMAL.fullmatch(text):
                    self.refuse(index, column, text, "must be a number of GPUs")
                    continue
                number = Decimal(text)
                if abs(number) > MOST_GPUS:
                    self.refuse(index, column, text, f"must be at most {MOST_GPUS} GPUs")
                else:  # what is finer than a thousandth is a share of a GPU all the same
                    values[index] = int(number * 1000)
                    if number != int(number) and values[index] % 1000 == 0:
                        values[index] += 1
        for at in np.flatnonzero((values < 0) & (values != MISSING)):
            self.refuse(int(at), column, texts[int(at)], "must not be negative")
        return values

    def weights(self, role: str) -> Floats:
        """Positive numbers; 1 where there is none."""
        texts, column = self.texts(role), self.reading.columns[role]
        values = np.ones(len(texts))
        for index, text in enumerate(texts):
            if text in NONE_WORDS:
                continue
            number = float(text) if DECIMAL.fullmatch(text) else -1.0
            if not 1e-15 <= number <= 1e15:
                self.refuse(index, column, text, "must be a number above 0, at most 1e15")
            else:
                values[index] = number
        return values

    def refuse(self, index: int, column: str, value: str, rule: str) -> None:
        """Refuse the log for a cell, or leave its row out."""
        self.broken[index] = True
        row = int(self.rows[index])
        self.reading.notes.broken(row, column, value, rule, self.reading.row_word)

    def _check_name(self, index: int, column: str, text: str) -> None:
        if not text:
            self.refuse(index, column, text, "must not be empty")
        elif len(text) > LONGEST_NAME:
            self.refuse(index, column, text, f"must have at most {LONGEST_NAME} characters")
        elif found := UNPRINTABLE.search(text):
            rule = f"must not hold the invisible character U+{ord(found[0]):04X}"
            self.refuse(index, column, text, rule)


def chunks(
    reading: Reading,
    lines: Iterator[str],
    delimiter: str = ",",
    *,
    quoted: bool = True,
    what: str = "a table with a header",
) -> Iterator[Chunk]:
    """Read a table with a header.

    Parameters
    ----------
    reading : Reading
        What is being read: its columns are looked for in the header.
    lines : iterator of str
        Lines, the header first.
    delimiter : str
        What separates cells.
    quoted : bool
        Whether cells may stand in double quotes.
    what : str
        What the file should be, in errors.
    """
    csv.field_size_limit(min(reading.source.limits.longest_line, sys.maxsize >> 33))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    source = reading.source.name
    begun, table = 0, csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        header = next((cells for cells in table if any(map(str.strip, cells))), None)
        if header is None:
            raise InputError(source, "(empty)", f"must be {what}")
        names = [name.strip() for name in header]
        while names and not names[-1]:  # a delimiter at the end of each line
            names.pop()
        check_header(reading, names, what)
        wanted = [names.index(c) for c in dict.fromkeys(reading.columns.values()) if c in names]
        begun = table.line_num
        while block := list(islice(lines, CHUNK_ROWS)):
            if quoted and '"' in "".join(block):
                lines = chain(block, lines)
                break
            rows = range(begun + 1, begun + len(block) + 1)
            begun += len(block)
            reading.check_lines(begun)
            cells = [line.split(delimiter) for line in block]
            yield _chunk(reading, rows, cells, names, wanted, len(header))
        # From the first quotation mark on a cell may hold delimiters and go on in the next line.
        table = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
        while True:
            numbers, cells = [], []
            for row in islice(table, CHUNK_ROWS):
                cells.append(row)
                numbers.append(begun + table.line_num)
            if not cells:
                return
            reading.check_lines(numbers[-1])
            yield _chunk(reading, numbers, cells, names, wanted, len(header))
    except csv.Error as error:
        where = f"{source}, row {begun + table.line_num}"
        raise InputError(where, str(error), f"must be {what}") from None


def _chunk(
    reading: Reading,
    rows: Sequence[int],
    cells: list[list[str]],
    names: list[str],
    wanted: list[int],
    width: int,
) -> Chunk:
    lines = np.array(rows, dtype=np.int64)
    if any(len(row) != width for row in cells):
        good: list[int] = []
        for index, row in enumerate(cells):
            if len(row) == width:
                good.append(index)
            elif row and any(map(str.strip, row)):
                value, rule = f"{len(row)} cells", f"must have {width} cells as the header has"
                reading.notes.broken(rows[index], "(all)", value, rule)
                reading.count_rows(1)
        lines, cells = lines[good], [cells[index] for index in good]
    reading.count_rows(len(cells))
    columns = list(zip(*cells, strict=True)) if cells else [() for _ in range(width)]
    found = {names[at]: _stripped(columns[at]) for at in wanted}
    return Chunk(reading, lines, found)


def _stripped(cells: Sequence[str]) -> Sequence[str]:
    """Cells without the spaces around them."""
    text = "\n".join(cells)
    return [*map(str.strip, cells)] if SPACE.search(text) else cells


def check_header(reading: Reading, names: Sequence[str], what: str) -> None:
    """Refuse a header without the columns needed, or with one of them twice."""
    where = f"{reading.source.name}, row 1"
    for role, column in reading.columns.items():
        if names.count(column) > 1:
            raise InputError(where, column, "must stand once in the header")
        if column not in names and role in reading.needed:
            shown = ", ".join(names[:30]) or "(none)"
            rule = f"must be {what} with a column {column!r}"
            hint = f" for {role}: --column {role}=NAME says which it is"
            raise InputError(f"{where}, columns", shown, rule + hint)
