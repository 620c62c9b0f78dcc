"""Evaluating candidates side by side: in this process, or in local ones that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any

from hindsched.analysis.sweep import POLL_SECONDS, submit, worker_process
from hindsched.analysis.worst.evaluate import Evaluation, evaluate
from hindsched.analysis.worst.problem import Problem
from hindsched.json_types import Draft

Candidate = tuple[Draft, float]
"""A candidate and the threshold of its race."""
Evaluate = Callable[[Sequence[Candidate], Callable[[], bool]], list[Evaluation | None]]
"""Results in the order of the candidates; None for those not begun when the time was over."""


@contextmanager
def evaluating(problem: Problem, workers: int) -> Iterator[Evaluate]:
    """A function that evaluates candidates, with `workers` local processes (0: in this one)."""

    def here(
        candidates: Sequence[Candidate], is_over: Callable[[], bool]
    ) -> list[Evaluation | None]:
        return [
            None if is_over() else evaluate(problem, data, threshold)
            for data, threshold in candidates
        ]

    if workers == 0:
        yield here
        return
    processes = [worker_process() for _ in range(workers)]
    for process in processes:
        submit(process, _hold, problem)

    def elsewhere(
        candidates: Sequence[Candidate], is_over: Callable[[], bool]
    ) -> list[Evaluation | None]:
        found: list[Evaluation | None] = [None] * len(candidates)
        places, idle = iter(range(len(candidates))), list(processes)
        running: dict[Future[Any], tuple[int, Any]] = {}
        while True:
            while idle and not is_over() and (place := next(places, None)) is not None:
                process = idle.pop()
                running[submit(process, _evaluate, *candidates[place])] = place, process
            if not running:
                return found
            done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                place, process = running.pop(future)
                found[place] = future.result()
                idle.append(process)

    try:
        yield elsewhere
    finally:
        for process in processes:
            process.shutdown(kill_workers=True)


_problem: list[Problem] = []
"""In a worker process: the search that it works for."""


def _hold(problem: Problem) -> None:
    _problem[:] = [problem]


def _evaluate(data: Draft, threshold: float) -> Evaluation:
    return evaluate(_problem[0], data, threshold)
