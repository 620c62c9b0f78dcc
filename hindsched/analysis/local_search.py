"""Searches that give the same result for any number of processes, go on where they stopped, shrink.

Candidates come in batches made from the same best one, by their number alone, and scores have
limits of work that no clock sets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from joblib import Parallel, delayed

T = TypeVar("T")
BATCH, KEEP = 8, 0.99  # candidates made from the same best one; share of its distance from 1 kept


@dataclass(frozen=True)
class Found(Generic[T]):
    """The best candidate so far."""

    done: int = 0  # candidates that were evaluated
    best: T | None = None
    score: float = -math.inf
    ended: str = "work"  # or time, or interrupted
    message: str = ""  # why a candidate has no score


def improve(
    propose: Callable[[T | None, int], T],
    evaluate: Callable[[T], tuple[float, str]],
    found: Found[T],
    *,
    most: float,
    seconds: float,
    workers: int,
    stop: Callable[[], bool],
    save: Callable[[Found[T]], None],
) -> Found[T]:
    """Evaluate candidates until there are `most`, the time is over or somebody stops it.

    ``propose(best, number)`` makes a candidate, ``evaluate`` its score and why it has none;
    ``save`` is told what was found after every batch. Of a batch that does not end in time the best
    is kept, but not saved: who goes on makes it again.
    """
    until = time.monotonic() + seconds
    done, best, score, message = found.done, found.best, found.score, found.message

    def over() -> bool:
        return stop() or time.monotonic() > until

    with Parallel(n_jobs=max(1, workers), return_as="generator") as pool:
        while done < most:
            numbers = range(done, int(min(most, done - done % BATCH + BATCH)))
            batch = [propose(best, number) for number in numbers]
            scores = pool(delayed(_within)(evaluate, made, until) for made in batch)
            for made, (own, why) in zip(batch, scores, strict=True):
                message = why or message
                if own > score:
                    best, score = made, own
            if over():
                return Found(done, best, score, "interrupted" if stop() else "time", message)
            done = numbers[-1] + 1
            save(Found(done, best, score, "work", message))
    return Found(done, best, score, "work", message)


def _within(evaluate: Callable[[T], tuple[float, str]], made: T, until: float) -> tuple[float, str]:
    """A candidate's score, or none where the time is over."""
    return evaluate(made) if time.monotonic() <= until else (-math.inf, "")


def shrink(
    best: T,
    score: float,
    variants: Callable[[T], Iterable[T]],
    complexity: Callable[[T], tuple[float, ...]],
    evaluate: Callable[[T], tuple[float, str]],
    stop: Callable[[int], bool],
) -> T:
    """The simplest variant found that keeps most of the score; `stop` is told how many it tried."""
    least = score if score == math.inf else score - (1 - KEEP) * abs(score - 1)
    tried = {str(best)}
    while True:
        for made in variants(best):
            if stop(len(tried)):
                return best
            if str(made) in tried or complexity(made) >= complexity(best):
                continue
            tried.add(str(made))
            if evaluate(made)[0] >= least:
                best = made
                break
        else:
            return best
