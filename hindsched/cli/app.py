"""The application: its commands, and one line with the right exit code for whatever goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from hindsched.cli import audit, bench, explain, figure, generate, look, model, simulate, solve
from hindsched.cli.output import errors, out
from hindsched.errors import HindschedError

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130

app = typer.Typer(
    name="hindsched",
    help="How good was an online scheduler for distributed ML jobs, in hindsight, with proof.",
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
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """How good was an online scheduler for distributed ML jobs, in hindsight, with proof."""
    if version:
        from hindsched.solvers.versions import versions

        out.print(f"hindsched {versions()['hindsched']}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        out.print(WELCOME, markup=False)


app.command()(bench.bench)
app.command()(audit.audit)
app.command()(generate.generate)
app.command()(solve.solve)
app.command()(model.model)
app.command()(simulate.simulate)
app.command()(simulate.ratio)
app.command()(solve.verify)
app.command()(explain.explain)
app.command()(figure.figure)
app.command()(look.schema)
app.command("list")(look.list_)
app.command()(look.describe)
app.command()(bench.report)
app.command()(look.versions)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments; None for those of the process.

    Returns
    -------
    int
        0 success, 1 a solve or run that failed, 2 bad input, 130 interrupted.
    """
    _open_missing_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(given, standalone_mode=False)
    except HindschedError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        _discard_output()
        return FAILED
    except MemoryError as error:
        return _fail(f"not enough memory ({str(error) or 'no more is left'})", FAILED)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}", FAILED)
    except Exception as error:
        # Typer's own errors come from its copy of click or from click itself, by version.
        if hasattr(error, "format_message"):
            return _fail(error.format_message(), BAD_INPUT)
        if os.environ.get("HINDSCHED_TRACEBACK"):
            raise
        note = "a bug; HINDSCHED_TRACEBACK=1 shows where"
        return _fail(f"{type(error).__name__}: {error} ({note})", FAILED)
    return code if isinstance(code, int) else 0


def _open_missing_streams() -> None:
    """Send output nowhere where the caller has closed it, as ``>&-`` does."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    errors.print(f"error: {' '.join(message.split())}", markup=False, soft_wrap=True)
    return code
