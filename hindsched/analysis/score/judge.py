"""Denominators that are certified, and what the exact kernel says of schedules beside them.

An instance is a folder: ``instance.json``, ``certificate.json``, the ladder's schedules in
``ladder/`` and, once it has played, ``candidate.json``. Nothing else decides a score.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np

from hindsched import kernel
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance
from hindsched.instances.io import write, write_json
from hindsched.kernel.reading import limited, load
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.solutions.base import write_solution
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.result import versions
from hindsched.solvers.tree.method import certify_optimum

INSTANCE, CERTIFICATE, OWN = "instance.json", "certificate.json", "candidate"
LADDER = ("fifo", "easy", "dual-price", "reoptimise")
"""Yardsticks beside the paper's own algorithm, where a family has them and they keep its rules."""
HINDSIGHT = "hindsight"
SCHEDULE = {**kernel.LIMITS, "items": 2_000_000, "chunks": 10_000_000}
PROOF = {**SCHEDULE, "steps": 10**9}
"""What the kernel lets a schedule ask for, and a certificate of ours."""
DIGITS = 10**9
"""Scores are rounded to so many parts, a certified lower end downwards."""
RESAMPLES, TAIL = 2000, 2.5


def prepare(instance: Instance, work_limit: int, place: Path, cache: str | Path | None) -> None:
    """Lay an instance into a folder with its certificate and the ladder's schedules.

    They are made once, by a limit of work and no clock, and kept by the instance's hash.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = home / "hindsched" / "score" if cache is None else Path(cache)
    kept = base / f"{instance.sha256()}-{work_limit}-{versions()['hindsched']}"
    if not kept.exists():
        base.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=base))
        try:
            _make(instance, work_limit, made)
            if not kept.exists():  # nobody else was faster
                os.replace(made, kept)
        finally:
            shutil.rmtree(made, ignore_errors=True)
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


def judged(place: Path) -> dict[str, dict[str, Any]]:
    """What the kernel says of a folder: ``score, at_most, objective, bound`` by schedule.

    Raises
    ------
    HindschedError
        If the files do not belong together, or a schedule beats the bound.
    """
    paths = {path.stem: path for path in sorted((place / "ladder").glob("*.json"))}
    paths[OWN] = place / f"{OWN}.json"
    try:
        with limited(PROOF):
            data, sha256 = load(str(place / INSTANCE))
            certificate, _ = load(str(place / CERTIFICATE))
        kernel.reading.require(certificate["instance_sha256"] == sha256, "is of another instance")
        reader = kernel.Instance(data)
        proven = kernel.bound(reader, certificate, PROOF)
    except (kernel.Refused, LookupError) as error:
        raise InputError(str(place), str(error), "must hold an instance and its proof") from None
    rules, sense = certificate["formulation"], reader.family.SENSE
    worth = {name: _worth(reader, path, sha256, rules) for name, path in paths.items()}
    known = [value for value in worth.values() if value is not None]
    rows = {}
    for name, value in worth.items():
        low, high = _shares(value, proven, known, sense)
        if low > 1:
            raise SolveFailed(f"{place}: {name} beats the certified bound: one of the two is wrong")
        rows[name] = {
            "score": floor(low * DIGITS) / DIGITS,
            "at_most": -floor(-min(Fraction(1), high) * DIGITS) / DIGITS,
            "objective": None if value is None else float(value.low),
            "bound": float(proven.low if sense == "min" else proven.high),
        }
    return rows


def _worth(reader: kernel.Instance, path: Path, sha256: str, rules: str) -> kernel.Interval | None:
    """Objective of a schedule; None of one that breaks a rule, or that is not there."""
    if not path.exists():
        return None
    try:
        with limited(SCHEDULE):
            data, _ = load(str(path))
        ours = data["instance_sha256"] == sha256 and data["formulation"] == rules
        return kernel.check(reader, data, SCHEDULE).objective if ours else None
    except (kernel.Refused, LookupError):
        return None


def _shares(
    own: kernel.Interval | None,
    proven: kernel.Interval,
    known: Sequence[kernel.Interval],
    sense: str,
) -> tuple[Fraction, Fraction]:
    """ALG / OPT when maximising, OPT / ALG when minimising: by the bound, and by the best known."""
    if own is None:
        return Fraction(), Fraction()
    if sense == "max":
        best = max(value.low for value in known)
        parts = (own.low, proven.high), (own.high, best)
    else:
        best = min(value.high for value in known)
        parts = (proven.low, own.high), (best, own.low)
    low, high = (_quotient(*part) for part in parts)
    return low, max(low, high)


def _quotient(above: Fraction, below: Fraction) -> Fraction:
    """A quotient of two values that are meant to be positive; 0 / 0 is 1."""
    if above == below:
        return Fraction(1)
    return max(Fraction(), above) / below if below > 0 else Fraction()


def standings(
    folder: Path, hidden: Sequence[dict[str, Any]], public: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """What follows from rows of instances and their schedules: sums, ladder, who is better."""
    own = [row["score"] for row in hidden]
    others: dict[str, list[float]] = {}
    for row in hidden:
        for name, found in judged(folder / "hidden" / row["instance"]).items():
            others.setdefault(name, []).append(found["score"])
    others.pop(OWN)
    ladder = [{"algorithm": name, "score": mean(found), **paired(own, found)}
              for name, found in others.items()]  # fmt: skip
    return {
        "combined_score": mean(own),
        "at_most": mean(row["at_most"] for row in hidden),
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
    draws = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    ends = np.percentile(np.array(values)[draws].mean(axis=1), [TAIL, 100 - TAIL])
    return [round(float(end), 9) for end in ends]


def paired(own: Sequence[float], other: Sequence[float]) -> dict[str, Any]:
    """On how many instances one is better, worse or equal, and the mean difference of scores."""
    apart = [round(a - b, 9) for a, b in zip(own, other, strict=True)]
    return {
        "better": sum(each > 0 for each in apart),
        "worse": sum(each < 0 for each in apart),
        "ties": sum(each == 0 for each in apart),
        "difference": round(sum(apart) / len(apart), 9),
        "difference_in": interval_of_mean(apart),
    }
