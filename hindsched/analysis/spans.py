"""When jobs run: a job's rows of the solution file as spans of constant worker count."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hindsched.solutions.base import Solution


@dataclass(frozen=True)
class Span:
    """Slots ``first..last`` in which a job runs with the same number of workers."""

    first: int
    last: int
    workers: float


def job_spans(solution: Solution) -> dict[str, list[Span]]:
    """Spans of constant worker count of every job that runs, in order of time."""
    return {
        job: spans_of([solution.run_of(row) for row in rows])
        for job, rows in solution.assignments().items()
    }


def spans_of(runs: list[tuple[int, int, float]]) -> list[Span]:
    """Spans between the slots in which something changes, however many slots are between them.

    Parameters
    ----------
    runs : list of (int, int, float)
        First slot, last slot and workers; what runs at once adds up.
    """
    changes: dict[int, list[float]] = {}
    for first, last, workers in runs:
        if workers and first <= last:
            changes.setdefault(first, []).append(workers)
            changes.setdefault(last + 1, []).append(-workers)
    spans: list[Span] = []
    at_work: list[float] = []
    for slot, after in pairwise(sorted(changes)):
        for workers in changes[slot]:
            at_work.append(workers) if workers > 0 else at_work.remove(-workers)
        total = sum(at_work)
        before = spans[-1] if spans else None
        if before is not None and before.last == slot - 1 and before.workers == total:
            spans[-1] = Span(before.first, after - 1, total)
        elif at_work:
            spans.append(Span(slot, after - 1, total))
    return spans
