"""What a reader noticed: row, column, value, the rule at issue and what was done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.json_types import JsonObject

if TYPE_CHECKING:
    import pandas as pd

MOST_EXAMPLES = 100
"""Notes kept of each kind; the others are counted."""
LONGEST_VALUE = 80
LEFT_OUT = "row left out"


@dataclass(frozen=True)
class Note:
    """One remark about one cell.

    Parameters
    ----------
    row : int
        Line of the file (the header counts), or record of a JSON file; 0 for the log as a whole.
    column : str
        Column of the log.
    value : str
        What stands there.
    rule : str
        The rule at issue.
    done : str
        What the reader did.
    """

    row: int
    column: str
    value: str
    rule: str
    done: str


@dataclass
class Notes:
    """Everything that a reader noticed about a log.

    Parameters
    ----------
    source : str
        The log, in errors.
    skip_broken : bool
        Leave broken rows out and note them, instead of refusing the log.
    hint : str
        How the user can have them left out.
    """

    source: str
    skip_broken: bool = False
    hint: str = " (--skip-broken leaves such rows out)"
    _kept: dict[tuple[str, str, str], list[Note]] = field(default_factory=dict, repr=False)
    _counts: dict[tuple[str, str, str], int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def add(self, row: int, column: str, value: object, rule: str, done: str) -> None:
        """Note one cell."""
        key = column, rule, done
        self._counts[key] = self._counts.get(key, 0) + 1
        kept = self._kept.setdefault(key, [])
        if len(kept) < MOST_EXAMPLES:
            kept.append(Note(int(row), column, short(value), rule, done))

    def add_all(
        self,
        rows: Ints,
        column: str,
        values: Sequence[object] | NDArray[Any] | str,
        rule: str,
        done: str,
    ) -> None:
        """Note the same of many rows; one value for all, or a value a row."""
        for index in range(min(len(rows), MOST_EXAMPLES)):
            value = values if isinstance(values, str) else values[index]
            self.add(int(rows[index]), column, value, rule, done)
        if len(rows) > MOST_EXAMPLES:
            self._counts[column, rule, done] += len(rows) - MOST_EXAMPLES

    def broken(self, row: int, column: str, value: object, rule: str, word: str = "row") -> None:
        """Refuse the log for one cell, or note that its row is left out."""
        if not self.skip_broken:
            where = f"{self.source}, {word} {row}, column {column}"
            raise InputError(where, value if str(value) else "(empty)", rule + self.hint)
        self.add(row, column, value, rule, LEFT_OUT)

    def summary(self) -> list[JsonObject]:
        """A row a kind of note: how many, where first, what was done; most frequent first."""
        rows: list[JsonObject] = []
        for key, count in sorted(self._counts.items(), key=lambda item: -item[1]):
            first = self._kept[key][0]
            rows.append(
                {
                    "count": count,
                    "column": key[0],
                    "rule": key[1],
                    "done": key[2],
                    "first_row": first.row,
                    "first_value": first.value,
                }
            )
        return rows

    def to_frame(self) -> pd.DataFrame:
        """The notes kept (at most 100 of a kind): row, column, value, rule, done."""
        import pandas as pd

        found = sorted((note for kept in self._kept.values() for note in kept), key=_by_row)
        columns = list(Note.__dataclass_fields__)
        return pd.DataFrame([asdict(note) for note in found], columns=columns)


def short(value: object, limit: int = LONGEST_VALUE) -> str:
    """A cell for people: printable, on one line and not too long."""
    text = str(value)
    text = "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _by_row(note: Note) -> int:
    return note.row
