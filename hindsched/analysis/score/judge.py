"""Denominators that are certified, what the exact kernel says of schedules, and what follows.

An instance is a folder: ``instance.json``, ``certificate.json``, the ladder's schedules in
``ladder/`` and, once it has played, ``candidate.json``. Nothing else decides a score.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np

from hindsched import kernel
from hindsched.analysis.score.candidate import Candidate
from hindsched.analysis.statistics import bootstrap
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.catalogue import suite as suite_of
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import read_json, write_json
from hindsched.kernel.reading import limited, load, require
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.result import versions
from hindsched.solvers.tree.method import certify_optimum

Row = dict[str, Any]
FORMAT, RESULT = "hindsched-score/1", "score.json"
INSTANCE, CERTIFICATE, CANDIDATE = "instance.json", "certificate.json", "candidate"
ROWS_OF = {"hidden": "instances", "public": "public"}  # in ``score.json``, by folder
LADDER, HINDSIGHT = ("fifo", "easy", "dual-price", "reoptimise"), "hindsight"
"""Yardsticks beside the paper's own algorithm, where a family has them and they keep its rules."""
SCHEDULE = {**kernel.LIMITS, "items": 2_000_000, "chunks": 10_000_000}  # a candidate may ask for
PROOF = {**SCHEDULE, "steps": 10**9}  # a certificate of ours may
DIGITS = 10**9  # scores are rounded to so many parts, a certified lower end downwards


def seed_of(word: str) -> int:
    """The generator's seed of a secret word: 128 bits, which nobody finds by trying seeds."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:16])


def draw_instances(
    family: str, suite: str | None, preset: str, seeds: Iterable[str], public_seeds: Iterable[int]
) -> dict[str, Instance]:
    """The instances by their folders: those that count, and those that an author may see."""
    if suite is not None:
        hidden, public = suite_of(family, suite.partition("/")[2]), []
    else:
        hidden = [generate(family, preset, seed_of(word)) for word in seeds]
        public = [generate(family, preset, seed) for seed in public_seeds]
    named = [("hidden", enumerate(hidden, 1)), ("public", enumerate(public, 1))]
    return {f"{kind}/i{number:02d}": each for kind, group in named for number, each in group}


def prepare(instance: Instance, work_limit: int, place: Path, cache: str | Path | None) -> None:
    """Lay an instance into a folder with its certificate and the ladder's schedules.

    They are made once, by a limit of work and no clock, and kept by the instance's hash.
    """
    from joblib import Memory

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    memory = Memory(home / "hindsched" / "score" if cache is None else cache, verbose=0)
    make = memory.cache(_made, ignore=["instance"])
    (place / "ladder").mkdir(parents=True)
    for name, content in make(instance.sha256(), versions()["hindsched"], work_limit, instance):
        write_json(content, place / name)


def _made(sha256: str, version: str, work_limit: int, instance: Instance) -> list[tuple[str, Row]]:
    """What `prepare` keeps by its first three arguments: files by name."""
    result = certify_optimum(solve(instance, work_limit=work_limit))
    if result.certificate is None or result.solution is None:
        raise SolveFailed(f"{instance.name}: no schedule or no certificate by {work_limit} units")
    rules, schedules = instance.check_formulation(None), {}
    for name in algorithms(instance.family):
        known = name in (*LADDER, instance.family)
        if known and not build_algorithm(instance.family, name).relaxes(rules):
            schedules[name] = simulate(instance, name).solution
    best = max if instance.sense == "max" else min  # what anybody found is known in hindsight
    every = [result.solution, *schedules.values()]
    schedules[HINDSIGHT] = best(every, key=lambda schedule: schedule.objective())
    files = {INSTANCE: instance.to_dict(), CERTIFICATE: result.certificate.to_dict()}
    ladder = {f"ladder/{name}.json": result.to_dict() for name, result in schedules.items()}
    return list((files | ladder).items())


def judged(place: Path, instance: Instance) -> Row:
    """What the kernel says of a folder's candidate, and why its schedule is ``wrong``, or "".

    `InputError` if the folder is not that of the instance; `SolveFailed` if a schedule beats the
    bound: a mistake of ours, whoever made the schedule.
    """
    paths = {path.stem: path for path in sorted((place / "ladder").glob("*.json"))}
    paths[CANDIDATE] = place / f"{CANDIDATE}.json"
    rules = instance.check_formulation(None)
    try:
        with limited(PROOF):
            data, sha256 = load(str(place / INSTANCE))
            certificate, _ = load(str(place / CERTIFICATE))
        require(sha256 == instance.sha256(), "is not the instance that its seed or suite makes")
        require(certificate["instance_sha256"] == sha256, "is of another instance")
        formulation = certificate["formulation"]
        require(formulation == rules, f"is judged by the formulation {formulation}, not by its own")
        reader = kernel.ExactInstance(data)
        proven = kernel.bound(reader, certificate, PROOF)
    except (kernel.RefusedFile, LookupError) as error:
        raise InputError(str(place), str(error), "must hold an instance and its proof") from None
    sense, worth, wrong = reader.family.sense, dict[str, kernel.Interval](), dict[str, str]()
    scores = dict.fromkeys(paths, 0.0)
    for name, path in paths.items():
        try:
            with limited(SCHEDULE):
                schedule, _ = load(str(path))
            require(schedule["instance_sha256"] == sha256, "is of another instance")
            require(schedule["formulation"] == rules, "has other rules")
            verdict = kernel.check(reader, schedule, SCHEDULE)
            require(verdict.feasible, "; ".join(map(str, verdict.violations[:1])))
        except (kernel.RefusedFile, LookupError) as error:
            wrong[name] = str(error) or "is no schedule"
            continue
        value = worth[name] = verdict.value
        above, below = (value.low, proven.high) if sense == "max" else (proven.low, value.high)
        if above > below:
            raise SolveFailed(
                f"{place.parent.name} {place.name}: the schedule of {name} is better than the "
                "certified bound: one of them is judged wrongly here, and no candidate is to blame"
            )
        share = max(Fraction(), above) / below if below > 0 else Fraction()
        scores[name] = _rounded_down(Fraction(1) if above == below else share)  # 0 / 0 is 1
    return {
        "score": scores.pop(CANDIDATE),
        "objective": float(worth[CANDIDATE].low) if CANDIDATE in worth else None,
        "bound": float(proven.low if sense == "min" else proven.high),
        "wrong": wrong.get(CANDIDATE, ""),
        "ladder": scores,
    }


def _rounded_down(score: Fraction) -> float:
    return floor(score * DIGITS) / DIGITS


def standings(instances: Sequence[Row], public: Sequence[Row]) -> Row:
    """What follows from rows of instances: sums, ladder, who is better."""
    scores = [row["score"] for row in instances]
    ladder = []
    for name in sorted({name for row in instances for name in row["ladder"]}):
        others = [row["ladder"].get(name, 0.0) for row in instances]
        ladder.append({"algorithm": name, "score": _mean(others), **paired(scores, others)})
    return {
        "combined_score": _mean(scores),
        "interval": interval_of_mean(scores),
        "public_score": _mean([row["score"] for row in public]) if public else None,
        "ladder": sorted(ladder, key=lambda row: -row["score"]),
    }


def _mean(scores: Sequence[float]) -> float:
    """Mean of rounded scores, exactly, rounded down as they are."""
    return _rounded_down(sum(Fraction(str(score)) for score in scores) / Fraction(len(scores)))


def interval_of_mean(values: Sequence[float]) -> list[float]:
    """Between which 95 % of the means over resampled instances lie."""
    return [round(end, 9) for end in bootstrap(np.array(values))]


def paired(scores: Sequence[float], other: Sequence[float]) -> Row:
    """On how many instances one is better, worse or equal, and the mean difference of scores."""
    apart = [round(a - b, 9) for a, b in zip(scores, other, strict=True)]
    signs = [(each > 0) - (each < 0) for each in apart]
    return {
        "better": signs.count(1), "worse": signs.count(-1), "ties": signs.count(0),
        "difference": round(sum(apart) / len(apart), 9), "difference_in": interval_of_mean(apart),
    }  # fmt: skip


def read_score(folder: str | Path) -> Row:
    """What a scored folder says."""
    data = read_json(Path(folder) / RESULT)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{folder}/{RESULT}", "format", f"must be {FORMAT}")
    return data


def verify_score(folder: str | Path) -> list[str]:
    """Judge a folder again without running the candidate: what does not follow, a line each."""
    place, data = Path(folder), read_score(folder)
    try:
        return list(_score_errors(place, data))
    except (LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}/{RESULT}", str(error), "must be as it was written") from None


def _score_errors(place: Path, data: Row) -> Iterable[str]:
    seeds = data["seeds"], data["public_seeds"]
    drawn = draw_instances(data["family"], data["suite"], data["preset"], *seeds)
    rows = [(kind, row) for kind, key in ROWS_OF.items() for row in data[key]]
    if [f"{kind}/{row['instance']}" for kind, row in rows] != list(drawn):
        yield "there must be a row i01, i02, ... for each instance that is drawn"
        return
    for (name, instance), (_, row) in zip(drawn.items(), rows, strict=True):
        try:
            judgement = judged(place / name, instance)
        except HindschedError as error:
            yield f"{name}: {error}"
            continue
        if (row["status"] == "ok") == bool(judgement.pop("wrong")):
            yield f"{name}: has the status {row['status']}, which its schedule has not"
        yield from _apart(f"{name}: ", judgement, row)
    yield from _apart("", standings(data["instances"], data["public"]), data)
    if data["sha256"] is not None:
        files = {path.name: path.read_bytes() for path in (place / CANDIDATE).iterdir()}
        if Candidate(tuple(data["command"]), files).sha256 != data["sha256"]:
            yield "candidate: the files are not those that were scored"


def _apart(where: str, row: Row, stated: Row) -> list[str]:
    return [f"{where}{key} is {row[key]!r}, not {stated[key]!r}"
            for key in row if row[key] != stated[key]]  # fmt: skip
