"""Text that people read, where names are others' text."""

from __future__ import annotations

import unicodedata

MISLEADING = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format, surrogate, line separators


def printable(text: str) -> str:
    """Spell out what a terminal would act on or turn around: control and bidirectional marks.

    Names of jobs and files are others' text; a lone half of a surrogate pair cannot be printed.
    """
    if text.isprintable():  # nothing of the categories below
        return text
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in MISLEADING
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )  # fmt: skip


def error_words(error: BaseException) -> str:
    """An exception's kind and words, also of one that cannot say them."""
    try:
        words = str(error)
    except Exception:
        words = "(its words raise an exception themselves)"
    return f"{type(error).__name__}: {words}"
