"""One self-contained HTML page from a result store: the verdict, tables, pictures, proofs."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindsched.analysis.comparison import Comparison
from hindsched.analysis.interval import rounded_down, rounded_up
from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.ratio import INVERSE_NOTE, STAR_NOTE
from hindsched.analysis.report.data import PageParts, page_data
from hindsched.analysis.store import REPORT, ResultStore
from hindsched.analysis.verdict import verdicts
from hindsched.instances.io import write_text
from hindsched.printable import printable

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = ("marks.js", "tables.js", "comparisons.js", "schedules.js", "page.js")
PROOFS = {
    "certificate": "prices that anyone can recompute",
    "checked fast": "prices checked in floating point",
    "solver": "the solver's word",
    "none": "no bound",
}


def write_report(
    store: ResultStore, comparison: Comparison | None = None, parts: PageParts | None = None
) -> Path:
    """Write ``report.html`` of a store from what the store holds, and return its path.

    Parameters
    ----------
    store : ResultStore
        The results.
    comparison : Comparison, optional
        Of the store's records as they are now, where they have been read already.
    parts : PageParts, optional
        Of this comparison, where they were begun before.
    """
    path = store.folder / REPORT
    write_text(render_report(store, comparison, parts), path)
    return path


def render_report(
    store: ResultStore, comparison: Comparison | None = None, parts: PageParts | None = None
) -> str:
    """Make the page as text; parameters as of `write_report`."""
    environment = page_environment("hindsched.analysis.report")
    environment.filters |= {"number": show_number, "percent": show_percent, "end": show_end}
    comparison = comparison or Comparison(store.records())
    data = page_data(store, comparison, parts)
    script = "\n".join(_file(name) for name in SCRIPTS)
    return environment.get_template("page.html").render(
        title=store.folder.name,
        verdicts=verdicts(comparison),
        summary=comparison.summary_rows(),
        data=data,
        data_text=script_safe(data),
        style=_file("page.css"),
        script=script,
        script_hash=_hash(script),
        families=list(dict.fromkeys(item.family for item in comparison.instances)),
        errors=comparison.errors,
        missing=[task.key for task in store.missing(comparison.records)],
        tasks=len(store.tasks),
        created=store.manifest["created"],
        settings=store.manifest["settings"],
        versions=store.manifest["versions"],
        note=INVERSE_NOTE,
        star_note=STAR_NOTE,
        proofs=PROOFS,
    )


def page_environment(package: str) -> Environment:
    """Templates of a package, in which names are text and nothing else, spelled out."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader(package, ".")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, finalize=_spelled_out)


def _spelled_out(value: object) -> Any:
    """The same with every text as `printable` has it; what is markup already stays."""
    if isinstance(value, str):
        return value if hasattr(value, "__html__") else printable(value)
    if isinstance(value, dict):
        return {_spelled_out(key): _spelled_out(item) for key, item in value.items()}
    return [_spelled_out(item) for item in value] if isinstance(value, list) else value


def show_number(value: object) -> str:
    """Write a number for a table: four digits, absent is a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def show_end(value: float | None, side: str) -> str:
    """Write an interval's ``lower`` or ``upper`` end, rounded outward; absent is a dash."""
    if not isinstance(value, float | int):
        return show_number(value)
    return rounded_down(value) if side == "lower" else rounded_up(value)


def show_percent(share: float | None) -> str:
    """Write a share as a percentage; absent is a dash."""
    return "–" if share is None else f"{share:.2%}"


def script_safe(data: object) -> str:
    """JSON that stays inside its script element whatever names it holds."""
    plain = _spelled_out(jsonable(data))
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _file(name: str) -> str:
    return (files("hindsched.analysis.report") / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What the page's policy allows to run: this script and nothing that a name may bring in."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
