"""When jobs run: a job's rows of the solution file as spans of constant worker count."""

from __future__ import annotations

from dataclasses import dataclass

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
        job: _merged([solution.run_of(row) for row in rows])
        for job, rows in solution.assignments().items()
    }


def _merged(runs: list[tuple[int, int, float]]) -> list[Span]:
    at_work: dict[int, float] = {}
    for first, last, workers in runs:
        for slot in range(first, last + 1):
            at_work[slot] = at_work.get(slot, 0.0) + workers
    spans: list[Span] = []
    for slot in sorted(slot for slot, workers in at_work.items() if workers > 0):
        before = spans[-1] if spans else None
        if before is not None and before.last == slot - 1 and before.workers == at_work[slot]:
            spans[-1] = Span(before.first, slot, before.workers)
        else:
            spans.append(Span(slot, slot, at_work[slot]))
    return spans
