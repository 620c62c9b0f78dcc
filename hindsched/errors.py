"""The errors a user can meet, each of which prints as one clear line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

MOST_NAMED = 20  # mistakes of one input that its error names; the rest are counted
INTERRUPTED, TERMINATED = 130, 143  # exit codes of a process that Ctrl-C or SIGTERM ended


class HindschedError(Exception):
    """Base of every error that hindsched raises on purpose.

    Examples
    --------
    >>> import hindsched as hs
    >>> try:
    ...     hs.generate("oases")
    ... except hs.HindschedError as error:
    ...     print(type(error).__name__, error.exit_code)
    InputError 2
    """

    exit_code = 1


class InputError(HindschedError, ValueError):
    """Input that breaks a rule; nothing was computed and nothing was lost.

    Parameters
    ----------
    where : str
        Path of the field or file at fault, for example ``jobs[3].arrival``.
    value : object
        The value found there.
    rule : str
        The rule it breaks, as a statement that should hold.
    others : sequence of InputError
        What else is wrong with the same input.

    Examples
    --------
    >>> print(InputError("jobs[3].arrival", -1, "must be at least 1"))
    jobs[3].arrival: -1: must be at least 1
    """

    exit_code = 2

    def __init__(
        self, where: str, value: object, rule: str, others: Sequence[InputError] = ()
    ) -> None:
        self.where = where
        self.value = value
        self.rule = rule
        self.others = tuple(others)
        sentences = [f"{where}: {_short(value)}: {rule}{_hint(where, value, rule)}"]
        sentences += map(str, self.others[: MOST_NAMED - 1])
        more = len(self.others) - MOST_NAMED + 1
        super().__init__("; ".join(sentences) + (f"; and {more} more" if more > 0 else ""))

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        """Pickle by its parts, so that the error crosses process borders."""
        return type(self), (self.where, self.value, self.rule, self.others)


class SolveFailed(HindschedError, RuntimeError):
    """A solver stopped without an answer that could be trusted.

    Examples
    --------
    >>> SolveFailed("no point").exit_code
    1
    """


class Refused(HindschedError, ValueError):
    """A decision of an online algorithm that breaks a constraint or revokes an earlier one.

    Parameters
    ----------
    constraint : str
        Number or name of the broken constraint.
    where : str
        Job, server and slot concerned.
    detail : str
        By how much, or what was revoked.

    Examples
    --------
    >>> print(Refused("(4)", "j1, slot 3", "one worker too many"))
    refused by (4) at j1, slot 3: one worker too many
    """

    def __init__(self, constraint: str, where: str, detail: str) -> None:
        self.constraint = constraint
        self.where = where
        self.detail = detail
        super().__init__(f"refused by {constraint} at {where}: {detail}")

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str, str]]:
        """Pickle by the three parts, so that the error crosses process borders."""
        return type(self), (self.constraint, self.where, self.detail)


def check_type(where: str, value: object, kind: Any, rule: str) -> None:
    """Refuse a value of another type: its name, what it is, and what was expected."""
    if not isinstance(value, kind):
        shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
        raise InputError(where, shown, f"must be {rule}")


def _hint(where: str, value: object, rule: str) -> str:
    """The closest of the words that a rule allows, if one is close."""
    listed = re.search(r"must be one of |must be an option: |has the \w+:? ", rule)
    is_name = where.startswith("set.") or rule.startswith("must be an option")
    word = where.removeprefix("set.") if is_name else value
    if listed is None or not isinstance(word, str):
        return ""
    known = re.split(r", | or ", rule[listed.end() :])
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close and word not in known and len(known) > 1 else ""


def _short(value: object) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
