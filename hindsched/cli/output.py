"""What commands print: one JSON object on standard output, everything else for people."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hindsched.analysis.tables import cell, jsonable
from hindsched.errors import INTERRUPTED
from hindsched.instances.base import Instance
from hindsched.printable import printable

PIPE_COLUMNS = 200  # width of output that is no terminal, where ``COLUMNS`` says nothing


def console(name: str) -> Console:
    """A console on the present ``stdout`` or ``stderr``, as wide as its terminal or ``COLUMNS``."""
    stream, says = getattr(sys, name), os.environ.get("COLUMNS", "")
    piped = int(says) if says.isdecimal() and int(says) > 0 else PIPE_COLUMNS
    width = None if stream.isatty() else piped
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)


def say(text: str) -> None:
    """Print a line for people on standard error; what could mislead in it is spelled out."""
    console("stderr").print(printable(text), soft_wrap=True)


def tell(text: str, *, width: int | None = None, end: str = "\n") -> None:
    """Print a line that is part of the answer, on standard output, folded to a width if given."""
    console("stdout").print(printable(text), soft_wrap=width is None, width=width, end=end)


def with_options(message: str, options: Iterable[Any]) -> str:
    """A message with the names that options have here: the library calls them by Python's."""
    names = {each.name: max(each.opts, key=len) for each in options}
    names |= {"columns": names.get("column", "columns"), "format": "--format"}
    return re.sub(r"`(\w+)`", lambda match: names.get(match[1], match[0]), message)


def emit_json(data: Mapping[str, object]) -> None:
    """Print one JSON object on standard output."""
    sys.stdout.write(json.dumps(jsonable(data), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def answer(
    as_json: bool,
    data: Mapping[str, object],
    more: Mapping[str, object] | None = None,
    *,
    hidden: Collection[str] = (),
    instance: Instance | None = None,
) -> bool:
    """Print data with `more` as JSON, or as facts for people but for what is hidden from them.

    Returns whether people are asked. They read the library's name of an instance.
    """
    if as_json:
        emit_json({**data, **(more or {})})
        return False
    from hindsched.instances.catalogue import shown_name

    shown = {name: value for name, value in data.items() if name not in hidden}
    show_facts(shown if instance is None else {**shown, "instance": shown_name(instance)})
    return True


def say_better() -> Callable[[int, float], None]:
    """Progress of a search: a line for every better ratio."""
    best = -1.0

    def progress(done: int, ratio: float) -> None:
        nonlocal best
        if ratio > best:
            best = ratio
            say(f"{done:7d} evaluated: ratio {ratio:.6g}")

    return progress


def search_code(facts: Mapping[str, Any], folder: str | None) -> int:
    """The exit code of a search; one that was interrupted says how it goes on."""
    if facts["ended"] != "interrupted":
        return 0
    if folder is not None:
        place = shlex.quote(folder)
        say(f"interrupted; the same command with --resume goes on in {place}")
    return INTERRUPTED


def show_facts(data: Mapping[str, object], stream: str = "stdout") -> None:
    """Print a two-column table of facts."""
    made = Table(show_header=False, box=None, pad_edge=False)
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for key, value in data.items():
        made.add_row(key.replace("_", " "), _cell_text(value))
    console(stream).print(made)


def show_rows(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None,
    width: int | None = None,
) -> None:  # fmt: skip
    """Print an aligned table of records, by default with all that any of them has.

    Numbers are never cut, texts go on in the next line.
    """
    made = Table(
        title=title or None, title_justify="left", header_style="bold", box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0), pad_edge=False, show_edge=False,
    )  # fmt: skip
    names = columns or list(dict.fromkeys(key for row in rows for key in row))
    for name in names:
        values = [row.get(name) for row in rows]
        numeric = any(isinstance(value, int | float) for value in values)
        made.add_column(
            name.replace("_", " "), justify="right" if numeric else "left", overflow="fold",
            min_width=max(len(cell(value)) for value in values) if numeric else None,
        )  # fmt: skip
    for row in rows:
        made.add_row(*(_cell_text(row.get(name)) for name in names))
    screen = console("stdout")
    if screen.measure(made).maximum >= screen.width:
        made.padding = 0
    screen.print(made, width=width)


def _cell_text(value: object) -> Text:
    """A cell; a file's name has what a terminal would act on, the ends of lines too."""
    return Text(printable(cell(value)).replace("\n", "\\n"))
