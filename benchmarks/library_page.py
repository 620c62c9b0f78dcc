"""Write the board into `docs/results/library.md`, or check every record that it is made from.

``python benchmarks/library_page.py``, ``python benchmarks/library_page.py --check [NAME ...]``
"""

from __future__ import annotations

import sys
from pathlib import Path

from library_recipes import VERSION
from library_records import Records, Standing, check_records, choose

RECORDS = Path(__file__).parent / "library"
PAGE = Path(__file__).parents[1] / "docs/results/library.md"
MARK = "<!-- the board, by benchmarks/library_page.py -->\n"


def board() -> str:
    """The summary and one row an instance, as Markdown."""
    standings = [Records().standing(recipe) for recipe in choose()]
    groups: dict[tuple[str, str], list[Standing]] = {}
    for standing in standings:
        groups.setdefault((standing.recipe.family, standing.recipe.suite), []).append(standing)
    lines = [f"Version {VERSION}, {len(standings)} instances.", ""]
    lines += ["| family | suite | instances | proven | median gap | largest gap |"]
    lines += ["|---|---|---|---|---|---|"]
    for (family, suite), members in groups.items():
        gaps = sorted(standing.gap for standing in members if standing.gap is not None)
        proven = sum(standing.is_proven for standing in members)
        median = _percent(gaps[len(gaps) // 2]) if gaps else "-"
        largest = _percent(gaps[-1]) if len(gaps) == len(members) else "-"
        lines += [f"| {family} | {suite} | {len(members)} | {proven} | {median} | {largest} |"]
    lines += [
        "",
        "| instance | jobs | best objective | best bound | gap |",
        "|---|---|---|---|---|",
    ]
    for standing in standings:
        gap = "proven" if standing.is_proven else _percent(standing.gap)
        recipe = standing.recipe
        numbers = f"{_number(standing.objective)} | {_number(standing.bound)}"
        lines += [f"| `{recipe.name}` | {recipe.jobs} | {numbers} | {gap} |"]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.8g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def main() -> int:
    """Replace what stands behind the mark; or let the exact kernel check the records."""
    if "--check" in sys.argv:
        names = sys.argv[sys.argv.index("--check") + 1 :]
        refused = 0
        for recipe, verdict, accepted in check_records(choose(names), Records(RECORDS)):
            refused += not accepted
            print(f"{recipe.name}: {verdict}", flush=True)
        return int(refused > 0)
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + "\n" + board())
    return 0


if __name__ == "__main__":
    sys.exit(main())
