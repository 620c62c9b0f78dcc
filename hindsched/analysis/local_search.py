"""Searches that give the same result for any number of processes, go on where they stopped, shrink.

Candidates come in batches made from the same best one, by their number alone, and scores have
limits of work that no clock sets. Then simpler variants are taken while the score stays.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from joblib import Parallel, delayed

from hindsched.analysis.sweep import check_workers
from hindsched.analysis.tables import jsonable
from hindsched.errors import InputError, SolveFailed, check_type
from hindsched.instances.base import whole_number
from hindsched.instances.io import read_json, write_json
from hindsched.json_types import JsonObject
from hindsched.solvers.door.work import catch_interrupt

Candidate = TypeVar("Candidate")
DEFAULT_SECONDS, SEARCH_SHARE = 60.0, 0.7  # share of a time limit
BATCH, KEEP = 8, 0.99  # candidates made from the same best one; share of its distance from 1 kept
STATE = "search.json"


class SearchQuestion(ABC, Generic[Candidate]):
    """What is searched for; candidates are JSON data."""

    @abstractmethod
    def propose(self, best: Candidate | None, seed: int, number: int) -> Candidate:
        """A candidate, perhaps made from the best: the same for a seed and a number."""

    @abstractmethod
    def evaluate(self, candidate: Candidate) -> tuple[float, str]:
        """Its score, -inf if it has none, and why it has none."""

    @abstractmethod
    def variants(self, candidate: Candidate) -> Iterable[Candidate]:
        """Simpler ones."""

    @abstractmethod
    def complexity(self, candidate: Candidate) -> tuple[float, ...]:
        """How hard it is to read."""


def search(
    question: SearchQuestion[Candidate],
    asked: object,
    *,
    seed: int,
    time_limit: float | None,
    work_limit: int | None,
    workers: int,
    folder: str | Path | None,
    resume: bool,
    on_progress: Callable[[int, float], None] | None,
    most_shrunk: int,
    nothing: str,
) -> tuple[Candidate, JsonObject]:
    """Search the candidate of the greatest score, and make it simpler; facts of the search.

    `asked` says what was asked, so that nobody goes on with another search's state; `most_shrunk`
    is how many variants are evaluated. `SolveFailed`, which begins with `nothing`, if no candidate
    has a score.
    """
    check_workers(workers)
    whole_number("seed", seed, 0)
    if work_limit is not None:
        whole_number("work_limit", work_limit, 1)
    check_type("time_limit", time_limit, int | float | None, "a number of seconds above 0")
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise InputError("time_limit", time_limit, "must be a number of seconds above 0")
    state = None if folder is None else Path(folder) / STATE
    known = {"asked": jsonable(asked), "done": 0, "best": None, "score": "-inf"}
    if resume:
        known = _earlier_state(state, known["asked"])
    elif state is not None and state.exists():
        raise InputError("out", str(folder), "holds results already: resume them or go elsewhere")
    done, best, score = int(known["done"]), known["best"], float(known["score"])
    most = math.inf if work_limit is None else work_limit
    seconds = DEFAULT_SECONDS if work_limit is None else math.inf
    seconds = seconds if time_limit is None else SEARCH_SHARE * time_limit
    begun, ended, message = time.monotonic(), "work", ""
    with catch_interrupt() as stop:

        def is_over(after: float) -> bool:
            return stop.is_set() or time.monotonic() > begun + after

        with Parallel(n_jobs=max(1, workers), return_as="generator") as pool:
            while done < most:
                numbers = range(done, int(min(most, done - done % BATCH + BATCH)))
                batch = [question.propose(best, seed, number) for number in numbers]
                scores = pool(delayed(_within)(question, made, begun + seconds) for made in batch)
                for made, (value, why) in zip(batch, scores, strict=True):
                    message = why or message
                    if value > score:
                        best, score = made, value
                if is_over(seconds):  # who goes on makes this batch again
                    ended = "interrupted" if stop.is_set() else "time"
                    break
                done = numbers[-1] + 1
                if state is not None:
                    write_json({**known, "done": done, "best": best, "score": str(score)}, state)
                if on_progress is not None:
                    on_progress(done, score)
        searched = time.monotonic() - begun
        if best is None:
            why = message or f"no candidate was evaluated before the search ended ({ended})"
            raise SolveFailed(f"{nothing}: {why}")
        best = shrink(
            question, best, score, lambda tried: tried > most_shrunk or is_over(1.3 * seconds)
        )
    facts = {"seed": seed, "ended": ended, "found": score, "seconds": searched}
    return best, {**facts, "evaluations": done}


def _within(
    question: SearchQuestion[Candidate], made: Candidate, until: float
) -> tuple[float, str]:
    """A candidate's score, or none where the time is over."""
    return question.evaluate(made) if time.monotonic() <= until else (-math.inf, "")


def _earlier_state(state: Path | None, asked: object) -> JsonObject:
    """The state that a search left, if it was asked the same."""
    if state is None:
        raise InputError("resume", True, "needs the folder of the search")
    known = read_json(state)
    before = known.get("asked") if isinstance(known, dict) else known
    if before != asked:
        raise InputError("resume", str(asked), f"must be as before: {before}")
    return dict(known)


def shrink(
    question: SearchQuestion[Candidate], best: Candidate, score: float, stop: Callable[[int], bool]
) -> Candidate:
    """The simplest variant found that keeps most of the score; `stop` is told how many it tried."""
    least = score if score == math.inf else score - (1 - KEEP) * abs(score - 1)
    tried = {str(best)}
    while True:
        for made in question.variants(best):
            if stop(len(tried)):
                return best
            if str(made) in tried or question.complexity(made) >= question.complexity(best):
                continue
            tried.add(str(made))
            if question.evaluate(made)[0] >= least:
                best = made
                break
        else:
            return best
