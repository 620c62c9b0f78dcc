"""What commands print: one JSON object on standard output, everything else for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hindsched.analysis.jsonable import jsonable

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on standard output.", rich_help_panel=None),
]


class _Streams:
    """Consoles that follow ``sys.stdout`` and ``sys.stderr`` even if those are replaced."""

    def __init__(self, *, stderr: bool) -> None:
        self.stderr = stderr

    @property
    def console(self) -> Console:
        """A console on the present stream; output that is no terminal is never wrapped."""
        stream = sys.stderr if self.stderr else sys.stdout
        width = None if stream.isatty() else 200
        return Console(file=stream, highlight=False, width=width)

    def print(self, *values: Any, **options: Any) -> None:
        """Print like rich does."""
        self.console.print(*values, **options)


errors = _Streams(stderr=True)
out = _Streams(stderr=False)


def emit_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    sys.stdout.write(json.dumps(jsonable(data), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line for people on standard error."""
    errors.print(text, markup=False, soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Make an aligned table; numbers are right-aligned and shown with 6 digits."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        numeric = any(isinstance(row[index], int | float) for row in rows)
        made.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        made.add_row(*(cell(value) for value in row))
    return made


def cell(value: Any) -> str:
    """Write a value for a table: absent is a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def facts(data: Mapping[str, Any]) -> Table:
    """Make a two-column table of facts."""
    made = Table(show_header=False, box=None, pad_edge=False)
    made.add_column(style="bold")
    made.add_column()
    for key, value in data.items():
        made.add_row(key.replace("_", " "), cell(value))
    return made
