"""Evaluating candidates side by side: in this process, or in local ones that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from itertools import islice

from hindsched.analysis.local_pool import (
    ONE_THREAD,
    POLL_SECONDS,
    Parent,
    end_executor,
    prepare_worker,
    wait_until_taken,
)
from hindsched.analysis.trackers import start_trackers
from hindsched.analysis.worst.evaluate import Evaluation, evaluate
from hindsched.analysis.worst.problem import Problem
from hindsched.json_types import Draft
from hindsched.solvers.door.interrupt import without_interrupts

Candidate = tuple[Draft, float]
"""A candidate and the threshold of its race."""
Evaluate = Callable[[Sequence[Candidate], Callable[[], bool]], list[Evaluation | None]]
"""Results in the order of the candidates; None for those not begun when the time was over."""


@contextmanager
def evaluating(problem: Problem, workers: int) -> Iterator[Evaluate]:
    """A function that evaluates candidates, with `workers` local processes (0: in this one)."""
    if workers == 0:

        def here(
            candidates: Sequence[Candidate], is_over: Callable[[], bool]
        ) -> list[Evaluation | None]:
            return [
                None if is_over() else evaluate(problem, data, threshold)
                for data, threshold in candidates
            ]

        yield here
        return
    from joblib.externals.loky import ProcessPoolExecutor

    start_trackers()
    pool = ProcessPoolExecutor(
        max_workers=workers,
        initializer=_prepare,
        initargs=(problem, Parent.this()),
        env=ONE_THREAD,
    )
    running: dict[Future[Evaluation], int] = {}

    def elsewhere(
        candidates: Sequence[Candidate], is_over: Callable[[], bool]
    ) -> list[Evaluation | None]:
        found: list[Evaluation | None] = [None] * len(candidates)
        waiting = iter(range(len(candidates)))
        while True:
            if not is_over():
                for index in islice(waiting, workers - len(running)):
                    with without_interrupts():
                        running[pool.submit(_evaluate, *candidates[index])] = index
            if not running:
                return found
            done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                found[running.pop(future)] = future.result()

    try:
        yield elsewhere
    finally:
        wait_until_taken(running)
        end_executor(pool, kill_workers=True)


_problem: list[Problem] = []
"""In a worker process: the search that it works for."""


def _prepare(problem: Problem, parent: Parent) -> None:
    prepare_worker(parent)
    _problem[:] = [problem]


def _evaluate(data: Draft, threshold: float) -> Evaluation:
    return evaluate(_problem[0], data, threshold)
