"""The check of a folder of what `foresight` found: futures, the best policy, certificates.

``foresight.json`` says what was found; ``future-N.json`` are the scenarios, ``policy-N.json`` what
the best policy found does in each of them, ``hindsight-N.json`` a schedule of who sees the future,
``certificate-*.json`` bounds. The check needs no solver: it judges every schedule, sees that the
policy decides alike where histories are equal and adds up the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from pathlib import Path
from typing import Any

from hindsched.analysis.foresight.certificates import EXPECTED
from hindsched.analysis.verify import exact_check
from hindsched.errors import HindschedError, InputError
from hindsched.instances.base import canonical_json
from hindsched.instances.io import read, read_json
from hindsched.models.base import RUN
from hindsched.models.futures import Futures
from hindsched.solutions.base import Solution, read_solution

FORMAT, RESULT = "hindsched-foresight/1", "foresight.json"
NEAR = 1e-9
RUNS = {"workers", "worker", "gpus", "servers"}
"""What a row holds that says what runs; of the others, only parameter servers, no end depends."""


def verify_foresight(folder: str | Path) -> list[str]:
    """Check a folder without a solver: what does not follow from its files, a line each."""
    place = Path(folder)
    data = read_json(place / RESULT)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{folder}/{RESULT}", "format", f"must be {FORMAT}")
    try:
        return _contradictions(place, data)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}/{RESULT}", str(error), "must be as it was written") from None


def _contradictions(place: Path, data: dict[str, Any]) -> list[str]:
    scenarios, errors = data["scenarios"], list[str]()
    instances = [read(place / f"future-{n}.json") for n in range(len(scenarios))]
    probabilities = [float(row["probability"]) for row in scenarios]
    futures = Futures.of(instances, probabilities)
    up = futures.sense == "max"
    attained = "lower" if up else "upper"
    if len(futures) != len(scenarios):
        errors.append("two futures are the same")
    policy = list[Solution]()
    for n, (instance, row) in enumerate(zip(instances, scenarios, strict=True)):
        for kind in ("policy", "hindsight"):
            path = place / f"{kind}-{n}.json"
            if not path.exists():
                continue
            try:
                solution = read_solution(path, instance)
            except HindschedError as error:
                errors.append(f"{path.name}: {error}")
                continue
            errors += [f"{path.name}: breaks {broken}" for broken in solution.violations()[:1]]
            if kind == "policy":
                policy.append(solution)
            elif off(solution.objective(), row["optimum"][attained]):
                errors.append(f"{path.name}: has not the objective that is told of it")
    if errors:
        return errors
    if len(policy) == len(instances):
        errors += peeking(futures, policy, data["policies"])
        likely = zip(futures.probabilities, policy, strict=True)
        value = fsum(p * schedule.objective() for p, schedule in likely)
        if off(value, data["best_online"][attained]):
            errors.append(f"best online: the policy's expected value is {value!r}")
    for name, stated in data["certified"].items():
        path = place / f"certificate-{name}.json"
        certificate = read_json(path)
        expected = {"bound": stated, "claim": name, "policies": data["policies"],
                 "formulation": data["formulation"]}  # fmt: skip
        differing = [key for key, value in expected.items() if certificate[key] != value]
        errors += [f"{path.name}: {key}: is not that of {RESULT}" for key in differing]
        weights = {row["instance_sha256"]: row["weight"] for row in certificate["scenarios"]}
        weighted = zip(instances, probabilities, strict=True)
        if name == EXPECTED and any(
            off(p, weights.get(schedule.sha256())) for schedule, p in weighted
        ):
            errors.append(f"{path.name}: weights: must be the probabilities")
        check = exact_check(path, *(place / f"future-{n}.json" for n in range(len(instances))))
        if check is not None and check.code:
            errors.append(f"{path.name}: {check.verdict}")
    return errors


def off(value: float, stated: float | None) -> bool:
    """Whether a number is not the one that is stated."""
    return stated is None or abs(value - stated) > NEAR * max(1.0, abs(value))


def peeking(futures: Futures, policy: Sequence[Solution], policies: str) -> list[str]:
    """Where a policy's schedules differ though their histories are equal, a line each."""
    lines = list[str]()
    rows = [
        {**schedule.assignments(), **{name: list(rows) for name, rows in schedule.given_up.items()}}
        for schedule in policy
    ]
    for s, instance in enumerate(futures.instances):
        for at, job in enumerate(instance.jobs):
            revealed, rows_here = futures.revealed(s, at), rows[s].get(job.name, ())
            last = max([revealed, *(int(row["to"]) for row in rows_here)])
            for t in range(revealed, last + 1) if policies == RUN else (revealed,):
                other = next((o for o in futures.members(s, t) if o != s), None)
                rows_there = () if other is None else rows[other].get(job.name, ())
                if other is not None and _content_by_slot(
                    rows_here, t, policies
                ) != _content_by_slot(rows_there, t, policies):
                    who = f"{instance.name} and {futures.instances[other].name}"
                    lines.append(f"policy: {job.name} in slot {t} tells {who} apart")
                    break
    return lines


def _content_by_slot(rows: Any, slot: int, policies: str) -> list[str]:
    """What runs in a slot, or of one that commits in all, whatever chunks are called."""
    contents = []
    for row in rows:
        if not RUNS & row.keys():
            continue
        content = {key: value for key, value in row.items() if key not in ("chunk", "from", "to")}
        for t in range(int(row["from"]), int(row["to"]) + 1):
            if policies != RUN or t == slot:
                contents.append(canonical_json({**content, "slot": t}))
    return sorted(contents)
