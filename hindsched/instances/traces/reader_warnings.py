"""What a reader noticed: row, column, value, the rule at issue and what was done about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from hindsched.errors import InputError
from hindsched.json_types import JsonObject

MOST_EXAMPLES = 100
"""Kept of each kind; the others are counted."""
COLUMNS = ("row", "column", "value", "rule", "done")


@dataclass
class ReaderWarnings:
    """Everything that a reader noticed about a log.

    Parameters
    ----------
    source : str
        The log, in errors.
    skip_broken : bool
        Leave broken rows out and note them, instead of refusing the log.
    word : str
        What a row is called: ``row``, ``pod`` or ``job``.
    hint : str
        How the user can have broken rows left out.
    """

    source: str
    skip_broken: bool = False
    word: str = "row"
    hint: str = " (--skip-broken leaves such rows out)"
    _kept: list[JsonObject] = field(default_factory=list, repr=False)
    _counts: dict[tuple[str, str, str], int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def add(self, rows: Any, column: str, values: Any, rule: str, done: str) -> None:
        """Note the same of some rows (a number, or several); one value for all, or one a row.

        A row is the line of the file (the header counts), or the record of a JSON file; 0 stands
        for the log as a whole.
        """
        lines = np.atleast_1d(np.asarray(rows)).tolist()
        if not lines:
            return
        texts = [values] * len(lines) if isinstance(values, str | int | float) else list(values)
        before = self._counts.get((column, rule, done), 0)
        self._counts[column, rule, done] = before + len(lines)
        for line, value in list(zip(lines, texts, strict=True))[: max(0, MOST_EXAMPLES - before)]:
            cells = (int(line), column, short(value), rule, done)
            self._kept.append(dict(zip(COLUMNS, cells, strict=True)))

    def broken(self, row: int, column: str, value: object, rule: str) -> None:
        """Refuse the log for one cell, or note that its row is left out."""
        if not self.skip_broken:
            where = f"{self.source}, {self.word} {row}, column {column}"
            raise InputError(where, value if str(value) else "(empty)", rule + self.hint)
        self.add(row, column, str(value), rule, "row left out")

    def summary(self) -> list[JsonObject]:
        """A row a kind: how many, where first, what was done; most frequent first."""
        first: dict[Any, JsonObject] = {}
        for note in self._kept:
            first.setdefault((note["column"], note["rule"], note["done"]), note)
        rows: list[JsonObject] = [
            {"count": count, "column": key[0], "rule": key[1], "done": key[2],
             "first_row": first[key]["row"], "first_value": first[key]["value"]}
            for key, count in sorted(self._counts.items(), key=lambda item: -item[1])
        ]  # fmt: skip
        return rows

    def to_frame(self) -> pd.DataFrame:
        """At most 100 of a kind: row, column, value, rule, done."""
        found = pd.DataFrame(self._kept, columns=list(COLUMNS))
        return found.sort_values("row", kind="stable").reset_index(drop=True)


def short(value: object, limit: int = 80) -> str:
    """A cell for people: printable, on one line and not too long."""
    marks = (mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in str(value))
    text = "".join(marks)
    return text if len(text) <= limit else text[: limit - 3] + "..."
