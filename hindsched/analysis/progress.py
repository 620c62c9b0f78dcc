"""One progress bar a call, with an estimate of what is left: terminal, notebook, or plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(
    total: int, title: str, *, done: int = 0, console: Console | None = None
) -> Iterator[Callable[[str], None]]:
    """Show a bar; where standard error is no terminal, one line per tenth of the work.

    Parameters
    ----------
    total : int
        Number of steps.
    title : str
        What is being done.
    done : int
        Steps done before.
    console : rich.console.Console, optional
        Where to write; None for standard error.

    Yields
    ------
    callable
        ``advance(text)``: one step more, and what it was.
    """
    console = console or Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _line_writer(console, total, title, done)
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("left:"),
        TimeRemainingColumn(), TextColumn("{task.fields[last]}", style="dim"),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, completed=done, last="")
        yield lambda text: bar.update(task, advance=1, last=text)


def _line_writer(console: Console, total: int, title: str, done: int) -> Callable[[str], None]:
    count, started, every = done, time.monotonic(), max(1, total // 10)

    def advance(text: str) -> None:
        nonlocal count
        count += 1
        if count % every == 0 or count == total:
            left = (time.monotonic() - started) / (count - done) * (total - count)
            words = "done" if count == total else f"about {left:.0f} s left"
            line = f"{title}: {count}/{total} {text} ({words})"
            console.print(line, soft_wrap=True, highlight=False, markup=False)

    return advance
