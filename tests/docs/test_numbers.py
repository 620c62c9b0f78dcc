"""Every number on pages and in notebooks is made by a script, asserted, or no measurement."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.numbers import numbers

ROOT = Path(__file__).resolve().parents[2]
SOURCES = tomllib.loads(Path(__file__).with_name("numbers.toml").read_text(encoding="utf-8"))
MADE_WHOLE = {
    "claims.md": "benchmarks/claims_page.py",
    "audits.md": "benchmarks/audits.py",
    "worst.md": "benchmarks/worst.py",
}
"""Pages that a script writes from end to end."""
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name not in MADE_WHOLE
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.py"))
KINDS = ("paper", "worked", "definition", "held")


def prose(page: Path) -> str:
    """A page's text, or that of a notebook's cells of text, line by line as it stands."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return text
    lines, is_text = [], False
    for line in text.splitlines():
        if line.startswith("# %%"):
            is_text = "[markdown]" in line
        lines.append(line.removeprefix("# ") if is_text and line.startswith("# ") else "")
    return "\n".join(lines)


def spans(line: str, words: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(re.escape(words), line)]


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.name)
def test_every_number_in_prose_has_a_source(page: Path) -> None:
    text = prose(page)
    lines, known = text.splitlines(), SOURCES.get(page.name, {})
    used: set[str] = set()
    for hit in numbers(text):
        line = lines[hit.line - 1]
        covering = {
            words
            for words in known
            for begin, end in spans(line, words)
            if begin <= hit.start < end
        }
        assert covering, f"{page.name}:{hit.line}: {hit.text}: neither made by a script nor listed"
        used |= covering
    assert set(known) == used, f"{page.name}: listed and not there: {set(known) - used}"


@pytest.mark.parametrize(
    "text",
    ["7.5 % better", "3 of 40 runs", "1,002 of the 1,007", "2.5x", "12-fold", "0.75 at best"],
)
def test_what_looks_measured_is_found(text: str) -> None:
    assert len(list(numbers(f"It is {text}."))) == 1
    assert not list(numbers(f"<!-- made by benchmarks/x.py -->{text}<!-- end -->"))


@pytest.mark.parametrize("page", SOURCES)
def test_sources_are_there(page: str) -> None:
    """A file that is to hold a number holds it; a place that defines it exists."""
    for words, source in SOURCES[page].items():
        kind, _, place = source.partition(" ")
        assert kind in KINDS, source
        assert (ROOT / place).exists(), source
        if kind == "held":
            held = (ROOT / place).read_text(encoding="utf-8")
            for number in re.findall(r"\d+\.\d+", words):
                assert number in held, f"{page}: {number} is not in {place}"


@pytest.mark.parametrize("page", MADE_WHOLE)
def test_pages_made_whole_have_a_script(page: str) -> None:
    assert page in (ROOT / MADE_WHOLE[page]).read_text(encoding="utf-8")


def test_measured_numbers_in_prose_are_found() -> None:
    prose = "It takes 0.7 s, 3 times less, 98 % of it in `x = 0.5`.\n"
    page = f"{prose}<!-- made by benchmarks/x.py -->\n1.5\n<!-- end -->\n"
    assert [hit.text for hit in numbers(page)] == ["0.7 s", "3 times", "98 %"]
    assert not list(numbers("Section 4.2, Python 3.11, (2h), [see](page.md#1.5) and 15 jobs"))
