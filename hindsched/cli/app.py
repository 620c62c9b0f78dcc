"""The application: its commands, and one line with the right exit code for whatever goes wrong."""

from __future__ import annotations

import errno
import math
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from hindsched.cli.adversary import adversary
from hindsched.cli.audit import audit
from hindsched.cli.bench import bench
from hindsched.cli.explain import explain
from hindsched.cli.figure import figure
from hindsched.cli.foresight import foresight
from hindsched.cli.generate import generate
from hindsched.cli.look import describe, list_, schema
from hindsched.cli.model import model
from hindsched.cli.new_family import new_family
from hindsched.cli.output import say, tell, with_options
from hindsched.cli.ratio import ratio
from hindsched.cli.report import report
from hindsched.cli.score import score
from hindsched.cli.settings import option
from hindsched.cli.simulate import simulate
from hindsched.cli.solve import solve
from hindsched.cli.verify import verify
from hindsched.cli.worst import worst
from hindsched.errors import INTERRUPTED, TERMINATED, HindschedError
from hindsched.limits import time_limit
from hindsched.printable import error_words

COMMANDS = (
    bench, ratio, audit, generate, solve, model, simulate, verify, explain, worst, foresight,
    adversary, score, figure, list_, schema, describe, report, new_family,
)  # fmt: skip
BAD_INPUT, FAILED = 2, 1
app = typer.Typer(
    name="hindsched",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Command(TyperCommand):
    """A command that may be interrupted, and inside which it is known whether a limit is given."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; typer itself ends an interrupted one without a word."""
        limit = None if ctx.params.get("time_limit") is None else math.inf
        try:
            with time_limit(limit):
                return super().invoke(ctx)
        except KeyboardInterrupt as reason:
            raise typer.Abort from reason


for each in COMMANDS:
    app.command(each.__name__.strip("_").replace("_", "-"), cls=Command)(each)


@app.callback(invoke_without_command=True)
def show_help(
    context: typer.Context,
    version: Annotated[bool, option("Print what can change a number.", "--version")] = False,
) -> None:
    """How good was an online scheduler for distributed ML jobs, in hindsight, with proof."""
    if version:
        from hindsched.solvers.door.result import versions

        for name, installed in sorted(versions().items(), key=lambda item: item[0] != "hindsched"):
            tell(f"{name} {installed}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        tell(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the process' arguments) and return the exit code.

    0 success, 1 a solve or run that failed, 2 bad input, 130 interrupted, 143 terminated.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller has closed it, as `>&-` does
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(list(words), standalone_mode=False)
    except BaseException as error:
        if (outcome := _line_and_code(error)) is None:
            raise
        message, code = outcome
        if message:
            say(f"error: {' '.join(message.split())}")
    return code if isinstance(code, int) else 0


def _line_and_code(error: BaseException) -> tuple[str, int] | None:
    """The line and the exit code of what ended a command; None for what is to be raised on."""
    from hindsched.online.registry import place_in_user_file
    from hindsched.solvers.door.work import Terminated

    match error:
        case HindschedError():
            commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
            options = [option for command in commands for option in command.params]
            return with_options(str(error), options), error.exit_code
        case KeyboardInterrupt() | typer.Abort():
            is_term = isinstance(error.__cause__ or error.__context__ or error, Terminated)
            return ("terminated", TERMINATED) if is_term else ("interrupted", INTERRUPTED)
        case BrokenPipeError():  # the reader of our output has gone, as `head` does
            _discard_output()
            return "", FAILED
        case OSError():
            _discard_output()
            name = f"{error.filename}: " if error.filename else ""
            wrong_name = error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
            return f"{name}{error.strerror or error}", BAD_INPUT if wrong_name else FAILED
        case MemoryError():
            return f"not enough memory ({error or 'no more is left'})", FAILED
    if hasattr(error, "format_message"):  # of typer's copy of click or of click itself
        message: str = error.format_message()
        meaning = getattr(getattr(error, "param", None), "help", None)
        is_missing = message.startswith("Missing") and meaning
        return f"{message.rstrip('.')}: {meaning}" if is_missing else message, BAD_INPUT
    place = place_in_user_file(error)  # in an algorithm of the user's own
    is_raised = not isinstance(error, Exception) or os.environ.get("HINDSCHED_TRACEBACK")
    if place is None and is_raised:
        return None
    return f"{error_words(error)} ({place or 'a bug; HINDSCHED_TRACEBACK=1 shows where'})", FAILED


def _discard_output() -> None:
    """Send nowhere what waits and cannot be written: the interpreter's last flush would fail."""
    try:
        sys.stdout.flush()
    except ValueError:  # it is closed
        pass
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
