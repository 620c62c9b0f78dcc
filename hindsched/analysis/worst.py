"""``worst``: search the instance on which an algorithm is worst, shrink it, and prove its ratio.

Candidates are drawn from the family's ranges, or are the best one so far with one thing changed;
each is run and solved exactly within a limit of work that no clock sets. Then simpler variants are
taken while the ratio stays. What is found is a witness: any feasible schedule proves a ratio, so
that the claim needs nobody's word. As a folder:

====================  ==========================================================================
``instance.json``     the instance
``run.json``          the algorithm's schedule; ``run-sN.json`` for each seed of a randomised one
``reference.json``    the better schedule
``certificate.json``  prices or a tree that bound the optimum, if there are
``witness.json``      the claim: ratio, theorem, how it was found
``witness.txt``       what goes wrong, in words
``search.json``       the search's state
====================  ==========================================================================
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed

from hindsched.analysis.compare import Contender, label_of, own_settings
from hindsched.analysis.interval import Interval
from hindsched.analysis.ratio import (
    CONTRADICTION,
    Optimum,
    Ratio,
    Sense,
    competitive_ratio,
    optimum_of,
)
from hindsched.analysis.sweep import check_workers
from hindsched.analysis.tables import jsonable
from hindsched.analysis.tasks import theorem_of
from hindsched.analysis.verify import verify
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import Instance, whole_number
from hindsched.instances.io import read, read_json, write, write_json, write_text
from hindsched.instances.search_space import JOBS, SearchSpace, find_space
from hindsched.json_types import Draft, JsonObject, Keywords
from hindsched.online.protocol import OnlineAlgorithm, Theorem
from hindsched.online.registry import build_algorithm, build_from
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.base import Solution, write_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.certificates.file import write_certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.work import catch_interrupt

DEFAULT_SECONDS = 60.0
EXACT_WORK = 1_000
"""Work of a candidate's solve: a limit that no clock sets, so that each has one score."""
BATCH = 8
"""Candidates made from the same best one, whatever the number of workers."""
DRAWN = 0.5
"""Share of the candidates that are drawn afresh."""
SEARCH_SHARE, SHRINK_WORK, KEEP = 0.7, 400, 0.99
"""Of a time limit, what the search has; evaluations of the shrinking, and the share of the ratio's
distance from 1 that it keeps."""
STATE = "search.json"
FRESH_RUNS = 20
"""Runs of a randomised algorithm on its witness, with seeds that the search did not see."""
PROOF_SECONDS = 5.0
"""Longest solve of the witness itself, whose bound gives the ratio's upper end."""
MOST_JOBS = 4
"""Jobs that the words tell."""
AGREEMENT = 1e-6
CONTRADICTED = "CONTRADICTED"


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
    workers: int = 0,
    shrink: bool = True,
    folder: str | Path | None = None,
    resume: bool = False,
    on_progress: Callable[[int, float], None] | None = None,
) -> Witness:
    """Search the instance on which an algorithm is worst.

    Parameters
    ----------
    family : str
        The family's name.
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
    workers : int
        Local processes; 0 for this one. They change no result.
    shrink : bool
        Whether the instance found is made simpler.
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
    check_workers(workers)
    whole_number("seed", seed, 0)
    if work_limit is not None:
        whole_number("work_limit", work_limit, 1)
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise InputError("time_limit", time_limit, "must be a number of seconds above 0")
    question = Question.of(space, algorithm, against, settings or {}, formulation, seeds)
    place = None if folder is None else Path(folder)
    asked = json.loads(
        json.dumps([family, preset, str(algorithm), str(against), seed, dict(ranges or {})])
    )
    done, best, score = 0, None, -math.inf
    if resume:
        if place is None:
            raise InputError("resume", True, "needs the folder of the search")
        before, done, best, said = read_json(place / STATE)
        if before != asked:
            raise InputError("resume", str(asked), f"must be as before: {before}")
        score = float(said)
    first = [space.adopt(one if isinstance(one, Instance) else read(one)) for one in starts]
    begun, ended, message = time.monotonic(), "work", ""
    seconds = math.inf if work_limit is not None else DEFAULT_SECONDS
    seconds = seconds if time_limit is None else SEARCH_SHARE * time_limit
    most = math.inf if work_limit is None else work_limit
    with catch_interrupt() as stop, Parallel(n_jobs=max(1, workers)) as pool:
        while done < most:
            numbers = range(done, int(min(most, done - done % BATCH + BATCH)))
            batch = [
                first[number] if number < len(first) else _candidate(space, best, seed, number)
                for number in numbers
            ]
            found = pool(delayed(evaluate)(question, data) for data in batch)
            for data, (own, why) in zip(batch, found, strict=True):
                message = why or message
                if own > score:
                    best, score = data, own
            done = numbers[-1] + 1
            if place is not None:
                write_json([asked, done, best, str(score)], place / STATE)
            if on_progress is not None:
                on_progress(done, score)
            if stop.is_set() or time.monotonic() - begun > seconds:
                ended = "interrupted" if stop.is_set() else "time"
                break
        searched = time.monotonic() - begun
        if best is None:
            rule = message or f"no candidate was evaluated before the search ended ({ended})"
            raise SolveFailed(f"{label_of(algorithm)} has a ratio on no candidate: {rule}")
        if shrink and not stop.is_set():
            least = score if score == math.inf else score - (1 - KEEP) * abs(score - 1)
            limit = begun + (math.inf if work_limit is not None else 1.3 * seconds)
            best = shrunk(question, best, least, lambda: stop.is_set() or time.monotonic() > limit)
    facts = {"seed": seed, "ended": ended, "found": score, "seconds": searched, "evaluations": done}
    witness = make_witness(question, best, f"{family}-worst-{digest(best)}", facts)
    if place is not None:
        witness.write(place)
    return witness


@dataclass(frozen=True)
class Question:
    """Which algorithm, against what (None for the optimum), over which instances."""

    space: SearchSpace
    algorithm: Contender
    against: Contender | None
    settings: Keywords
    formulation: str
    seeds: int

    @classmethod
    def of(
        cls,
        space: SearchSpace,
        algorithm: Contender,
        against: Contender | None = None,
        settings: Keywords | None = None,
        formulation: str | None = None,
        seeds: int = 1,
    ) -> Self:
        """The question, checked: its algorithms can be built, its settings are somebody's."""
        known: set[str] = set()
        for contender in (algorithm, against):
            if contender is not None:
                own = _built(space.family, contender, settings or {})[1]
                known |= set(own)
        for name, value in (settings or {}).items():
            if name not in known:
                rule = f"must be a range ({', '.join(space.names())}) or a setting"
                raise InputError(f"set.{name}", value, rule)
        base = space.instance(space.normal(copy.deepcopy(space.base)))
        wanted = base.check_formulation(formulation or space.formulation)
        seeds = whole_number("seeds", seeds, 1)
        return cls(space, algorithm, against, settings or {}, wanted, seeds)

    def runs(
        self, contender: Contender, instance: Instance, first: int = 0, count: int | None = None
    ) -> list[SimulationResult]:
        """Runs of an algorithm, one a seed where it is randomised; their schedules hold."""
        found = []
        for seed in range(first, first + (count or self.seeds)):
            algorithm, own = _built(self.space.family, contender, self.settings)
            given: Any = (contender, own) if isinstance(contender, str) else (algorithm, None)
            run = simulate(
                instance, given[0], seed=seed, settings=given[1], formulation=self.formulation
            )
            if run.in_feasible_set and run.violations:
                raise InputError(run.algorithm, run.violations[0], "must not break a constraint")
            found.append(run)
            if not algorithm.randomised:
                break
        return found

    def reference(
        self, instance: Instance, runs: Sequence[SimulationResult], options: Keywords
    ) -> tuple[str, Solution, Result | None]:
        """Whose the schedule to compare with is, the schedule, and the solve that sought it."""
        if self.against is not None:
            middle = _middle(self.runs(self.against, instance))
            return middle.algorithm, middle.solution, None
        method, form = self.space.exact, self.formulation
        found = solve(instance, method, formulation=form, options={**options, "threads": 1})
        known = [] if found.solution is None else [("offline", found.solution)]
        known += [(run.algorithm, run.solution) for run in runs if not run.violations]
        if not known:
            raise SolveFailed(f"{instance.name}: no schedule was found within the limit")
        sign = 1 if instance.sense == "max" else -1
        return *max(known, key=lambda item: sign * item[1].objective()), found


def _built(
    family: str, contender: Contender, settings: Keywords
) -> tuple[OnlineAlgorithm, JsonObject]:
    """An algorithm for one run, and the settings that it has."""
    if isinstance(contender, OnlineAlgorithm):
        return copy.deepcopy(contender), {}
    own = own_settings(family, contender, settings)
    if isinstance(contender, str):
        return build_algorithm(family, contender, own), own
    return build_from(contender, contender.__name__, own), own


def _middle(runs: Sequence[SimulationResult]) -> SimulationResult:
    """The only run, or the one of median objective."""
    return sorted(runs, key=lambda run: run.objective)[(len(runs) - 1) // 2]


def evaluate(question: Question, data: Draft) -> tuple[float, str]:
    """The ratio of the algorithm on a candidate (-inf if it has none), and why it has none."""
    try:
        instance = question.space.instance(data)
        runs = question.runs(question.algorithm, instance)
        _, best, _ = question.reference(instance, runs, {"work_limit": EXACT_WORK})
    except HindschedError as error:
        return -math.inf, f"{type(error).__name__}: {error}"
    return quotient(instance.sense, fmean(run.objective for run in runs), best.objective()), ""


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
            if evaluate(question, made)[0] >= least:
                data, better = made, True
                break
    return data


def complexity(space: SearchSpace, data: Draft) -> tuple[int, int, int, float]:
    """How hard a candidate is to read: items, different numbers, their digits, their size."""
    values = [(item, item.read(place)) for item, place in _places(space, data)]
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


def _candidate(space: SearchSpace, best: Draft | None, seed: int, number: int) -> Draft:
    """Draw a candidate, or change one thing of the best: the same for a seed and a number."""
    random = np.random.default_rng((seed, number))
    if best is None or random.random() < DRAWN:
        return space.draw(random)
    data = copy.deepcopy(best)
    lists = [JOBS, *space.lists]
    fields = _places(space, data)
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
                made = copy.deepcopy(data)
                del made[key][first : first + width]
                if made[key]:
                    yield made
            width //= 2
    for number, (item, place) in enumerate(_places(space, data)):
        value = item.read(place)
        plain = list(item.choices) or [
            item.low, *(one for one in (0, 1, 10) if item.low <= one <= item.high),
            float(f"{value:.1g}"), item.low + (value - item.low) / 2,
        ]  # fmt: skip
        for simple in dict.fromkeys(plain):
            if simple != value:
                made = copy.deepcopy(data)
                changed, where = _places(space, made)[number]
                changed.write(where, simple)
                yield made


def _places(space: SearchSpace, data: Draft) -> list[tuple[Any, Any]]:
    """Every number of a candidate that may be changed: its field, and where it stands."""
    return [(item, at) for item, holder in space.all_fields(data) for at in item.places(holder)]


def make_witness(
    question: Question, data: Draft, name: str, search: Mapping[str, object]
) -> Witness:
    """Run everything once more on a candidate, and prove in seconds what can be proven."""
    instance = question.space.instance(data, name)
    runs = question.runs(question.algorithm, instance, question.seeds, FRESH_RUNS)
    if all(run.solution.assignments() == runs[0].solution.assignments() for run in runs):
        runs = runs[:1]  # no seed changes anything here
    by, reference, found = question.reference(instance, runs, {"time_limit": PROOF_SECONDS})
    value = reference.objective()
    if found is None:
        optimum = Optimum(instance.sense, Interval(value, value), "compared", by)
    else:
        bound = found.bound
        closed = bound is not None and abs(bound - value) <= CONTRADICTION * max(1.0, abs(value))
        status = "optimal" if closed else "feasible"
        optimum = optimum_of(instance.sense, value, bound, status, proof="solver")
    certificate, is_compared = None if found is None else found.certificate, found is None
    return Witness(instance, runs, reference, by, is_compared, certificate, optimum, search)


def quotient(sense: Sense, objective: float, reference: float) -> float:
    """The ratio to a schedule of this objective; -inf where the two have none.

    Examples
    --------
    >>> quotient("min", 30.0, 10.0), quotient("max", 0.0, 10.0), quotient("max", 0.0, 0.0)
    (3.0, inf, 1.0)
    """
    optimum = optimum_of(sense, reference, reference, "feasible", proof="solver")
    found = competitive_ratio(optimum, objective).interval.lower
    return -math.inf if found is None else found


@dataclass(frozen=True)
class Witness:
    """An instance on which an algorithm is bad, with what proves it.

    Parameters
    ----------
    instance : Instance
        The instance.
    runs : sequence of SimulationResult
        The algorithm's runs, one a seed.
    reference : Solution
        The better schedule: the best one known, or the other algorithm's (its median run).
    reference_by : str
        Whose it is.
    is_compared : bool
        Whether it is another algorithm's, in place of the optimum.
    certificate : Certificate, optional
        Prices or a tree that bound the optimum.
    optimum : Optimum
        What is known of it.
    search : mapping
        How it was found: seed, evaluations, seconds, the ratio before shrinking, ...
    """

    instance: Instance
    runs: Sequence[SimulationResult] = field(repr=False)
    reference: Solution = field(repr=False)
    reference_by: str
    is_compared: bool
    certificate: Certificate | None = field(repr=False)
    optimum: Optimum
    search: Mapping[str, Any] = field(repr=False)

    @property
    def algorithm(self) -> str:
        """Whose ratio it is."""
        return self.runs[0].algorithm

    @property
    def against(self) -> str | None:
        """The algorithm it is compared with in place of the optimum."""
        return self.reference_by if self.is_compared else None

    @property
    def objective(self) -> float:
        """The algorithm's objective, the mean over its runs."""
        return fmean(run.objective for run in self.runs)

    @cached_property
    def ratio(self) -> Ratio:
        """The ratio on this instance; its lower end is proven by the reference alone."""
        return competitive_ratio(
            self.optimum, self.objective, in_feasible_set=self.runs[0].in_feasible_set
        )

    @property
    def proven(self) -> float:
        """The ratio to the reference: what the two schedules prove."""
        value = self.ratio.interval.lower
        return 1.0 if value is None else value

    @cached_property
    def theorem(self) -> Theorem | None:
        """What the paper promises of this algorithm on this instance, if anything."""
        return None if self.is_compared else theorem_of(self.instance, self.algorithm)

    @property
    def contradicts(self) -> bool:
        """Whether a theorem whose assumptions hold is broken."""
        return self.verdict.startswith(CONTRADICTED)

    @property
    def verdict(self) -> str:
        """What the witness says of the theorem, in a sentence."""
        if self.theorem is None:
            return f"No theorem of {self.instance.family} speaks of {self.algorithm}."
        if self.theorem["value"] is None:
            return "The theorem gives no number on the witness."
        kind, value = self.theorem["kind"], float(self.theorem["value"])
        found = (self.ratio.difference.lower or 0.0) if kind == "additive" else self.proven
        is_beyond = found > value + CONTRADICTION * max(1.0, abs(value))
        missing = [item["name"] for item in self.theorem["assumptions"] if not item["holds"]]
        told = f"promises at most {value:.6g} ({kind})"
        if not missing and is_beyond:
            return f"{CONTRADICTED}: the theorem {told}, and all it assumes holds here."
        if not missing:
            return f"The theorem {told}; all it assumes holds here, and the witness keeps it."
        beyond = "; the witness exceeds it, where it does not apply"
        beyond = beyond if is_beyond else ", and does not apply here"
        return f"The theorem {told}{beyond}: {'; '.join(missing)}."

    def to_dict(self) -> JsonObject:
        """The object that ``worst --json`` prints."""
        by = {"by": self.reference_by, "objective": self.reference.objective()}
        return {
            "family": self.instance.family, "algorithm": self.algorithm,
            "settings": dict(self.runs[0].settings), "against": self.against,
            "formulation": self.reference.formulation, "instance": self.instance.name,
            "sha256": self.instance.sha256(), "jobs": len(self.instance.jobs),
            "objective": self.objective, "seeds": [run.seed for run in self.runs],
            "reference": by, "optimum": self.optimum.to_dict(), **self.ratio.to_dict(),
            "theorem": self.theorem, "contradicts_theorem": self.contradicts,
            "verdict": self.verdict, "search": dict(self.search),
        }  # fmt: skip

    def explain(self) -> str:
        """What goes wrong, in words: the claim, the jobs that differ most, the theorem."""
        verb = "earns" if self.instance.sense == "max" else "costs"
        than = self.reference_by if self.against else "a schedule"
        number = len(self.instance.jobs)
        size = f"{number} jobs" if number > 1 else "one job"
        ratio = f"a ratio of at least {self.proven:.6g}"
        ratio = "an infinite ratio" if math.isinf(self.proven) else ratio
        if self.against is None and self.optimum.is_proven:
            ratio += ", and no more on this instance: the schedule is optimal"
        lines = [
            f"With {size}, {self.algorithm} {verb} {self.objective:.6g}"
            f"{' on average' if len(self.runs) > 1 else ''} where {than} {verb} "
            f"{self.reference.objective():.6g}: {ratio}."
        ]
        sign = 1 if self.instance.sense == "max" else -1
        better = {row["job"]: row for row in self.reference.job_rows()}
        losses = []
        for row in _middle(self.runs).solution.job_rows():
            loss = sign * ((better[row["job"]]["value"] or 0.0) - (row["value"] or 0.0))
            if abs(loss) > 1e-9 * max(1.0, abs(row["value"] or 0.0)):
                losses.append((loss, row))
        for loss, row in sorted(losses, key=lambda item: -item[0])[:MOST_JOBS]:
            change = f"{'loses' if loss > 0 else 'gains'} {abs(loss):.6g}"
            where = f"{_when(row)} instead of {_when(better[row['job']])}"
            lines.append(f"{row['job']} (arrives at {row['arrival']}) {change}: {where}.")
        return "\n".join([*lines, self.verdict])

    def write(self, folder: str | Path) -> None:
        """Write the witness as a folder; files of an earlier one in it are replaced."""
        place = Path(folder)
        for old in [*place.glob("run*.json"), *place.glob("certificate.json")]:
            old.unlink()
        write(self.instance, place / "instance.json")
        for run in self.runs:
            name = "run.json" if len(self.runs) == 1 else f"run-s{run.seed}.json"
            by = {"algorithm": run.algorithm, "options": dict(run.settings), "seed": run.seed}
            write_solution(run.solution, place / name, jsonable(by))
        write_solution(self.reference, place / "reference.json", {"by": self.reference_by})
        if self.certificate is not None:
            write_certificate(self.certificate, place / "certificate.json")
        write_json(jsonable(self.to_dict()), place / "witness.json")
        write_text(self.explain() + "\n", place / "witness.txt")


def check_witness(folder: str | Path) -> JsonObject:
    """Check a witness from its files alone: no search, no solver, no algorithm.

    Parameters
    ----------
    folder : str or Path
        What `Witness.write` wrote, from whomever.

    Returns
    -------
    dict
        ``ratio`` (recomputed), ``claimed`` and ``files`` (their objectives).

    Raises
    ------
    InputError
        If a file is malformed, the better schedule breaks a constraint, or the ratio is not the one
        that is claimed.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.worst("oasis", "fifo", preset="one-slot", work_limit=60, folder="witness")
    >>> hs.check_witness("witness")["ratio"] == found.proven
    True
    """
    place = Path(folder)
    instance, claimed = read(place / "instance.json"), read_json(place / "witness.json")
    runs = sorted(place.glob("run*.json"))
    if not runs or not isinstance(claimed, dict):
        raise InputError(str(place), "(no run*.json)", "must be the folder of a witness")
    found = {path.name: verify(instance, path) for path in [*runs, place / "reference.json"]}
    reference = found["reference.json"]
    if not reference.is_feasible:
        rule = "must break no constraint"
        raise InputError("reference.json", str(reference.violations[0]), rule)
    objective = fmean(found[path.name].objective for path in runs)
    ratio = quotient(instance.sense, objective, reference.objective)
    told = (claimed.get("ratio") or {}).get("lower")
    said = math.inf if told == "inf" else told
    agrees = isinstance(said, int | float) and (
        said == ratio or abs(said - ratio) <= AGREEMENT * max(1.0, abs(ratio))
    )
    if not agrees:
        rule = f"the schedules have the ratio {ratio!r}"
        raise InputError("witness.json: ratio.lower", told, rule)
    files = {name: item.objective for name, item in found.items()}
    return {"ratio": ratio, "claimed": said, "files": files}


def _when(row: Any) -> str:
    if row["start"] is None:
        return "not served"
    if row["completion"] is None:
        return f"begun at {row['start']}, not completed"
    if row["start"] == row["completion"]:
        return f"in slot {row['start']}"
    return f"in slots {row['start']} to {row['completion']}"
