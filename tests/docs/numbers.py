"""Numbers in a page's prose that look measured: percent, times, seconds, decimals, N of M."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

GENERATED = re.compile(
    r"<!--[^>]*\bby benchmarks/[^>]*-->.*?(?:<!-- end[^>]*-->|\Z)"
    r"|<!-- table -->.*?<!-- end[^>]*-->",
    re.DOTALL,
)
"""What a script writes between its marks, to the end of the page where it has one mark."""
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
NAMES = re.compile(
    r"\]\([^)]*\)|\bdoi \S+"
    r"|\b(?:Sections?|Python(?: ≥)?|HiGHS|Figs?\.?|Figures?|Tables?|Apache)"
    r" [\d.]+(?:(?:,| and|-) ?\d[\d.]*)*"
)
"""What is no number: targets of links, sections, versions."""
UNITS = r"(?:\s?%|\s(?:times|ms|s|seconds?|minutes?|hours?|h|days?|[KMG]i?B)\b)"
NUMBER = re.compile(
    rf"(?<![\w./^-])(?:\d(?:[\d,]*\d)?(?:\.\d+)?{UNITS}|\d(?:[\d,]*\d)?\.\d+"
    r"|\d[\d,]* of (?:the )?\d[\d,]*|\d[\d.,]*(?:x|-fold))(?![\w/])"
)


class Hit(NamedTuple):
    """A number on a line of a page."""

    line: int
    start: int
    text: str
    context: str


def numbers(text: str) -> Iterator[Hit]:
    """Numbers of a page outside code, generated parts and indented blocks."""
    for pattern in (GENERATED, CODE, NAMES):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for index, line in enumerate(text.splitlines()):
        if not line.startswith("    "):
            for found in NUMBER.finditer(line):
                yield Hit(index + 1, found.start(), found.group(), line)
