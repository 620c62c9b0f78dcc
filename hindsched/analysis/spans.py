"""When jobs run: a job's rows of the solution file as spans of constant worker count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hindsched.solutions.base import Assignment


@dataclass(frozen=True)
class Span:
    """Slots ``first..last`` in which a job runs with the same number of workers."""

    first: int
    last: int
    workers: float


def job_spans(rows: Iterable[Assignment]) -> list[Span]:
    """Merge a job's rows into spans of constant worker count, in order of time."""
    at_work: dict[int, float] = {}
    for row in rows:
        if "from" not in row and "slot" not in row:
            continue
        first = int(row["from"] if "from" in row else row["slot"])
        end = int(row["to"]) if "to" in row else first
        for slot in range(first, end + 1):
            at_work[slot] = at_work.get(slot, 0.0) + _workers(row)
    spans: list[Span] = []
    for slot in sorted(slot for slot, workers in at_work.items() if workers > 0):
        last = spans[-1] if spans else None
        if last is not None and last.last == slot - 1 and last.workers == at_work[slot]:
            spans[-1] = Span(last.first, slot, last.workers)
        else:
            spans.append(Span(slot, slot, at_work[slot]))
    return spans


def _workers(row: Assignment) -> float:
    workers = row.get("workers")
    if isinstance(workers, dict):
        return float(sum(workers.values()))
    if workers is not None:
        return float(workers)
    return 1.0 if "chunk" in row else 0.0  # one worker a chunk; in the cloud it has no number
