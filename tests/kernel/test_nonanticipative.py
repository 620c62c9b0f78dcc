"""Certificates about who cannot see the future: they hold, and forged and mutated ones do not."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hindsched as hs
from hindsched import kernel
from hindsched.analysis.foresight.foresight import Foresight
from hindsched.instances.base import Instance
from hindsched.kernel import MALFORMED, Refused
from hindsched.kernel.__main__ import judge
from hindsched.kernel.nonanticipative import prove

FAMILIES = ("gang", "batchsched", "astraea")


@pytest.fixture(scope="module", params=FAMILIES)
def found(request: pytest.FixtureRequest) -> Foresight:
    family = request.param
    futures = hs.tree(family, at=[1], branches=2, seed=1, jobs=4)
    return hs.foresight(futures, policies="run", algorithms=[], time_limit=10)


def instances_of(found: Foresight) -> list[kernel.Instance]:
    return [instance.exact for instance in found.futures.instances]


def is_refused(instances: list[kernel.Instance], data: Any) -> bool:
    try:
        prove(instances, data)
    except (Refused, *MALFORMED):
        return True
    return False


def test_a_certificate_bounds_every_policy(found: Foresight) -> None:
    assert set(found.certificates) == {"expected", "guarantee"}
    bound, best = found.certified["expected"], found.best_online
    if found.is_maximised:
        assert best.lower <= bound <= 1.5 * best.upper
    else:
        assert best.upper >= bound >= best.lower / 1.5


@pytest.mark.parametrize("claim", ["expected", "guarantee"])
def test_forged_certificates_are_refused(found: Foresight, claim: str) -> None:
    instances, data = instances_of(found), found.certificates[claim]
    prove(instances, data)

    def forged(change: Any) -> bool:
        other = copy.deepcopy(dict(data))
        change(other)
        return is_refused(instances, other)

    first, job = data["scenarios"][0], found.futures.instances[0].jobs[0]
    slot = found.futures.instances[0].arrival_of(job) + 1
    length = int(getattr(job, "duration", 2))
    term = {"job": job.name, "from": slot, "to": slot + length - 1, "price": 0.5}
    assert forged(lambda d: d["scenarios"][0]["own"].append(term))  # do not cancel
    late = {**term, "from": 90, "to": 89 + length}
    assert forged(  # cancels over a class that is no longer one: the futures are told apart
        lambda d: [row["own"].append({**late, "price": p})
                   for row, p in zip(d["scenarios"], (0.5, -0.5), strict=True)]
    )  # fmt: skip
    worse = 0.9 if data["sense"] == "max" else 1.1
    assert forged(lambda d: d.update(bound=d["bound"] * worse))
    assert forged(lambda d: d["scenarios"][0].update(weight=first["weight"] + 1))
    assert forged(lambda d: d["scenarios"].reverse())
    assert forged(lambda d: d.update(policies="guess"))
    assert is_refused(instances[::-1], data)


def test_a_schedule_that_is_infeasible_is_refused(found: Foresight) -> None:
    data = copy.deepcopy(dict(found.certificates["guarantee"]))
    rows = next(job["assignments"] for job in data["scenarios"][0]["schedule"]["jobs"]
                if job["assignments"])  # fmt: skip
    rows[0]["to"] += 50
    assert is_refused(instances_of(found), data)


def test_files_without_the_package(found: Foresight, tmp_path: Path) -> None:
    found.write(tmp_path)
    futures = [str(tmp_path / f"future-{n}.json") for n in range(2)]
    certificate = str(tmp_path / "certificate-expected.json")
    assert judge(certificate, futures).code == 0
    assert judge(certificate, futures[::-1]).code == 2
    assert judge(certificate, futures[:1]).code == 2


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutated(data: Any, draw: random.Random) -> Any:
    """One number, word or entry changed."""
    other = json.loads(json.dumps(data))
    path = draw.choice(list(places(other)))
    holder = other
    for key in path[:-1]:
        holder = holder[key]
    value = holder[path[-1]]
    if isinstance(value, float | int) and not isinstance(value, bool):
        holder[path[-1]] = draw.choice([value + 1, -value, value * 2, value * 0.5, 0])
    elif draw.random() < 0.5 and isinstance(holder, dict):
        del holder[path[-1]]
    else:
        holder[path[-1]] = draw.choice(["x", None, [], 7])
    return other


def attack(found: Foresight, count: int) -> None:
    """What a mutation leaves standing still bounds the best policy that is known."""
    instances, draw = instances_of(found), random.Random(0)
    best, up = found.policy, found.is_maximised
    assert best is not None
    online = best.expected(found.futures.probabilities)
    share = found.guarantee.lower if up else found.guarantee.upper
    for _ in range(count):
        name = draw.choice(list(found.certificates))
        data = mutated(found.certificates[name], draw)
        try:
            proven = prove(instances, data)
        except (Refused, *MALFORMED):
            continue
        known = online if data["claim"] == "expected" else share
        assert proven.high >= known - 1e-6 if up else proven.low <= known + 1e-6


def test_mutations(found: Foresight) -> None:
    attack(found, 60)


@pytest.mark.nightly
def test_many_mutations(found: Foresight) -> None:
    attack(found, 2000)


def test_other_families_have_none() -> None:
    futures: list[Instance] = hs.tree("edgecloud", at=[1], seed=1, jobs=2)
    assert not hs.foresight(futures, algorithms=[], time_limit=10).certificates
