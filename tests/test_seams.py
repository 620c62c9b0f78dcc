"""What passes between the floors says what it holds: few lines of the package say `Any`."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import hindsched

PACKAGE = Path(hindsched.__file__).parent
SEAMS = (
    "analysis/algorithm_ratio.py", "analysis/comparison.py", "analysis/records.py",
    "analysis/summary.py", "analysis/verdict.py", "online/theorem.py", "solutions/tables.py",
    "solvers/answer.py", "solvers/explain.py", "solvers/pricing/rows.py", "solvers/result.py",
)  # fmt: skip
"""Results, records and rows."""
MOST_LINES = 500
"""Outside the exact kernel; before the seams were typed about 1,400 did."""


def lines_with_any(path: Path) -> list[int]:
    """Lines whose code, not prose, says `Any`, imports aside."""
    text = path.read_text(encoding="utf-8")
    source = text.splitlines()
    names = (
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and token.string == "Any"
    )
    return sorted({line for line in names if "import" not in source[line - 1]})


def test_results_records_and_rows_say_what_they_hold() -> None:
    assert {name: lines_with_any(PACKAGE / name) for name in SEAMS} == {name: [] for name in SEAMS}


def test_few_lines_say_any() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): len(lines_with_any(path))
        for path in PACKAGE.rglob("*.py")
        if "kernel" not in path.relative_to(PACKAGE).parts[:1]
    }
    assert sum(found.values()) <= MOST_LINES, sorted(found, key=lambda name: -found[name])[:10]
