"""``--time-limit`` and ``--memory-limit``, which every command has."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, Any

import typer

from hindsched.errors import InputError, Interrupted
from hindsched.limits import LimitReached, chosen, hard_stop, time_limit
from hindsched.memory import memory_limit, parse_bytes
from hindsched.solvers.door.interrupt import Terminated

MemoryLimit = Annotated[
    str | None,
    typer.Option(
        help="Memory that each process may hold, as in 2G or 800M; 80 % of the free one if absent."
    ),
]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds after which the command stops.")]
TIME, MEMORY = "time_limit", "memory_limit"
STOP_SHARE, STOP_SECONDS = 1.2, 2.0
"""A command that has no answer after so many times its time limit, and so many seconds more, ends
without one; one that stops with an answer by itself has twice the time."""

process_began: ContextVar[float | None] = ContextVar("process began", default=None)
"""When the process started that is there for one command; None where it runs among others."""


def limited(
    command: Callable[..., int | None], *, of_each: bool = False
) -> Callable[..., int | None]:
    """Give a command the two options, and hold them.

    A command that has a ``time_limit`` of its own, in which it stops with an answer, keeps it; any
    other is stopped in one line.

    Parameters
    ----------
    command : callable
        The command.
    of_each : bool
        Whether its own ``time_limit`` is that of every solve and run, not of the whole.
    """
    own = inspect.signature(command, eval_str=True)
    added = [(name, kind) for name, kind in ((TIME, TimeLimit), (MEMORY, MemoryLimit))
             if name not in own.parameters]  # fmt: skip

    @functools.wraps(command)
    def run(**given: Any) -> int | None:
        most = parse_bytes(given[MEMORY])
        taken = {name: given.pop(name) for name, _ in added}
        seconds, limit = taken.get(TIME), taken.get(TIME, given.get(TIME))
        if seconds is not None and not 0 <= seconds < float("inf"):
            raise InputError("time-limit", seconds, "must be a number of seconds, at least 0")
        ends = None
        if (began := process_began.get()) is not None and limit is not None and not of_each:
            ends = (STOP_SHARE * limit + STOP_SECONDS) * (2 if seconds is None else 1)
            ends -= time.monotonic() - began
        try:
            with (
                hard_stop(ends, f"stopped after {limit} s (--time-limit)"),
                chosen(limit is not None),
                time_limit(seconds),
                memory_limit(most),
            ):
                return _unless_interrupted(command, given)
        except Terminated:
            raise Interrupted("terminated", 143) from None
        except KeyboardInterrupt:  # before typer sees it, which says nothing
            raise Interrupted("interrupted", 130) from None
        except MemoryError as error:
            reason = str(error) or "no more is left"
            raise LimitReached(f"not enough memory ({reason}); --memory-limit sets it") from None

    keyword = inspect.Parameter.KEYWORD_ONLY
    new = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in added]
    run.__dict__["__signature__"] = own.replace(parameters=[*own.parameters.values(), *new])
    run.__annotations__ = {name: each.annotation for name, each in own.parameters.items()} | dict(
        added
    )
    return run


def _unless_interrupted(command: Callable[..., int | None], given: dict[str, object]) -> int | None:
    """Call a command; a compiled module whose loading was interrupted says only that it failed."""
    try:
        return command(**given)
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
