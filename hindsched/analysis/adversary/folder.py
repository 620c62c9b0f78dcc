"""The check of a folder that ``adversary`` wrote: every number of it is made again from its files.

No search, no solver: the exact kernel proves the two certificates, whose schedules are what
hindsight reaches, and the policy is played on all futures.
"""

from __future__ import annotations

from math import isclose
from pathlib import Path

from hindsched.analysis.adversary.adversary import (
    CLAIMS,
    FORMAT,
    POLICY,
    RESULT,
    Adversary,
)
from hindsched.analysis.foresight.folder import DIGITS, differences
from hindsched.analysis.foresight.game import game_of
from hindsched.analysis.foresight.states import PolicyValue
from hindsched.errors import InputError
from hindsched.instances.io import read, read_json
from hindsched.kernel import MALFORMED, RefusedFile, nonanticipative
from hindsched.models.futures import Futures
from hindsched.solutions.base import read_solution


def verify_adversary(folder: str | Path) -> list[str]:
    """What does not follow from the files of a folder, a line each."""
    place = Path(folder)
    try:
        return _wrong(place)
    except (*MALFORMED, RefusedFile) as error:
        raise InputError(f"{folder}/{RESULT}", str(error), "must be as it was written") from None


def _wrong(place: Path) -> list[str]:
    stated = read_json(place / RESULT)
    if not isinstance(stated, dict) or stated.get("format") != FORMAT:
        raise InputError(f"{place}/{RESULT}", "format", f"must be {FORMAT}")
    rows, wrong = stated["futures"], list[str]()
    instances = [read(place / f"future-{n}.json") for n in range(len(rows))]
    futures = Futures.of(instances)
    if len(futures) != len(rows) or (place / f"future-{len(rows)}.json").exists():
        return ["the futures are not those of the files, each once"]
    formulation, policies = str(stated["formulation"]), str(stated["policies"])
    certificates = {claim: read_json(place / f"certificate-{claim}.json") for claim in CLAIMS}
    for claim, data in certificates.items():
        about = {"claim": claim, "policies": policies, "formulation": formulation,
                 "kind": "policy-graph", "family": stated["family"]}  # fmt: skip
        wrong += [f"certificate-{claim}.json: {key}: is not that of {RESULT}"
                  for key, value in about.items() if data.get(key) != value]  # fmt: skip
        hashes = [row["instance_sha256"] for row in data["scenarios"]]
        if hashes != [instance.sha256() for instance in futures.instances]:
            wrong.append(f"certificate-{claim}.json: is of other futures")
            continue
        proven = nonanticipative.prove([instance.exact for instance in futures.instances], data)
        end = float(proven.high if futures.sense == "max" else proven.low)
        if not isclose(end, data["bound"], rel_tol=1e-12):
            wrong.append(f"certificate-{claim}.json: bound: {end!r} is proven")
    if wrong:
        return wrong
    states = game_of(futures.instances, policies, formulation)
    schedules = [read_solution(place / f"hindsight-{n}.json", instance)
                 for n, instance in enumerate(futures.instances)]  # fmt: skip
    for claim, data in certificates.items():
        for row, own in zip(data["scenarios"], schedules, strict=True):
            if row["schedule"]["jobs"] != own.to_dict()["jobs"]:
                wrong.append(f"certificate-{claim}.json: {row['instance']}: another schedule")
    order, moves = list(states.graph), read_json(place / POLICY)
    policy = {order[int(n)]: [(int(at), float(p)) for at, p in own] for n, own in moves.items()}
    for state, choices in policy.items():
        shares = [share for _, share in choices]
        if abs(sum(shares) - 1) > DIGITS or min(shares) < 0:
            wrong.append(f"{POLICY}: {order.index(state)}: must be probabilities")
    made = Adversary(
        futures=futures, policies=policies, formulation=formulation,
        optima=tuple(states.alone(s)[0] for s in range(states.size)),
        hindsight=tuple(schedules), certificates=certificates,
        best=PolicyValue(0.0, (), policy), states=states, search=stated["search"],
    )  # fmt: skip
    for own, best in zip(schedules, made.optima, strict=True):
        if not isclose(own.objective(), best, rel_tol=DIGITS):
            wrong.append(f"{own.instance.name}: its schedule is not optimal: {best!r} is")
    return wrong + differences(stated, {"format": FORMAT, **made.to_dict()})
