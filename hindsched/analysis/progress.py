"""One progress bar a call, with an estimate of what is left: terminal, notebook, plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


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
    if console.is_jupyter:
        yield _notebook_bar(total, title, done)
        return
    if not console.is_terminal:
        yield _line_writer(console, total, title, done)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", style="dim"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, completed=done, last="")
        yield lambda text: bar.update(task, advance=1, last=text)


def time_left(seconds: float, steps: int, remaining: int) -> str:
    """What is left at the pace of the steps so far, in words.

    Parameters
    ----------
    seconds : float
        That the steps took.
    steps, remaining : int
        Done in this call, and still to do.

    Examples
    --------
    >>> time_left(30.0, 10, 20), time_left(3600.0, 10, 20), time_left(5.0, 10, 0)
    ('about 60 s left', 'about 120 min left', 'done')
    """
    if remaining <= 0:
        return "done"
    left = seconds / max(1, steps) * remaining
    return f"about {left:.0f} s left" if left < 120 else f"about {left / 60:.0f} min left"


def _line_writer(console: Console, total: int, title: str, done: int) -> Callable[[str], None]:
    count, started = done, time.monotonic()
    every = max(1, total // 10)

    def advance(text: str) -> None:
        nonlocal count
        count += 1
        if count % every == 0 or count == total:
            left = time_left(time.monotonic() - started, count - done, total - count)
            line = f"{title}: {count}/{total} {text} ({left})"
            console.print(line, soft_wrap=True, highlight=False, markup=False)

    return advance


def _notebook_bar(total: int, title: str, done: int) -> Callable[[str], None]:
    """A bar in the cell's output, drawn anew at every step."""
    from IPython.display import HTML, display

    count, started = done, time.monotonic()

    def shown(text: str) -> HTML:
        left = time_left(time.monotonic() - started, count - done, total - count)
        words = f"{title}: {count}/{total}, {left if count > done else 'begins'} {text}".rstrip()
        return HTML(f'<progress value="{count}" max="{total}"></progress> {escape(words)}')

    handle = display(shown(""), display_id=True)

    def advance(text: str) -> None:
        nonlocal count
        count += 1
        if handle is not None:
            handle.update(shown(text if count < total else ""))

    return advance
