"""When jobs run: a job's rows of the solution file as spans of constant worker count."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from hindsched.solutions.base import Solution


class Span(NamedTuple):
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
    changes: defaultdict[int, list[float]] = defaultdict(list)
    for first, last, workers in runs:
        if workers and first <= last:
            changes[first].append(workers)
            changes[last + 1].append(-workers)
    spans: list[Span] = []
    at_work: list[float] = []
    for slot, after in pairwise(sorted(changes)):
        for workers in changes[slot]:
            at_work.append(workers) if workers > 0 else at_work.remove(-workers)
        total = sum(at_work)
        if spans and (spans[-1].last, spans[-1].workers) == (slot - 1, total):
            spans[-1] = spans[-1]._replace(last=after - 1)
        elif at_work:
            spans.append(Span(slot, after - 1, total))
    return spans
