"""The application: its commands, and one line with the right exit code for whatever goes wrong."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from hindsched.cli import (
    audit,
    bench,
    explain,
    figure,
    generate,
    model,
    new_family,
    report,
    score,
    simulate,
    solve,
    worst,
)
from hindsched.cli import info as look
from hindsched.cli.library import library
from hindsched.cli.limits import limited, process_began
from hindsched.cli.output import errors, out
from hindsched.cli.signals import hold_signals
from hindsched.errors import INTERRUPTED, HindschedError
from hindsched.printable import said_by

BAD_INPUT, FAILED = 2, 1

app = typer.Typer(
    name="hindsched",
    help="How good was an online scheduler for distributed ML jobs, in hindsight, with proof.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
WELCOME = """\
hindsched: how good was an online scheduler, in hindsight, and can you prove it?

  hindsched bench small                      solve, run every algorithm, report ratios with proof
  hindsched generate oasis -o x.json         make an instance of your own
  hindsched ratio x.json --algorithm oasis   one algorithm on one instance

hindsched --help lists all commands, hindsched COMMAND --help explains one."""


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print what can change a number, with versions.")
    ] = False,
) -> None:
    """How good was an online scheduler for distributed ML jobs, in hindsight, with proof."""
    if version:
        from hindsched.solvers.door.versions import versions

        found = versions()
        for name in ("hindsched", *(name for name in found if name != "hindsched")):
            out.print(f"{name} {found[name]}", markup=False)
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        out.print(WELCOME, markup=False)


app.command()(limited(bench.bench, of_each=True))
app.command()(limited(audit.audit))
app.command()(limited(generate.generate))
app.command()(limited(solve.solve))
app.command()(limited(model.model))
app.command()(limited(simulate.simulate))
app.command()(limited(simulate.ratio, of_each=True))
app.command()(limited(solve.verify))
app.command()(limited(explain.explain))
app.command()(limited(worst.worst))
app.command()(limited(score.score))
app.command()(limited(figure.figure))
app.command()(limited(look.schema))
app.command("list")(limited(look.list_))
app.command()(limited(look.describe))
app.command()(limited(report.report))
app.command()(limited(new_family.new_family))
app.add_typer(library)


def run(arguments: Sequence[str] | None = None, began: float | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments; None for those of the process.
    began : float, optional
        When the process started that is there for this command, by ``time.monotonic``.

    Returns
    -------
    int
        0 success, 1 a solve or run that failed, 2 bad input, 130 interrupted.
    """
    _open_missing_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    process_began.set(began)
    try:
        code = app(given, standalone_mode=False)
    except HindschedError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # typer takes a file cut short for a Ctrl-D
            return _fail(f"EOFError: {stopped.__cause__}", FAILED)
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        _discard_output()
        return FAILED
    except OSError as error:
        _discard_output()
        name = f"{error.filename}: " if error.filename else ""
        wrong_name = error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
        return _fail(f"{name}{error.strerror or error}", BAD_INPUT if wrong_name else FAILED)
    except Exception as error:
        # Typer's own errors come from its copy of click or from click itself, by version.
        if hasattr(error, "format_message"):
            return _fail(_said_by_typer(error), BAD_INPUT)
        if os.environ.get("HINDSCHED_TRACEBACK"):
            raise
        where = _own_place(error) or "a bug; HINDSCHED_TRACEBACK=1 shows where"
        return _fail(f"{said_by(error)} ({where})", FAILED)
    except SystemExit as error:
        if (place := _own_place(error)) is None:
            raise
        return _fail(f"{said_by(error)} ({place})", FAILED)
    return code if isinstance(code, int) else 0


def _own_place(error: BaseException) -> str | None:
    """Where in an algorithm of the user's own an exception arose."""
    from hindsched.online.registry import place_in_own_file

    return place_in_own_file(error)


def _said_by_typer(error: Any) -> str:
    """A complaint of the parser; of what is missing, what it is."""
    message: str = error.format_message()
    parameter = getattr(error, "param", None)
    if not message.startswith("Missing") or parameter is None:
        return message
    meant = parameter.help
    return f"{message.rstrip('.')}: {meant}" if meant else message


def _open_missing_streams() -> None:
    """Send output nowhere where the caller has closed it, as ``>&-`` does."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _discard_output() -> None:
    """Send nowhere what waits and cannot be written: the interpreter's last flush would fail."""
    with suppress(ValueError):  # it is closed
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    if process_began.get() is not None:
        hold_signals()
    errors.print(f"error: {' '.join(message.split())}", markup=False, soft_wrap=True)
    return code
