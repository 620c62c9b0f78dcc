"""``worst``: search the instance on which an algorithm is worst, and shrink what was found.

Candidates are drawn from the family's ranges, or are the best one so far with one thing changed;
each is run and solved exactly within a limit of work that no clock sets. Then simpler variants are
taken while the ratio stays.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean

import numpy as np
from joblib import Parallel, delayed

from hindsched.analysis.interval import Interval
from hindsched.analysis.plan import Contender, own_settings
from hindsched.analysis.ratio import CONTRADICTION, Optimum, optimum_of
from hindsched.analysis.sweep import check_workers
from hindsched.analysis.worst.witness import Witness, quotient
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import read, read_json, write_json
from hindsched.instances.search_space import JOBS, SearchSpace, find_space
from hindsched.json_types import Draft, Keywords
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import build_algorithm, build_from, name_of
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.interrupt import catch_interrupt

DEFAULT_SECONDS = 60.0
EXACT_WORK = 1_000
"""Work of a candidate's solve: a limit that no clock sets, so that each has one score."""
BATCH = 8
"""Candidates made from the same best one, whatever the number of workers."""
DRAWN = 0.5
"""Share of the candidates that are drawn afresh."""
SEARCH_SHARE, SHRINK_WORK = 0.7, 400
"""Of a time limit, what the search has; evaluations of the shrinking."""
STATE = "search.json"
FRESH_RUNS = 20
"""Runs of a randomised algorithm on its witness, with seeds that the search did not see."""
PROOF_SECONDS = 5.0
"""Longest solve of the witness itself, whose bound gives the ratio's upper end."""


@dataclass(frozen=True)
class Question:
    """Which algorithm, against what, over which instances.

    Parameters
    ----------
    space : SearchSpace
        The instances.
    algorithm, against : str, class or OnlineAlgorithm
        Whose ratio is searched for; another one in place of the optimum, or None.
    settings : mapping
        Settings of the algorithms.
    formulation : str
        The family's problem.
    seeds : int
        Runs of a randomised algorithm on each candidate.
    """

    space: SearchSpace
    algorithm: Contender
    against: Contender | None
    settings: Keywords
    formulation: str
    seeds: int

    def run(self, contender: Contender, instance: Instance, seed: int = 0) -> SimulationResult:
        """One run of an algorithm."""
        family = self.space.family
        chosen: str | OnlineAlgorithm
        if isinstance(contender, OnlineAlgorithm):
            chosen, settings = copy.deepcopy(contender), None
        else:
            settings = dict(own_settings(family, contender, self.settings))
            if not isinstance(contender, str):
                chosen = build_from(contender, contender.__name__, settings)
                settings = None
            else:
                chosen = contender
        return simulate(
            instance, chosen, seed=seed, settings=settings, formulation=self.formulation
        )

    def runs(
        self, contender: Contender, instance: Instance, first: int = 0, count: int | None = None
    ) -> list[SimulationResult]:
        """Runs of an algorithm, one a seed where it is randomised; their schedules hold."""
        number = (count or self.seeds) if is_randomised(self.space.family, contender) else 1
        runs = [self.run(contender, instance, first + seed) for seed in range(number)]
        for run in runs:
            if run.in_feasible_set and run.violations:
                raise InputError(run.algorithm, run.violations[0], "must not break a constraint")
        return runs


@dataclass(frozen=True)
class Evaluation:
    """A candidate's ratio (-inf if it has none), and why it has none."""

    score: float
    message: str = ""


def evaluate(question: Question, data: Draft) -> Evaluation:
    """The ratio of the algorithm on a candidate, to the best schedule that is found."""
    try:
        instance = question.space.instance(data)
        runs = question.runs(question.algorithm, instance)
        objective = fmean(run.objective for run in runs)
        if question.against is not None:
            others = question.runs(question.against, instance)
            known = [fmean(run.objective for run in others)]
        else:
            options = {"work_limit": EXACT_WORK, "threads": 1}
            method, form = question.space.exact, question.formulation
            found = solve(instance, method, formulation=form, options=options)
            known = [] if found.objective is None else [found.objective]
            known += [run.objective for run in runs if not run.violations]
    except HindschedError as error:
        return Evaluation(-math.inf, f"{type(error).__name__}: {error}")
    if not known:
        return Evaluation(-math.inf, "no schedule was found within the limit of work")
    best = max(known) if instance.sense == "max" else min(known)
    return Evaluation(quotient(instance.sense, objective, best))


def worst(
    family: str,
    algorithm: Contender,
    against: Contender | None = None,
    *,
    preset: str | None = None,
    ranges: Mapping[str, object] | None = None,
    settings: Keywords | None = None,
    formulation: str | None = None,
    starts: Sequence[Instance | str | Path] = (),
    seeds: int = 5,
    seed: int = 0,
    time_limit: float | None = None,
    work_limit: int | None = None,
    target: float | None = None,
    workers: int = 0,
    shrink: bool = True,
    keep: float = 0.99,
    folder: str | Path | None = None,
    resume: bool = False,
    on_progress: Callable[[int, float], None] | None = None,
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
    starts : sequence, optional
        Instances, or their files, to begin with.
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
    shrink : bool
        Whether the instance found is made simpler.
    keep : float
        Share of the ratio's distance from 1 that shrinking keeps.
    folder : str or Path, optional
        Where the search's state and the witness are written.
    resume : bool
        Whether to go on with the search whose state is in the folder.
    on_progress : callable, optional
        Told the number of candidates and the ratio after every batch.

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
    >>> found.proven > 5
    True
    """
    space = find_space(family, preset).with_ranges(ranges or {})
    _check(seed, seeds, time_limit, work_limit, keep, workers, target)
    question = _question(space, algorithm, against, settings or {}, formulation, seeds)
    place = None if folder is None else Path(folder)
    if resume and place is None:
        raise InputError("resume", True, "needs the folder of the search")
    asked = json.loads(
        json.dumps([family, preset, str(algorithm), str(against), seed, dict(ranges or {})])
    )
    done, best, score = 0, None, -math.inf
    if resume and place is not None:
        done, best, score = _read_state(place / STATE, asked)
    first = [space.adopt(one if isinstance(one, Instance) else read(one)) for one in starts]
    begun, ended, message = time.monotonic(), "work", ""
    seconds = math.inf if work_limit is not None else DEFAULT_SECONDS
    seconds = seconds if time_limit is None else SEARCH_SHARE * time_limit
    most = math.inf if work_limit is None else work_limit
    enough = math.inf if target is None else target
    with catch_interrupt() as stop, Parallel(n_jobs=max(1, workers)) as pool:
        while done < most:
            numbers = range(done, int(min(most, done - done % BATCH + BATCH)))
            batch = [
                first[number] if number < len(first) else _candidate(space, best, seed, number)
                for number in numbers
            ]
            found = pool(delayed(evaluate)(question, data) for data in batch)
            for data, one in zip(batch, found, strict=True):
                message = one.message or message
                if one.score > score:
                    best, score = data, one.score
            done = numbers[-1] + 1
            if place is not None:
                write_json([asked, done, best, str(score)], place / STATE)
            if on_progress is not None:
                on_progress(done, score)
            if stop.is_set() or score >= enough or time.monotonic() - begun > seconds:
                ended = "interrupted" if stop.is_set() else "time"
                ended = "target" if score >= enough else ended
                break
        searched = time.monotonic() - begun
        if best is None:
            rule = message or f"no candidate was evaluated before the search ended ({ended})"
            raise SolveFailed(f"{name_of_contender(algorithm)} has a ratio on no candidate: {rule}")
        if shrink and not stop.is_set():
            least = score if score == math.inf else score - (1 - keep) * abs(score - 1)
            limit = begun + (math.inf if work_limit is not None else 1.3 * seconds)
            best = shrunk(question, best, least, lambda: stop.is_set() or time.monotonic() > limit)
    facts = {"seed": seed, "ended": ended, "found": score, "seconds": searched, "evaluations": done}
    witness = make_witness(question, best, f"{family}-worst-{digest(best)}", facts)
    if place is not None:
        witness.write(place)
    return witness


def shrunk(question: Question, data: Draft, least: float, stop: Callable[[], bool]) -> Draft:
    """The simplest variant found whose ratio is at least `least`: fewer jobs, plainer numbers."""
    space, tried, better = question.space, {digest(data)}, True
    while better and not stop():
        better = False
        for variant in _variants(space, data):
            made = space.normal(variant)
            if digest(made) in tried or complexity(space, made) >= complexity(space, data):
                continue
            if stop() or len(tried) > SHRINK_WORK:
                return data
            tried.add(digest(made))
            if evaluate(question, made).score >= least:
                data, better = made, True
                break
    return data


def complexity(space: SearchSpace, data: Draft) -> tuple[int, int, int, float]:
    """How hard a candidate is to read: items, different numbers, their digits, their size."""
    values = [
        (item, item.read(place))
        for item, holder in space.all_fields(data)
        for place in item.places(holder)
    ]
    numbers = [(item, value) for item, value in values if not item.choices]
    return (
        len(data[JOBS]) + sum(len(data[key]) for key in space.lists),
        len({(item.path, value) for item, value in values}),
        sum(len(f"{value:.12g}".replace(".", "").strip("-0")) for _, value in numbers),
        sum(math.log1p(abs(value - item.low)) for item, value in numbers),
    )


def digest(data: Draft) -> str:
    """A short name of a candidate."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:10]


def is_randomised(family: str, contender: Contender) -> bool:
    """Whether an algorithm's seed can change a decision."""
    if isinstance(contender, OnlineAlgorithm):
        return contender.randomised
    if isinstance(contender, str):
        return build_algorithm(family, contender).randomised
    return bool(contender.randomised)


def name_of_contender(contender: Contender) -> str:
    """An algorithm's name for people."""
    if isinstance(contender, OnlineAlgorithm):
        return name_of(contender)
    return contender if isinstance(contender, str) else contender.__name__


def _candidate(space: SearchSpace, best: Draft | None, seed: int, number: int) -> Draft:
    """Draw a candidate, or change one thing of the best: the same for a seed and a number."""
    random = np.random.default_rng((seed, number))
    if best is None or random.random() < DRAWN:
        return space.draw(random)
    data = deepcopy(best)
    lists = [JOBS, *space.lists]
    fields = [
        (item, place) for item, holder in space.all_fields(data) for place in item.places(holder)
    ]
    if not fields or random.random() < 0.25:
        key = str(random.choice(lists))
        space.resize(data, key, max(1, len(data[key]) + int(random.choice((-1, 1)))))
        return space.normal(data)
    item, place = fields[int(random.integers(len(fields)))]
    same = [item.read(other) for it, other in fields if it.path == item.path]
    drawn = item.draw(random)
    item.write(place, drawn if random.random() < 0.6 else same[int(random.integers(len(same)))])
    return space.normal(data)


def _variants(space: SearchSpace, data: Draft) -> Iterator[Draft]:
    """Simpler variants: fewer items, a field alike everywhere, one number plainer."""
    for key in (JOBS, *space.lists):
        count, width = len(data[key]), len(data[key]) // 2
        while width >= 1:
            for first in range(0, count, width):
                made = deepcopy(data)
                del made[key][first : first + width]
                if made[key]:
                    yield made
            width //= 2
    places = sum(1 for item, holder in space.all_fields(data) for _ in item.places(holder))
    for number in range(places):
        item, place = _at(space, data, number)
        value = item.read(place)
        plain = list(item.choices) or [
            item.low, *(one for one in (0, 1, 10) if item.low <= one <= item.high),
            float(f"{value:.1g}"), item.low + (value - item.low) / 2,
        ]  # fmt: skip
        for simple in dict.fromkeys(plain):
            if simple != value:
                made = deepcopy(data)
                changed, where = _at(space, made, number)
                changed.write(where, simple)
                yield made


def _at(space: SearchSpace, data: Draft, number: int):  # type: ignore[no-untyped-def]
    found = (
        (item, place) for item, holder in space.all_fields(data) for place in item.places(holder)
    )
    return next(islice(found, number, None))


def _question(
    space: SearchSpace,
    algorithm: Contender,
    against: Contender | None,
    settings: Keywords,
    formulation: str | None,
    seeds: int,
) -> Question:
    known: set[str] = set()
    for contender in (algorithm, against):
        if contender is not None and not isinstance(contender, OnlineAlgorithm):
            known |= set(own_settings(space.family, contender, settings))
            is_randomised(space.family, contender)  # an unknown name is said here
    for name, value in settings.items():
        if name not in known:
            rule = f"must be a range ({', '.join(space.names())}) or a setting"
            raise InputError(f"set.{name}", value, rule)
    first = space.instance(space.normal(deepcopy(space.base)))
    wanted = first.check_formulation(formulation or space.formulation)
    return Question(space, algorithm, against, settings, wanted, seeds)


def _read_state(path: Path, asked: list[object]) -> tuple[int, Draft | None, float]:
    before, done, best, score = read_json(path)
    if before != asked:
        raise InputError("resume", str(asked), f"must be as before: {before}")
    return int(done), best, float(score)


def _check(
    seed: int,
    seeds: int,
    time_limit: float | None,
    work_limit: int | None,
    keep: float,
    workers: int,
    target: float | None,
) -> None:
    check_workers(workers)
    rules = {
        "seed": (seed, type(seed) is int and seed >= 0, "must be an integer of at least 0"),
        "seeds": (seeds, type(seeds) is int and seeds >= 1, "must be at least 1"),
        "time_limit": (
            time_limit, time_limit is None or 0 < time_limit < math.inf,
            "must be a number of seconds above 0",
        ),
        "work_limit": (
            work_limit, work_limit is None or (type(work_limit) is int and work_limit >= 1),
            "must be a count of at least 1",
        ),
        "keep": (keep, 0 < keep <= 1, "must be above 0 and at most 1"),
        "target": (
            target, target is None or 1 <= target < math.inf, "must be a ratio, at least 1"
        ),
    }  # fmt: skip
    for name, (value, holds, rule) in rules.items():
        if not holds:
            raise InputError(name, value, rule)


def make_witness(
    question: Question, data: Draft, name: str, search: Mapping[str, object]
) -> Witness:
    """Run everything once more on a candidate, and prove in seconds what can be proven."""
    instance = question.space.instance(data, name)
    runs = question.runs(question.algorithm, instance, question.seeds, FRESH_RUNS)
    if all(run.solution.assignments() == runs[0].solution.assignments() for run in runs):
        runs = runs[:1]  # no seed changes anything here
    certificate = None
    if question.against is not None:
        others = sorted(question.runs(question.against, instance), key=lambda run: run.objective)
        middle = others[(len(others) - 1) // 2]
        reference, by = middle.solution, middle.algorithm
        level = middle.objective
        optimum = Optimum(instance.sense, Interval(level, level), "compared", by)
    else:
        options = {"time_limit": PROOF_SECONDS, "threads": 1}
        found = solve(
            instance, question.space.exact, formulation=question.formulation, options=options
        )
        known = [] if found.solution is None else [("offline", found.solution)]
        known += [(run.algorithm, run.solution) for run in runs if not run.violations]
        if not known:
            raise SolveFailed(f"{instance.name}: no schedule was found")
        sign = 1 if instance.sense == "max" else -1
        by, reference = max(known, key=lambda item: sign * item[1].objective())
        value, bound, certificate = reference.objective(), found.bound, found.certificate
        closed = bound is not None and abs(bound - value) <= CONTRADICTION * max(1.0, abs(value))
        status = "optimal" if closed else "feasible"
        optimum = optimum_of(instance.sense, value, bound, status, proof="solver")
    return Witness(
        instance=instance,
        algorithm=runs[0].algorithm,
        settings=runs[0].settings,
        against=None if question.against is None else by,
        runs=runs,
        reference=reference,
        reference_by=by,
        certificate=certificate,
        optimum=optimum,
        search=search,
    )
