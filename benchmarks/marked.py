"""Replace the part of a page that a script makes: what stands from its mark to the next end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

END = "<!-- end"
"""How the comment begins that ends every such part."""


def replaced(text: str, mark: str, lines: Sequence[str]) -> str:
    """Return a page's text with other lines behind the comment `mark`.

    Raises
    ------
    ValueError
        If the mark or its end is not there.
    """
    begin = text.index(mark) + len(mark)
    return text[:begin] + "\n" + "\n".join(lines) + "\n" + text[text.index(END, begin) :]


def write_between(page: Path, mark: str, lines: Sequence[str]) -> None:
    """Write other lines behind the comment `mark` of a page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(replaced(text, mark, lines), encoding="utf-8")
