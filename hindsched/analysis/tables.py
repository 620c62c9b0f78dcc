"""Results as JSON data, as CSV that a spreadsheet opens as what it is, and by slot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_jsonable_python

from hindsched.json_types import JsonObject
from hindsched.printable import printable

if TYPE_CHECKING:
    import pandas as pd

    from hindsched.solutions.base import Solution

FORMULA_MARKS = ("=", "+", "-", "@")  # what a spreadsheet takes for the beginning of a formula
MOST_SLOTS = 1_000_000  # a schedule that ends later has no rows by slot


def jsonable(value: object) -> Any:
    """Convert to JSON data; infinities and NaN become None, for JSON has no word for them."""
    return to_jsonable_python(value, inf_nan_mode="null", fallback=_as_builtin)


def _as_builtin(value: Any) -> Any:
    """What pydantic does not know: views of mappings, numbers and arrays of numpy."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def cell(value: object) -> str:
    """Write a value for a table: absent is a dash."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def to_csv(table: pd.DataFrame) -> str:
    """Write a table with an apostrophe before text that a spreadsheet would compute.

    Control characters and marks that turn text around are spelled out.
    """
    texts = table.loc[:, [dtype in (object, "str") for dtype in table.dtypes]]
    plain = texts.map(lambda value: _sheet_text(value) if isinstance(value, str) else value)
    return table.assign(**plain).to_csv(index=False)


@lru_cache(4096)
def _sheet_text(value: str) -> str:
    """A text of names, which stand in thousands of rows."""
    text = printable(value)
    if not text.startswith(FORMULA_MARKS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


class WorkerSpan(NamedTuple):
    """Slots ``first..last`` in which a job runs with the same number of workers."""

    first: int
    last: int
    workers: float


def job_spans(solution: Solution) -> dict[str, list[WorkerSpan]]:
    """Spans of constant worker count of every job that runs, in order of time."""
    return {
        job: spans_of([solution.run_of(row) for row in rows])
        for job, rows in solution.assignments().items()
    }


def spans_of(runs: list[tuple[int, int, float]]) -> list[WorkerSpan]:
    """Spans of (first slot, last slot, workers) between the slots in which something changes.

    What runs at once adds up; it takes no longer however many slots are between.
    """
    changes: defaultdict[int, list[float]] = defaultdict(list)
    for first, last, workers in runs:
        if workers and first <= last:
            changes[first].append(workers)
            changes[last + 1].append(-workers)
    spans: list[WorkerSpan] = []
    at_work: list[float] = []
    for slot, after in pairwise(sorted(changes)):
        for workers in changes[slot]:
            at_work.append(workers) if workers > 0 else at_work.remove(-workers)
        total = sum(at_work)
        if spans and (spans[-1].last, spans[-1].workers) == (slot - 1, total):
            spans[-1] = spans[-1]._replace(last=after - 1)
        elif at_work:
            spans.append(WorkerSpan(slot, after - 1, total))
    return spans


def slot_rows(solution: Solution, price_path: Sequence[Mapping[str, Any]] = ()) -> list[JsonObject]:
    """Use (summed over servers), posted price and jobs at work, per slot and resource."""
    running = [span for spans in job_spans(solution).values() for span in spans]
    if max((span.last for span in running), default=0) > MOST_SLOTS:
        return []
    used: defaultdict[tuple[int, str], float] = defaultdict(float)
    for row in solution.usage_rows():
        used[row["slot"], row["resource"]] += row["used"]
    prices = {(row["slot"], row["resource"]): row["price"] for row in price_path}
    active = Counter(slot for span in running for slot in range(span.first, span.last + 1))
    return [
        {"slot": slot, "resource": resource, "used": used[slot, resource],
         "price": prices.get((slot, resource)), "active_jobs": active[slot]}
        for slot, resource in sorted({*used, *(key for key, price in prices.items() if price)})
    ]  # fmt: skip
