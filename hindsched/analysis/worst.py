"""``worst``: search the instance on which an algorithm is worst, shrink it, and prove its ratio.

Candidates are drawn by the family's generator, or are the best one so far with one thing changed;
each is run and solved exactly within a limit of work that no clock sets. Then simpler variants are
taken while the ratio stays. What is found is a witness: any feasible schedule proves a ratio, so
that the claim needs nobody's word.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from hindsched.analysis.bounds import Bounds
from hindsched.analysis.local_search import SearchQuestion, search
from hindsched.analysis.ratio import Optimum, Ratio, Sense, competitive_ratio, optimum_of
from hindsched.analysis.tables import jsonable
from hindsched.analysis.tasks import Contender, Entry, theorem_of
from hindsched.analysis.verify import verify
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import Instance, whole_number
from hindsched.instances.io import read, read_json, write, write_json, write_text
from hindsched.instances.search_space import SearchSpace, find_space, leaves, lists
from hindsched.json_types import Draft, JsonObject, Keywords
from hindsched.online.protocol import Theorem, unmet
from hindsched.online.simulator import SimulationResult, simulate
from hindsched.solutions.base import Solution, write_solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.certificates.file import write_certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.result import Result

EXACT_WORK = 1_000  # of a candidate's solve: a limit that no clock sets, so that each has one score
DRAWN = 0.5  # share of candidates that is drawn afresh
MOST_SHRUNK = 400  # evaluations
FRESH_RUNS = 20  # of a randomised algorithm on its witness, with seeds that the search did not see
PROOF_SECONDS = 5.0  # longest solve of the witness itself, for the ratio's upper end
MOST_JOBS = 4  # jobs that the words tell
AGREEMENT = 1e-6
COMPARED, CONTRADICTED = "compared", "CONTRADICTED"


def worst(
    family: str,
    algorithm: Contender,
    against: Contender | None = None,
    *,
    preset: str = "small",
    ranges: Mapping[str, object] | None = None,
    settings: Keywords | None = None,
    formulation: str | None = None,
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
    family, preset : str
        The family's name and the preset of its generator near which to search.
    algorithm : str, class or OnlineAlgorithm
        A registered name, ``path/to/file.py:Class``, ``exec:command``, a class or an object.
    against : str, class or OnlineAlgorithm, optional
        Another algorithm to compare with in place of the optimum.
    ranges, settings : mapping, optional
        Ranges in place of the generator's: a number or ``[low, high]`` by field of a file
        (``chunks``, ``jobs.worker.gpu``), where ``jobs`` is how many; settings of the algorithms.
    formulation : str, optional
        Which of the family's problems; None for its default.
    seeds, seed : int
        Runs of a randomised algorithm on each candidate; seed of the search's draws.
    time_limit, work_limit : float and int, optional
        Seconds for everything, most of them for the search; candidates to evaluate, which makes the
        result the same everywhere. A minute of search if neither is given.
    workers, shrink : int and bool
        Local processes, 0 for this one; whether the instance found is made simpler.
    folder, resume : path, optional, and bool
        Where the search's state and the witness are written; whether to go on from there.
    on_progress : callable, optional
        Told the number of candidates and the ratio after every batch.

    Returns
    -------
    Witness
        Ctrl-C ends the search early and gives what was found.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.worst("gang", "fifo", work_limit=60)
    >>> found.proven > 1.2
    True
    """
    space = find_space(family, preset).with_ranges(ranges or {})
    question = Question(space, algorithm, against, settings or {}, seeds, formulation)
    best, facts = search(
        question, [family, preset, str(algorithm), str(against), seed, ranges or {}, formulation],
        seed=seed, time_limit=time_limit, work_limit=work_limit, workers=workers, folder=folder,
        resume=resume, on_progress=on_progress, most_shrunk=MOST_SHRUNK if shrink else 0,
        nothing=f"{question.entry(algorithm).label} has a ratio on no candidate",
    )  # fmt: skip
    digest = hashlib.sha256(json.dumps(best, sort_keys=True).encode()).hexdigest()[:10]
    witness = make_witness(question, best, f"{family}-worst-{digest}", facts)
    if folder is not None:
        witness.write(folder)
    return witness


@dataclass(frozen=True)
class Question(SearchQuestion[Draft]):
    """Which algorithm, against what (None for the optimum), over which instances."""

    space: SearchSpace
    algorithm: Contender
    against: Contender | None = None
    settings: Keywords = field(default_factory=dict)
    seeds: int = 1
    formulation: str | None = None

    def __post_init__(self) -> None:
        """Its algorithms can be built, its settings are somebody's."""
        contenders = [
            contender for contender in (self.algorithm, self.against) if contender is not None
        ]
        known = {name for c in contenders for name in self.entry(c).has}
        for name, value in self.settings.items():
            if name not in known:
                rule = f"must be a range ({', '.join(self.space.names())}) or a setting"
                raise InputError(f"set.{name}", value, rule)
        whole_number("seeds", self.seeds, 1)

    def entry(self, contender: Contender) -> Entry:
        """What runs."""
        return Entry.of(self.space.family, contender, self.settings)

    def propose(self, best: Draft | None, seed: int, number: int) -> Draft:
        """Draw a candidate, or change one thing of the best."""
        random = np.random.default_rng((seed, number))
        return self.space.candidate(random, None if random.random() < DRAWN else best)

    def evaluate(self, candidate: Draft) -> tuple[float, str]:
        """The ratio of the algorithm on a candidate."""
        try:
            instance = self.space.instance(candidate)
            runs = self.runs(self.algorithm, instance)
            _, best, _ = self.reference(instance, runs, {"work_limit": EXACT_WORK})
        except HindschedError as error:
            return -math.inf, f"{type(error).__name__}: {error}"
        mean = fmean(run.objective for run in runs)
        return ratio_to(instance.sense, mean, best.objective()), ""

    def variants(self, candidate: Draft) -> Iterator[Draft]:
        """Simpler variants: one item fewer, one field fewer, one number plainer."""
        for key in reversed(lists(candidate)):
            fewest = self.space.counts.get(key, (1, 1))[0]
            for at in range(len(candidate[key]) if len(candidate[key]) > fewest else 0):
                made = copy.deepcopy(candidate)
                del made[key][at]
                yield made
        for number, (path, holder, key) in enumerate(leaves(candidate)):
            made = copy.deepcopy(candidate)
            _, changed, _ = list(leaves(made))[number]
            if isinstance(changed, dict):
                del changed[key]
                yield made
            if not self.space.varies(path):
                continue
            for simple in self.space.spans[path].plainer(holder[key]):
                made = copy.deepcopy(candidate)
                _, changed, _ = list(leaves(made))[number]
                changed[key] = simple
                yield made

    def complexity(self, candidate: Draft) -> tuple[float, ...]:
        """How hard it is to read: items, fields, different numbers, digits, size."""
        values = [(path, holder[key]) for path, holder, key in leaves(candidate)]
        numbers = [(path, value) for path, value in values if self.space.varies(path)]
        return (
            sum(len(candidate[key]) for key in lists(candidate)),
            len(values),
            len(set(numbers)),
            sum(len(f"{value:.12g}".replace(".", "").strip("-0")) for _, value in numbers),
            sum(math.log1p(abs(value - self.space.spans[path].low)) for path, value in numbers),
        )

    def runs(
        self, contender: Contender, instance: Instance, first: int = 0, count: int | None = None
    ) -> list[SimulationResult]:
        """Runs of an algorithm, one a seed where it is randomised; their schedules hold."""
        results = []
        for seed in range(first, first + (count or self.seeds)):
            entry = self.entry(contender)
            given = contender if isinstance(contender, str) else entry.algorithm
            run = simulate(
                instance, given, seed=seed, settings=entry.settings, formulation=self.formulation
            )
            if run.in_feasible_set and run.violations:
                raise InputError(run.algorithm, run.violations[0], "must not break a constraint")
            results.append(run)
            if not entry.algorithm.randomised:
                break
        return results

    def reference(
        self, instance: Instance, runs: Sequence[SimulationResult], options: Keywords
    ) -> tuple[str, Solution, Result | None]:
        """Whose the schedule to compare with is, the schedule, and the solve that sought it."""
        if self.against is not None:
            middle = _middle(self.runs(self.against, instance))
            return middle.algorithm, middle.solution, None
        given = {**options, "threads": 1}
        result = solve(instance, formulation=self.formulation, options=given)
        known = [] if result.solution is None else [("offline", result.solution)]
        known += [(run.algorithm, run.solution) for run in runs if not run.violations]
        if not known:
            raise SolveFailed(f"{instance.name}: no schedule was found within the limit")
        sign = 1 if instance.sense == "max" else -1
        return *max(known, key=lambda item: sign * item[1].objective()), result


def _middle(runs: Sequence[SimulationResult]) -> SimulationResult:
    """The only run, or the one of median objective."""
    return sorted(runs, key=lambda run: run.objective)[(len(runs) - 1) // 2]


def make_witness(
    question: Question, data: Draft, name: str, search: Mapping[str, object]
) -> Witness:
    """Run everything once more on a candidate, and prove in seconds what can be proven."""
    instance = question.space.instance(data, name)
    runs = question.runs(question.algorithm, instance, question.seeds, FRESH_RUNS)
    if all(run.solution.assignments() == runs[0].solution.assignments() for run in runs):
        runs = runs[:1]  # no seed changes anything here
    best, reference, result = question.reference(instance, runs, {"time_limit": PROOF_SECONDS})
    value, name = reference.objective(), runs[0].algorithm
    optimum = Optimum(instance.sense, Bounds(value, value), COMPARED, best)
    if result is not None:
        bound = result.bound
        closed = bound is not None and abs(bound - value) <= AGREEMENT * max(1.0, abs(value))
        status = "optimal" if closed else "feasible"
        known = optimum_of(instance.sense, value, bound, status, proof="solver")
        optimum = replace(known, best=best)
    mean = fmean(run.objective for run in runs)
    ratio = competitive_ratio(optimum, mean, in_feasible_set=runs[0].in_feasible_set)
    lower = ratio.interval.lower
    return Witness(
        instance, name, runs, mean, reference, best,
        against=best if result is None else None,
        certificate=None if result is None else result.certificate,
        optimum=optimum, ratio=ratio, proven=1.0 if lower is None else lower,
        theorem=None if result is None else theorem_of(instance, name), search=search,
    )  # fmt: skip


def ratio_to(sense: Sense, objective: float, reference: float) -> float:
    """The ratio to a schedule of this objective; -inf where the two have none."""
    optimum = optimum_of(sense, reference, reference, "feasible", proof="solver")
    lower = competitive_ratio(optimum, objective).interval.lower
    return -math.inf if lower is None else lower


@dataclass(frozen=True)
class Witness:
    """An instance on which an algorithm is bad, with what proves it."""

    instance: Instance
    algorithm: str
    runs: Sequence[SimulationResult] = field(repr=False)  # the algorithm's, one a seed
    objective: float  # their mean
    reference: Solution = field(repr=False)  # the best known, or the other algorithm's median run
    reference_by: str
    against: str | None  # the algorithm it is compared with in place of the optimum
    certificate: Certificate | None = field(repr=False)  # prices or a tree that bound the optimum
    optimum: Optimum
    ratio: Ratio  # its lower end is proven by the reference alone
    theorem: Theorem | None = field(repr=False)  # what the paper promises of it here
    proven: float  # the ratio to the reference: what the two schedules prove
    search: Mapping[str, Any] = field(repr=False)  # seed, evaluations, seconds, ratio found, ...

    @property
    def verdict(self) -> str:
        """What the witness says of the theorem, in a sentence."""
        if self.theorem is None:
            return f"No theorem of {self.instance.family} speaks of {self.algorithm}."
        if self.theorem["value"] is None:
            return "The theorem gives no number on the witness."
        kind, value = self.theorem["kind"], float(self.theorem["value"])
        value_here = (self.ratio.difference.lower or 0.0) if kind == "additive" else self.proven
        is_beyond = value_here > value + AGREEMENT * max(1.0, abs(value))
        missing = unmet(self.theorem)
        promise = f"he theorem promises at most {value:.6g} ({kind})"
        if missing:
            beyond = "; the witness exceeds it, where it does" if is_beyond else ", and does"
            return f"T{promise}{beyond} not apply here: {'; '.join(missing)}."
        if is_beyond:
            return f"{CONTRADICTED}: t{promise}, and all it assumes holds here."
        return f"T{promise}; all it assumes holds here, and the witness keeps it."

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
            "theorem": self.theorem, "search": dict(self.search), "verdict": self.verdict,
            "contradicts_theorem": self.verdict.startswith(CONTRADICTED),
        }  # fmt: skip

    def explain(self) -> str:
        """What goes wrong, in words: the claim, the jobs that differ most, the theorem."""
        verb, sign = ("earns", 1) if self.instance.sense == "max" else ("costs", -1)
        jobs, mean = len(self.instance.jobs), " on average" * (len(self.runs) > 1)
        ratio = f"a ratio of at least {self.proven:.6g}"
        ratio = "an infinite ratio" if math.isinf(self.proven) else ratio
        if self.against is None and self.optimum.is_proven:
            ratio += ", and no more on this instance: the schedule is optimal"
        lines = [
            f"With {f'{jobs} jobs' if jobs > 1 else 'one job'}, {self.algorithm} {verb} "
            f"{self.objective:.6g}{mean} where {self.against or 'a schedule'} {verb} "
            f"{self.reference.objective():.6g}: {ratio}."
        ]
        losses = []
        for row, other in zip(
            _middle(self.runs).solution.job_rows(), self.reference.job_rows(), strict=True
        ):
            value = row["value"] or 0.0
            loss = sign * ((other["value"] or 0.0) - value)
            if abs(loss) > 1e-9 * max(1.0, abs(value)):
                losses.append((loss, row, other))
        for loss, row, other in sorted(losses, key=lambda item: -item[0])[:MOST_JOBS]:
            change = f"{'loses' if loss > 0 else 'gains'} {abs(loss):.6g}"
            where = f"{_when(row)} instead of {_when(other)}"
            lines.append(f"{row['job']} (arrives at {row['arrival']}) {change}: {where}.")
        return "\n".join([*lines, self.verdict])

    def write(self, folder: str | Path) -> None:
        """Write a folder, in which files of an earlier witness are replaced.

        ``instance.json``, ``run.json`` (``run-sN.json`` for each seed of a randomised algorithm),
        the better schedule ``reference.json``, ``certificate.json`` where there is one, the claim
        ``witness.json``, and in words ``witness.txt``.
        """
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
    """Check the folder of a witness from its files alone: no search, no solver, no algorithm.

    Returns
    -------
    dict
        ``ratio`` (recomputed), ``claimed`` and ``files`` (their objectives).

    Raises
    ------
    InputError
        If a file is malformed, the better schedule breaks a constraint, or the ratio is another.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.worst("gang", "fifo", work_limit=60, folder="witness")
    >>> hs.check_witness("witness")["ratio"] == found.proven
    True
    """
    place = Path(folder)
    instance, claimed = read(place / "instance.json"), read_json(place / "witness.json")
    runs = sorted(place.glob("run*.json"))
    if not runs or not isinstance(claimed, dict):
        raise InputError(str(place), "(no run*.json)", "must be the folder of a witness")
    checked = {path.name: verify(instance, path) for path in [*runs, place / "reference.json"]}
    reference = checked["reference.json"]
    if not reference.is_feasible:
        rule = "must break no constraint"
        raise InputError("reference.json", str(reference.violations[0]), rule)
    objective = fmean(checked[path.name].objective for path in runs)
    ratio = ratio_to(instance.sense, objective, reference.objective)
    stated = (claimed.get("ratio") or {}).get("lower")
    claim = math.inf if stated == "inf" else stated
    if not isinstance(claim, int | float) or not math.isclose(claim, ratio, rel_tol=AGREEMENT):
        rule = f"the schedules have the ratio {ratio!r}"
        raise InputError("witness.json: ratio.lower", stated, rule)
    files = {name: item.objective for name, item in checked.items()}
    return {"ratio": ratio, "claimed": claim, "files": files}


def _when(row: Any) -> str:
    first, last = row["start"], row["completion"]
    if first is None:
        return "not served"
    if last is None:
        return f"begun at {first}, not completed"
    return f"in slot {first}" if first == last else f"in slots {first} to {last}"
