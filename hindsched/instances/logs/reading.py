"""What a reader works with: the log's bytes, its clock, which column is what, notes, and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hindsched.errors import InputError
from hindsched.instances.logs.capacity import Capacity
from hindsched.instances.logs.notes import Notes
from hindsched.instances.logs.rows import Rows
from hindsched.instances.logs.times import Clock
from hindsched.instances.open_compressed import Source

SPARE_LINES = 1_000_000
"""Lines beside rows that a file may have: comments, headers, empty ones."""


@dataclass(frozen=True)
class Format:
    """A format of logs.

    Parameters
    ----------
    name : str
        The word of ``--format``.
    what : str
        What such a file is, in one phrase.
    columns : mapping
        Column of each role, unless the user says otherwise; empty for formats without columns.
    needed : tuple of str
        Roles without which the log cannot be read.
    settings : mapping
        Settings of the format: default and what they mean.
    read : callable
        Reads a `Reading` into its rows.
    time_zone : str, optional
        Zone of stamps without offset, where the format's publisher says it.
    """

    name: str
    what: str
    read: Callable[[Reading], None]
    columns: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    time_zone: str | None = None


@dataclass
class Reading:
    """One log while it is being read.

    Parameters
    ----------
    format : Format
        Its format.
    source : Source
        Its bytes.
    clock : Clock
        Reads its times.
    notes : Notes
        What is noticed.
    columns : dict
        Column of each role.
    needed : set of str
        Roles that must have a column.
    settings : dict
        Values of the format's settings.
    """

    format: Format
    source: Source
    clock: Clock
    notes: Notes
    columns: dict[str, str]
    needed: set[str]
    settings: dict[str, str]
    rows: Rows = field(default_factory=Rows)
    rows_read: int = 0
    row_word: str = "row"
    reruns: str = ""
    """What several runs of a job are, one of `reruns.RERUNS`; empty where the rows say it."""
    capacity: Capacity | None = None
    gpus_a_server: int | None = None
    facts: list[str] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    """Roles that the user named a column for."""

    def count_rows(self, number: int) -> None:
        """Count rows read; refuse more than fit."""
        self.rows_read += number
        most = self.source.limits.most_rows
        if most is not None and self.rows_read > most:
            rule = f"must have at most {most} rows, which is what fits (most_rows)"
            raise InputError(self.source.name, f"{most + 1} rows or more", rule)

    def check_lines(self, number: int) -> None:
        """Refuse a file of far more lines than rows, such as one of empty lines."""
        most = self.source.limits.most_rows
        if most is not None and number > most + SPARE_LINES:
            rule = f"must have at most {most + SPARE_LINES} lines (most_rows)"
            raise InputError(self.source.name, f"{number} lines or more", rule)

    def refuse_columns(self, what: str) -> None:
        """Refuse columns that the user named where there are none."""
        if self.said:
            raise InputError("column", ", ".join(sorted(self.said)), f"{what} has no columns")

    def choice(self, setting: str, known: tuple[str, ...]) -> str:
        """Value of a setting that is one of some words."""
        value = self.settings[setting]
        if value not in known:
            raise InputError(setting, value, f"must be one of {', '.join(known)}")
        return value


def resolve_columns(form: Format, said: Mapping[str, str]) -> dict[str, str]:
    """Column of each role: the format's, with the user's names in their place."""
    for role, column in said.items():
        if role not in form.columns:
            known = ", ".join(form.columns) or "(none: this format has no columns to name)"
            raise InputError("column", f"{role}={column}", f"must name one of {known}")
        if not column:
            raise InputError("column", f"{role}=", "must name a column of the log")
    return {**form.columns, **said}


def resolve_settings(form: Format, said: Mapping[str, object]) -> dict[str, str]:
    """Values of a format's settings."""
    for name in said:
        if name not in form.settings:
            known = ", ".join(form.settings) or "(none)"
            raise InputError("set", name, f"{form.name} has the settings {known}")
    defaults = {name: default for name, (default, _) in form.settings.items()}
    return {**defaults, **{name: str(value) for name, value in said.items()}}
