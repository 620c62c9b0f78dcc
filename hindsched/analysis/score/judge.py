"""Denominators that are certified, what the exact kernel says of schedules, and what follows.

An instance is a folder: ``instance.json``, ``certificate.json``, the ladder's schedules in
``ladder/`` and, once it has played, ``candidate.json``. Nothing else decides a score.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np

from hindsched import kernel
from hindsched.analysis.score.candidate import Candidate
from hindsched.analysis.statistics import CONFIDENCE, bootstrap
from hindsched.errors import HindschedError, InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.catalogue import suite as suite_of
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import read, read_json, write, write_json
from hindsched.kernel.reading import limited, load, require
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.solutions.base import write_solution
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.result import versions
from hindsched.solvers.tree.method import certify_optimum

Row = dict[str, Any]
FORMAT, RESULT = "hindsched-score/1", "score.json"
PLACE = "i{:02d}".format
INSTANCE, CERTIFICATE, OWN = "instance.json", "certificate.json", "candidate"
DRAWN_BY = ("family", "suite", "preset", "seeds")
"""Which words of ``score.json`` say what the hidden instances are."""
ROWS_OF = {"hidden": "instances", "public": "public"}
"""Where ``score.json`` has the rows of a folder's instances."""
LADDER, HINDSIGHT = ("fifo", "easy", "dual-price", "reoptimise"), "hindsight"
"""Yardsticks beside the paper's own algorithm, where a family has them and they keep its rules."""
SCHEDULE = {**kernel.LIMITS, "items": 2_000_000, "chunks": 10_000_000}
PROOF = {**SCHEDULE, "steps": 10**9}
"""What the kernel lets a schedule ask for, and a certificate of ours."""
DIGITS = 10**9
"""Scores are rounded to so many parts, a certified lower end downwards."""


def seed_of(word: str) -> int:
    """The generator's seed of a secret word: 128 bits, which nobody finds by trying seeds."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:16])


def draw(
    family: str, suite: str | None, preset: str, seeds: Iterable[str], public_seeds: Iterable[int]
) -> dict[str, list[Instance]]:
    """The instances that count, and those that a candidate's author may see."""
    if suite is not None:
        return {"hidden": suite_of(family, suite.partition("/")[2]), "public": []}
    return {
        "hidden": [generate(family, preset, seed_of(word)) for word in seeds],
        "public": [generate(family, preset, seed) for seed in public_seeds],
    }


def prepare(instance: Instance, work_limit: int, place: Path, cache: str | Path | None) -> None:
    """Lay an instance into a folder with its certificate and the ladder's schedules.

    They are made once, by a limit of work and no clock, and kept by the instance's hash.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = home / "hindsched" / "score" if cache is None else Path(cache)
    kept = base / f"{instance.sha256()}-{work_limit}-{versions()['hindsched']}"
    if not kept.exists():
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            _make(instance, work_limit, made)
            with suppress(OSError):  # somebody else was faster
                os.replace(made, kept)
    shutil.copytree(kept, place)


def _make(instance: Instance, work_limit: int, folder: Path) -> None:
    write(instance, folder / INSTANCE)
    found = certify_optimum(solve(instance, work_limit=work_limit))
    if found.certificate is None or found.solution is None:
        raise SolveFailed(f"{instance.name}: no schedule or no certificate by {work_limit} units")
    write_json(found.certificate.to_dict(), folder / CERTIFICATE)
    (folder / "ladder").mkdir()
    rules, schedules = instance.check_formulation(None), {}
    for name in algorithms(instance.family):
        known = name in (*LADDER, instance.family)
        if known and not build_algorithm(instance.family, name).relaxes(rules):
            schedules[name] = simulate(instance, name).solution
    best = max if instance.sense == "max" else min  # what anybody found is known in hindsight
    every = [found.solution, *schedules.values()]
    schedules[HINDSIGHT] = best(every, key=lambda schedule: schedule.objective())
    for name, schedule in schedules.items():
        write_solution(schedule, folder / "ladder" / f"{name}.json")


def judged(place: Path) -> Row:
    """What the kernel says of a folder's candidate: ``score, objective, bound``.

    Also ``wrong``, why its schedule does not count, or empty, and ``ladder``, the scores of the
    yardsticks. `InputError` if the files do not belong together; `SolveFailed` if a schedule beats
    the bound: a mistake of ours, whoever made the schedule.
    """
    paths = {path.stem: path for path in sorted((place / "ladder").glob("*.json"))}
    paths[OWN] = place / f"{OWN}.json"
    try:
        with limited(PROOF):
            data, sha256 = load(str(place / INSTANCE))
            certificate, _ = load(str(place / CERTIFICATE))
        require(certificate["instance_sha256"] == sha256, "is of another instance")
        reader = kernel.Instance(data)
        proven = kernel.bound(reader, certificate, PROOF)
    except (kernel.Refused, LookupError) as error:
        raise InputError(str(place), str(error), "must hold an instance and its proof") from None
    sense, worth, wrong = reader.family.SENSE, dict[str, kernel.Interval](), dict[str, str]()
    for name, path in paths.items():
        try:
            with limited(SCHEDULE):
                schedule, _ = load(str(path))
            require(schedule["instance_sha256"] == sha256, "is of another instance")
            require(schedule["formulation"] == certificate["formulation"], "has other rules")
            verdict = kernel.check(reader, schedule, SCHEDULE)
            require(verdict.feasible, "; ".join(map(str, verdict.violations[:1])))
            worth[name] = verdict.value
        except (kernel.Refused, LookupError) as error:
            wrong[name] = str(error) or "is no schedule"
    scores = {}
    for name, value in worth.items():
        above, below = (value.low, proven.high) if sense == "max" else (proven.low, value.high)
        if above > below:
            raise SolveFailed(
                f"{place.parent.name} {place.name}: the schedule of {name} is better than the "
                "certified bound: one of them is judged wrongly here, and no candidate is to blame"
            )
        scores[name] = _share(above, below)
    rounded = {name: floor(scores.get(name, 0) * DIGITS) / DIGITS for name in paths}
    return {
        "score": rounded.pop(OWN),
        "objective": float(worth[OWN].low) if OWN in worth else None,
        "bound": float(proven.low if sense == "min" else proven.high),
        "wrong": wrong.get(OWN, ""),
        "ladder": rounded,
    }


def _share(above: Fraction, below: Fraction) -> Fraction:
    """A quotient of two values that are meant to be positive; 0 / 0 is 1."""
    if above == below:
        return Fraction(1)
    return max(Fraction(), above) / below if below > 0 else Fraction()


def standings(instances: Sequence[Row], public: Sequence[Row]) -> Row:
    """What follows from rows of instances: sums, ladder, who is better."""
    own = [row["score"] for row in instances]
    ladder = []
    for name in sorted({name for row in instances for name in row["ladder"]}):
        theirs = [row["ladder"].get(name, 0.0) for row in instances]
        ladder.append({"algorithm": name, "score": mean(theirs), **paired(own, theirs)})
    return {
        "combined_score": mean(own),
        "interval": interval_of_mean(own),
        "public_score": mean(row["score"] for row in public) if public else None,
        "ladder": sorted(ladder, key=lambda row: -row["score"]),
    }


def mean(values: Iterable[float]) -> float:
    """Mean of scores, exactly, rounded down as they are."""
    listed = [Fraction(round(value * DIGITS), DIGITS) for value in values]
    return floor(sum(listed, Fraction()) / len(listed) * DIGITS) / DIGITS


def interval_of_mean(values: Sequence[float]) -> list[float]:
    """Between which 95 % of the means over resampled instances lie."""
    return [round(end, 9) for end in bootstrap(np.array(values), CONFIDENCE, 0)]


def paired(own: Sequence[float], other: Sequence[float]) -> Row:
    """On how many instances one is better, worse or equal, and the mean difference of scores."""
    apart = [round(a - b, 9) for a, b in zip(own, other, strict=True)]
    return {
        "better": sum(each > 0 for each in apart),
        "worse": sum(each < 0 for each in apart),
        "ties": sum(each == 0 for each in apart),
        "difference": round(sum(apart) / len(apart), 9),
        "difference_in": interval_of_mean(apart),
    }


def read_score(folder: str | Path) -> Row:
    """What a scored folder says; `InputError` for another one."""
    data = read_json(Path(folder) / RESULT)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{folder}/{RESULT}", "format", f"must be {FORMAT}")
    return data


def verify_score(folder: str | Path) -> list[str]:
    """Judge a folder again without running the candidate: what does not follow, a line each."""
    place, data = Path(folder), read_score(folder)
    try:
        return list(_wrong(place, data))
    except (LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}/{RESULT}", str(error), "must be as it was written") from None


def _wrong(place: Path, data: Row) -> Iterable[str]:
    seeds = data["seeds"], data["public_seeds"]
    drawn = draw(data["family"], data["suite"], data["preset"], *seeds)
    for kind, instances in drawn.items():
        rows = data[ROWS_OF[kind]]
        if [row["instance"] for row in rows] != [PLACE(n + 1) for n in range(len(instances))]:
            yield f"{kind}: there must be a row i01, i02, ... for each instance that is drawn"
            return
        for row, instance in zip(rows, instances, strict=True):
            here, name = place / kind / row["instance"], f"{kind} {row['instance']}"
            try:
                found, kept = judged(here), read(here / INSTANCE)
            except HindschedError as error:
                yield f"{name}: {error}"
                continue
            if kept.sha256() != instance.sha256():
                yield f"{name}: is not the instance that its seed or suite makes"
            rules = read_json(here / CERTIFICATE)["formulation"]
            if rules != instance.check_formulation(None):
                yield f"{name}: is judged by the formulation {rules}, not by its own"
            if (row["status"] == "ok") == bool(found.pop("wrong")):
                yield f"{name}: has the status {row['status']}, which its schedule has not"
            yield from (f"{name}: {key} is {found[key]!r}, not {row[key]!r}"
                        for key in found if found[key] != row[key])  # fmt: skip
    again = standings(data["instances"], data["public"])
    yield from (f"{key} is {again[key]!r}, not {data[key]!r}"
                for key in again if again[key] != data[key])  # fmt: skip
    if data["sha256"] is not None:
        files = {path.name: path.read_bytes() for path in (place / OWN).iterdir()}
        if Candidate(tuple(data["command"]), files).sha256 != data["sha256"]:
            yield "candidate: the files are not those that were scored"
