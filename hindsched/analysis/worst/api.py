"""``worst``: the instance on which an algorithm is worst, with a witness that anyone can check."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hindsched.analysis.jsonable import jsonable
from hindsched.analysis.plan import Contender
from hindsched.analysis.sweep import check_workers
from hindsched.analysis.worst.evaluate import Evaluation
from hindsched.analysis.worst.polish import can_polish
from hindsched.analysis.worst.pool import Evaluate, evaluating
from hindsched.analysis.worst.problem import Problem
from hindsched.analysis.worst.search import Search, digest
from hindsched.analysis.worst.shrink import shrink as shrink_data
from hindsched.analysis.worst.starts import DEFAULT_STARTS, RANDOM, Start, find_starts
from hindsched.analysis.worst.state import read_state, write_state
from hindsched.analysis.worst.witness import Witness, make_witness
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.search.space import find_space
from hindsched.json_types import Draft, JsonObject, Keywords
from hindsched.limits import LimitReached, OutOfTime, counted_time, overrun
from hindsched.limits import time_limit as stopped_after
from hindsched.solvers.door.interrupt import catch_interrupt

DEFAULT_SECONDS = 60.0
"""Time limit of a search that is given neither a time nor a work limit."""
KEEP = 0.99
"""Share of the ratio's distance from 1 that shrinking keeps."""
SEARCH_SHARE = 0.7
"""Of a time limit, what the search has; shrinking ends by then too, the rest is for the proof."""
SHRINK_SHARE = 0.25
"""Seconds of shrinking over those of the search, at least `SHRINK_SECONDS`."""
SHRINK_SECONDS = 5.0
SHRINK_WORK = 2_000
"""Most evaluations of shrinking."""
STATE_SECONDS = 2.0
"""Between two writings of the search's state."""


def worst(
    family: str,
    algorithm: Contender,
    against: Contender | None = None,
    *,
    preset: str | None = None,
    ranges: Mapping[str, object] | None = None,
    settings: Keywords | None = None,
    formulation: str | None = None,
    starts: Sequence[Start] = DEFAULT_STARTS,
    seeds: int = 5,
    seed: int = 0,
    time_limit: float | None = None,
    work_limit: int | None = None,
    target: float | None = None,
    workers: int = 0,
    evolve: bool = True,
    polish: bool = True,
    shrink: bool = True,
    keep: float = KEEP,
    folder: str | Path | None = None,
    resume: bool = False,
    on_progress: Callable[[Search], None] | None = None,
) -> Witness:
    """Search the instance on which an algorithm is worst.

    Parameters
    ----------
    family : str
        The family's word.
    algorithm : str, class or OnlineAlgorithm
        A registered name, ``path/to/file.py:Class``, ``exec:command``, a class or an object.
    against : str, class or OnlineAlgorithm, optional
        Another algorithm to compare with in place of the optimum.
    preset : str, optional
        The family's search space; its first one if absent.
    ranges : mapping, optional
        Ranges in place of the space's: a number or ``[low, high]`` by name; ``jobs`` is how many.
    settings : mapping, optional
        Settings of the algorithms.
    formulation : str, optional
        The family's problem; the space's if absent.
    starts : sequence
        ``gadgets``, ``random``, instances, their files, folders of witnesses or of results.
    seeds : int
        Runs of a randomised algorithm on each candidate.
    seed : int
        Of the search's draws. The same seed looks at the same candidates in the same order.
    time_limit : float, optional
        Seconds for everything, most of them for the search; a minute of search if neither this nor
        `work_limit` is given.
    work_limit : int, optional
        Candidates to evaluate; unlike a time limit it makes the result the same everywhere.
    target : float, optional
        A ratio that is enough.
    workers : int
        Local processes; 0 for this one. They change no result.
    evolve : bool
        False for plain random search.
    polish : bool
        Whether numbers are polished by CMA-ES, if the package ``cma`` is installed.
    shrink : bool
        Whether the instance found is made simpler.
    keep : float
        Share of the ratio's distance from 1 that shrinking keeps.
    folder : str or Path, optional
        Where the search's state and the witness are written.
    resume : bool
        Whether to go on with the search whose state is in the folder.
    on_progress : callable, optional
        Told of the search after every generation.

    Returns
    -------
    Witness
        Ctrl-C ends the search early and gives what was found.

    Raises
    ------
    InputError
        For an unknown family, algorithm, range or setting.
    SolveFailed
        If the algorithm ran on no candidate.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.worst("oasis", "fifo", preset="one-slot", work_limit=60)
    >>> round(found.proven, 6)
    10.0
    """
    space = find_space(family, preset).with_ranges(ranges or {})
    problem = Problem.of(
        space, algorithm, against, settings=settings, formulation=formulation, seeds=seeds
    )
    _check(seed, time_limit, work_limit, keep, workers, target)
    place = None if folder is None else Path(folder)
    if resume and place is None:
        raise InputError("resume", True, "needs the folder of the search")
    ends = counted_time() + (overrun(time_limit) or math.inf)
    try:
        with _stopped_at(ends):
            begin = find_starts(space, starts, problem.algorithm.name)
    except OutOfTime:
        rule = "no time was left to search once the starts were read: raise the time limit"
        raise LimitReached(rule) from None
    search = Search(
        space,
        seed,
        begin,
        evolve=evolve,
        polish=polish,
        draw=RANDOM in starts,
    )
    question = _question(problem, search, starts, preset)
    if resume and place is not None:
        read_state(search, question, place)
    searching, seconds = math.inf, math.inf if work_limit is not None else DEFAULT_SECONDS
    if time_limit is not None:
        now = counted_time()
        searching, seconds = now + SEARCH_SHARE * (ends - now), SEARCH_SHARE * time_limit
    with catch_interrupt() as stop, evaluating(problem, workers) as evaluate:
        ended = "time"
        with suppress(OutOfTime), _stopped_at(searching):
            ended = search.run(
                evaluate,
                seconds=seconds,
                evaluations=math.inf if work_limit is None else work_limit,
                target=math.inf if target is None else target,
                stop=stop.is_set,
                on_generation=_after_generation(search, question, place, on_progress),
            )
        if place is not None:
            write_state(search, question, place)
        if search.best is None:
            raise SolveFailed(_nothing_found(problem, search, ended))
        facts: JsonObject = {
            "seed": seed,
            "ended": ended,
            "found": search.best.score,
            "by": search.best_from,
            "seconds": search.seconds,
            "generations": search.generation,
            "evaluations": search.counts["evaluations"],
            "counts": dict(search.counts),
            "polished": bool(search.polish and search.evolve and can_polish()),
            "trace": search.trace,
        }
        data = search.best.data
        if shrink and not stop.is_set():
            limit = max(SHRINK_SECONDS, SHRINK_SHARE * min(seconds, search.seconds))
            limit = math.inf if math.isinf(seconds) else limit
            limit = min(limit, searching - counted_time())
            with suppress(OutOfTime), _stopped_at(searching):
                data, tried = _shrink(problem, search, evaluate, keep, limit, stop.is_set)
                facts |= {"keep": keep, "shrinking": tried}
    try:
        with _stopped_at(ends):
            witness = make_witness(
                problem, data, {**facts, "digest": digest(data)}, ends - counted_time()
            )
    except OutOfTime:
        rule = "was found, and no time was left to run everything once more: raise the time limit"
        raise LimitReached(f"a ratio of {search.best.score:.6g} {rule}") from None
    if place is not None:
        witness.write(place)
    return witness


def _stopped_at(ends: float) -> stopped_after:
    """Stop what runs inside at a time of `counted_time`."""
    return stopped_after(None if math.isinf(ends) else max(0.0, ends - counted_time()))


def _shrink(
    problem: Problem,
    search: Search,
    evaluate: Evaluate,
    keep: float,
    seconds: float,
    stop: Callable[[], bool],
) -> tuple[Draft, int]:
    """Shrink the best candidate within a time and a work limit."""
    assert search.best is not None
    end, work = counted_time() + seconds, 0
    score = search.best.score
    least = score if score == math.inf else score - (1 - keep) * abs(score - 1)

    def worth(data: Draft) -> Evaluation | None:
        nonlocal work
        work += 1
        if work > SHRINK_WORK:
            return None
        return evaluate([(data, least)], lambda: stop() or counted_time() > end)[0]

    return shrink_data(problem.space, search.best.data, worth, least)


def _after_generation(
    search: Search,
    question: JsonObject,
    place: Path | None,
    on_progress: Callable[[Search], None] | None,
) -> Callable[[Search], None]:
    last = time.monotonic()

    def after(found: Search) -> None:
        nonlocal last
        if place is not None and time.monotonic() - last > STATE_SECONDS:
            write_state(search, question, place)
            last = time.monotonic()
        if on_progress is not None:
            on_progress(found)

    return after


def _question(
    problem: Problem, search: Search, starts: Sequence[Start], preset: str | None
) -> JsonObject:
    """What was asked: a search goes on only with the same."""
    space = problem.space
    fields = (*space.job_fields, *space.cluster_fields)
    return {
        "family": space.family,
        "preset": preset,
        "algorithm": problem.algorithm.name,
        "against": None if problem.against is None else problem.against.name,
        "settings": jsonable(dict(problem.algorithm.settings)),
        "formulation": problem.formulation,
        "jobs": list(space.jobs),
        "lists": {key: list(ends) for key, ends in space.lists.items()},
        "ranges": {item.path: list(item.choices or (item.low, item.high)) for item in fields},
        "starts": [str(getattr(start, "name", start)) for start in starts],
        "seeds": problem.seeds,
        "seed": search.seed,
        "evolve": search.evolve,
        "polish": search.polish,
    }


def _nothing_found(problem: Problem, search: Search, ended: str) -> str:
    if search.failure is not None:
        return f"{problem.algorithm.name} has a ratio on no candidate: {search.failure}"
    return f"no candidate was evaluated before the search ended ({ended})"


def _check(
    seed: int,
    time_limit: float | None,
    work_limit: int | None,
    keep: float,
    workers: int,
    target: float | None,
) -> None:
    check_workers(workers)
    if type(seed) is not int or seed < 0:
        raise InputError("seed", seed, "must be an integer of at least 0")
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise InputError("time_limit", time_limit, "must be a number of seconds above 0")
    if work_limit is not None and (type(work_limit) is not int or work_limit < 1):
        raise InputError("work_limit", work_limit, "must be a count of at least 1")
    if not 0 < keep <= 1:
        raise InputError("keep", keep, "must be above 0 and at most 1")
    if target is not None and not 1 <= target < math.inf:
        raise InputError("target", target, "must be a ratio, a number of at least 1")
