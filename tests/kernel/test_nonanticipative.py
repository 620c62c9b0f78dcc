"""Certificates about who cannot see the future: they hold, and forged and mutated ones do not."""

from __future__ import annotations

import copy
import functools
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hindsched as hs
from hindsched import kernel
from hindsched.analysis.foresight import certificates
from hindsched.analysis.foresight.certificates import certify_futures
from hindsched.analysis.foresight.search import Strategy, run_on
from hindsched.instances.base import Instance
from hindsched.instances.io import write_json
from hindsched.kernel import MALFORMED, RefusedFile
from hindsched.kernel.__main__ import check_command
from hindsched.kernel.nonanticipative import prove
from hindsched.models.futures import Futures
from tests.mutations.engine import mutate

FAMILIES = ("gang", "batchsched", "astraea", "oasis")


@dataclass
class Found:
    """A tree of two futures, a policy, schedules of who sees the future, and certificates."""

    futures: Futures
    policy: Strategy
    optima: list[float]
    certificates: dict[str, Any]

    @property
    def up(self) -> bool:
        return self.futures.sense == "max"


@functools.cache
def found_in(family: str, policies: str) -> Found:
    futures = Futures.of(hs.tree(family, at=[1], branches=2, seed=1, jobs=3))
    formulation = futures.instances[0].check_formulation(None)
    name = "fifo" if family == "gang" else family
    (policy,) = run_on(futures, name, formulation)
    best = [hs.solve(instance, time_limit=60).solution for instance in futures.instances]
    optima = [solution.objective() for solution in best]
    last = max(job.arrival for job in futures.instances[0].jobs) + 30 if family != "gang" else 60
    last = futures.instances[0].horizon if futures.sense == "max" else last
    about = (futures, policies, formulation)
    weights = [1 / len(futures)] * len(futures)
    return Found(
        futures, policy, optima,
        {"expected": certify_futures(*about, futures.probabilities, last, 60),
         "guarantee": certify_futures(*about, weights, last, 60, best)},
    )  # fmt: skip


@pytest.fixture(scope="module", params=FAMILIES)
def found(request: pytest.FixtureRequest) -> Found:
    return found_in(request.param, "run")


def instances_of(found: Found) -> list[kernel.ExactInstance]:
    return [instance.exact for instance in found.futures.instances]


def is_refused(instances: list[kernel.ExactInstance], data: Any) -> bool:
    try:
        prove(instances, data)
    except (RefusedFile, *MALFORMED):
        return True
    return False


def test_a_certificate_bounds_every_policy(found: Found) -> None:
    share = 1 / len(found.futures)
    hindsight = sum(found.optima) * share
    online = sum(found.policy.values) * share
    for name, policy, whole in (("expected", online, hindsight), ("guarantee", None, 1.0)):
        bound = found.certificates[name]["bound"]
        near = 0.8 * whole <= bound <= 1.25 * whole  # of hindsight, as few jobs wait here
        assert near, name
        assert policy is None or (bound >= policy if found.up else bound <= policy)


def test_who_commits_is_bounded_more_tightly() -> None:
    for family in FAMILIES:
        run, commit = found_in(family, "run"), found_in(family, "commit")
        tight, wide = (own.certificates["expected"]["bound"] for own in (commit, run))
        assert tight <= wide * (1 + 1e-5) if run.up else tight >= wide * (1 - 1e-5)
        data = dict(commit.certificates["expected"], policies="run")
        better = tight < wide * (1 - 1e-5) if run.up else tight > wide * (1 + 1e-5)
        assert is_refused(instances_of(commit), data) or not better, "a class claimed too wide"


@pytest.mark.parametrize("claim", ["expected", "guarantee"])
def test_forged_certificates_are_refused(found: Found, claim: str) -> None:
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
    if data["family"] == "oasis":
        term |= {"to": slot, "of": "workers"}
    assert forged(lambda d: d["scenarios"][0]["own"].append(term))  # do not cancel
    late = {**term, "from": 90, "to": 90 if "of" in term else 89 + length}
    assert forged(  # cancels over a class that is no longer one: the futures are told apart
        lambda d: [row["own"].append({**late, "price": p})
                   for row, p in zip(d["scenarios"], (0.5, -0.5), strict=True)]
    )  # fmt: skip
    worse = 0.9 if data["sense"] == "max" else 1.1
    assert forged(lambda d: d.update(bound=d["bound"] * worse))
    assert forged(lambda d: d["scenarios"][0].update(weight=first["weight"] + 1))  # no sum of 1
    other = data["scenarios"][1]
    if first["own"]:
        assert forged(
            lambda d: d["scenarios"][0].update(multipliers=other["own"])
        )  # another's terms
    assert forged(lambda d: d.update(policies="guess"))

    def of_who_does_not_randomise(other: Any) -> None:
        other.update(claim="deterministic", bound=1e300 if found.up else -1e300)
        for row in other["scenarios"]:
            row["weight"] = 1

    assert forged(of_who_does_not_randomise)  # only the kernel's own game proves that
    assert is_refused(instances[::-1], data)


@pytest.mark.parametrize(("family", "at", "jobs"), [("gang", 4, 20), ("batchsched", 1, 6)])
def test_trees_prove_more_than_prices(
    family: str, at: int, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    futures = Futures.of(hs.tree(family, at=[at], branches=2, seed=1, jobs=jobs))
    formulation = futures.instances[0].check_formulation(None)
    about = (futures, "run", formulation, futures.probabilities, 60, 30)
    grown = certify_futures(*about)
    monkeypatch.setattr(certificates, "MOST_LEAVES", 1)
    alone = certify_futures(*about)
    assert grown
    assert alone
    assert grown["bound"] > alone["bound"] * (1 + 1e-4)
    optima = [hs.solve(instance, time_limit=60).objective for instance in futures.instances]
    (policy,) = run_on(futures, "wspt", formulation)
    assert grown["bound"] <= sum(policy.values) / 2 * (1 + 1e-9)
    monkeypatch.setattr(certificates, "_multipliers", lambda *asked: None)
    free = certify_futures(*about)
    assert free
    assert free["bound"] <= sum(optima) / 2 * (1 + 1e-9)  # by who sees the future
    s = next(s for s, row in enumerate(grown["scenarios"]) if row["kind"] == "tree")
    short = copy.deepcopy(dict(grown))
    del short["scenarios"][s]["prices"][0]  # the rest leaves something out
    assert is_refused([instance.exact for instance in futures.instances], short)


def test_a_schedule_that_is_infeasible_is_refused(found: Found) -> None:
    data = copy.deepcopy(dict(found.certificates["guarantee"]))
    rows = next(job["assignments"] for job in data["scenarios"][0]["schedule"]["jobs"]
                if job["assignments"])  # fmt: skip
    rows[0]["to"] += 50
    assert is_refused(instances_of(found), data)


def test_files_without_the_package(found: Found, tmp_path: Path) -> None:
    futures = [str(tmp_path / f"future-{n}.json") for n in range(2)]
    for instance, path in zip(found.futures.instances, futures, strict=True):
        hs.write(instance, path)
    certificate = str(tmp_path / "certificate.json")
    write_json(found.certificates["expected"], certificate)
    assert check_command([certificate, *futures]) == 0
    assert check_command([certificate, *futures[::-1]]) == 0  # as a shell sorts future-10, future-2
    assert check_command([certificate, *futures[:1], *futures[:1]]) == 2
    assert check_command([certificate, *futures[:1]]) == 2


def test_a_record_is_not_one_that_only_looks_like_it(found: Found) -> None:
    """Or futures that an algorithm can tell apart would be one class."""
    data, futures = copy.deepcopy(dict(found.certificates["expected"])), found.futures
    job = next(job for job in futures.instances[0].jobs if job in futures.instances[1].jobs)
    slot = futures.revealed(0, futures.instances[0].jobs.index(job))
    length = max(1, int(getattr(job, "duration", 2) / futures.instances[0].slot_seconds))
    for row, price in zip(data["scenarios"], (0.5, -0.5), strict=True):
        row["own"] = [{"job": job.name, "from": slot, "to": slot + length - 1, "price": price}]
        if data["family"] == "oasis":
            row["own"][0] |= {"to": slot, "of": "completion"}
    data["bound"] = 1e300 if found.up else -1e300
    for row in data["scenarios"]:
        row.update(kind="lagrangian", prices={})
    for marks, holds in ((0.5, 0.5), True), ((0.5, "1/2"), False), ((1, True), False):
        marked = [instance.to_dict() for instance in futures.instances]
        for instance, mark in zip(marked, marks, strict=True):
            next(row for row in instance["jobs"] if row["name"] == job.name)["note"] = mark
        assert is_refused([kernel.ExactInstance(one) for one in marked], data) != holds


def attack(found: Found, count: int) -> None:
    """What a mutation leaves standing still bounds the policy that is known."""
    instances, draw = instances_of(found), random.Random(0)
    values = found.policy.values
    shares = [value / best for value, best in zip(values, found.optima, strict=True)]
    stood = 0
    for _ in range(count):
        data = mutate(found.certificates[draw.choice(list(found.certificates))], draw)
        try:
            proven = prove(instances, data)
        except (RefusedFile, *MALFORMED):
            continue
        stood += 1
        known = sum(
            v * float(row["weight"]) for v, row in zip(values, data["scenarios"], strict=True)
        )
        if data["claim"] == "guarantee":
            known = min(shares) if found.up else max(shares)
        assert proven.high >= known - 1e-6 if found.up else proven.low <= known + 1e-6
    assert stood < count


def test_mutations(found: Found) -> None:
    attack(found, 60)


@pytest.mark.nightly
def test_many_mutations(found: Found) -> None:
    attack(found, 2000)


def test_other_families_have_none(found: Found) -> None:
    data = copy.deepcopy(dict(found.certificates["expected"]))
    data["family"] = "edgecloud"
    futures: list[Instance] = hs.tree("edgecloud", at=[1], seed=1, jobs=2)
    with pytest.raises(RefusedFile, match="no such certificates"):
        prove([instance.exact for instance in futures], data)
