"""gang on GPUs of several kinds: the kernel, prices and policies against a second opinion."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched import kernel
from hindsched.cli.app import run
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.instances.io import write
from hindsched.solutions.base import build_solution
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.result import Status
from hindsched.solvers.families.gang.oracle import GangOracle
from hindsched.solvers.families.gang.replay import POLICIES, incumbents, replay
from tests.second_opinion.settle import settle
from tests.strategies.gang import tiny_instances

SERVERS = [
    {"name": "s0", "gpus": 2, "gpu_kind": "A"},
    {"name": "s1", "gpus": 1, "gpu_kind": "B"},
    {"name": "s2", "gpus": 1, "gpu_kind": "B"},
]
JOBS: list[dict[str, Any]] = [
    {"name": "a", "submit": 0, "duration": 3, "gpus": 2, "gpu_kinds": ["A"]},
    {"name": "b", "submit": 0, "duration": 2, "gpus": 1, "gpu_kinds": ["A"]},
    {"name": "c", "submit": 0, "duration": 2, "gpus": 1},
    {"name": "d", "submit": 1, "duration": 2, "gpus": 2, "gpu_kinds": ["B", "A"]},
]


def of(jobs: Any = JOBS, servers: Any = SERVERS, placement: str = "pool") -> GangInstance:
    return GangInstance.parse(gang_data("k", jobs, servers=servers, placement=placement))


@given(tiny_instances(longest=2, kinds=True), st.integers(0, 2**32 - 1))
def test_prices_policies_and_kernel_agree_with_the_brute_force(instance: Any, seed: int) -> None:
    draws = np.random.default_rng(seed)
    formulation = str(draws.choice(instance.formulations))
    settled = settle(instance, formulation)
    best, read = float(settled.value), kernel.ExactInstance(instance.to_dict())
    attained = build_solution(instance, settled.rows, formulation)
    assert attained.violations() == []
    assert attained.objective() == pytest.approx(best)
    for solution in incumbents(instance, formulation):
        assert solution.violations() == []
        assert solution.objective() >= best * (1 - 1e-9)
    cut = np.unique(np.append(draws.integers(0, 9, 4), 0))
    oracle = GangOracle(instance, formulation, cut)
    prices = np.round(draws.choice([0.0, 0.07, 0.5, 2.0], oracle.rows.size), 2)
    certificate = certify(oracle, prices)
    exact = kernel.bound(read, certificate.to_dict())
    assert exact.low == exact.high <= Fraction(best) * (1 + Fraction(1, 10**9))
    if not formulation.endswith("makespan"):
        assert certificate.bound == pytest.approx(float(exact.low), rel=1e-8, abs=1e-6)
    assert certificate.bound <= exact.low
    found = hs.solve(instance, formulation=formulation, time_limit=0.1)
    assert found.bound is not None
    assert found.objective is not None
    assert found.bound <= best * (1 + 1e-9)
    assert found.objective >= best * (1 - 1e-9)
    assert found.certificate is not None
    again = verify_certificate(instance, json.loads(json.dumps(found.certificate.to_dict())))
    assert again.bound == found.certificate.bound


def test_jobs_of_one_kind_are_problems_of_their_own() -> None:
    draws = np.random.default_rng(3)
    jobs = [
        {"name": f"{kind}{n}", "submit": int(draws.integers(0, 50)), "gpus": int(width),
         "duration": int(draws.integers(1, 60)), "gpu_kinds": [kind]}
        for kind in "AB" for n, width in enumerate(draws.integers(1, 5, 20))
    ]  # fmt: skip
    servers = [{"name": kind, "gpus": 4, "gpu_kind": kind} for kind in "AB"]
    parts = [
        GangInstance.parse(gang_data(kind, [
            {key: value for key, value in job.items() if key != "gpu_kinds"}
            for job in jobs if job["gpu_kinds"] == [kind]
        ], gpus=4)) for kind in "AB"
    ]  # fmt: skip
    whole, solved = of(jobs, servers), [hs.solve(part, "bound", time_limit=3) for part in parts]
    found = hs.solve(whole, "bound", time_limit=6)
    assert found.bound == pytest.approx(sum(each.bound for each in solved), rel=0.01)
    # the certificates of the parts are one of the whole, to the digit
    rows = [
        {**row, "gpu_kind": kind} for kind, each in zip("AB", solved, strict=True)
        for row in each.certificate.to_dict()["prices"]["gpus"]
    ]  # fmt: skip
    joined = {**found.certificate.to_dict(), "prices": {"gpus": rows}}
    exact = [
        kernel.bound(part.to_dict(), each.certificate.to_dict()).low
        for part, each in zip(parts, solved, strict=True)
    ]
    assert kernel.bound(whole.to_dict(), joined).low == sum(exact)


@pytest.mark.parametrize("placement", ["pool", "consolidated"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_asked_event_by_event_is_the_replayed_one(policy: str, placement: str) -> None:
    instance = of(placement=placement)
    online = hs.simulate(instance, policy).solution
    known = replay(instance, policy, online.formulation)
    assert known.violations() == []
    assert online.assignments() == known.assignments()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"gpu_kind": "B"}, "(8)"),  # it does not name it
        ({"gpus": 1}, "(3)"),
        ({"from": 2, "to": 4}, "(5)"),  # both GPUs of the kind are held
    ],
)
def test_the_kernel_judges_kinds(change: Any, rule: str) -> None:
    instance = of(JOBS[:2])
    rows = {
        "a": [{"from": 1, "to": 3, "gpus": 2, "gpu_kind": "A"}],
        "b": [{"from": 4, "to": 5, "gpus": 1, "gpu_kind": "A"}],
    }
    good = build_solution(instance, rows)
    assert good.violations() == []
    assert good.objective() == 8
    (row,) = rows["a"]
    broken = build_solution(instance, {**rows, "a": [{**row, **change}]})
    assert rule in {each.rule for each in broken.violations()}


def test_a_gang_stands_on_one_kind() -> None:
    job = {"name": "w", "submit": 0, "duration": 1, "gpus": 3}
    wide = [*SERVERS, {"name": "s3", "gpus": 2, "gpu_kind": "A"}]
    instance = of([job], wide, "consolidated")
    assert [hold for row in replay(instance, "fifo").assignments()["w"]
            for hold in row["servers"].items()] == [("s0", 2), ("s3", 1)]  # fmt: skip
    mixed = {"from": 1, "to": 1, "servers": {"s0": 2, "s1": 1}}
    rules = {each.rule for each in build_solution(instance, {"w": [mixed]}).violations()}
    assert rules == {"(8)"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"gpu_kinds": ["C"]}, "must name a gpu_kind that a server has"),
        ({"gpu_kinds": []}, "gpu_kinds"),
        ({"gpu_kinds": ["A"], "gpus": 3}, "must not exceed 2 GPUs of one kind"),
    ],
)
def test_a_job_that_cannot_run_is_one_line(
    change: Any, says: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data = gang_data("k", [{**JOBS[0], **change}], servers=SERVERS)
    (tmp_path / "k.json").write_text(json.dumps(data))
    assert run(["solve", str(tmp_path / "k.json")]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    if change["gpu_kinds"]:
        with pytest.raises(kernel.RefusedFile):
            kernel.check(data, {"formulation": "preemptive", "jobs": []})


@pytest.mark.parametrize("command", [["model"], ["solve", "--method", "milp"],
                                     ["simulate", "--algorithm", "reoptimise"]])  # fmt: skip
def test_programs_know_one_kind(
    command: list[str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write(of(), tmp_path / "k.json")
    assert run([command[0], str(tmp_path / "k.json"), *command[1:]]) == 2
    assert "2 kinds" in capsys.readouterr().err


def test_files_without_kinds_are_read_as_before() -> None:
    plain = [{"name": server["name"], "gpus": server["gpus"]} for server in SERVERS]
    instance = of([{**job, "gpu_kinds": None} for job in JOBS], plain)
    assert not instance.has_kinds
    assert hs.solve(instance, time_limit=5).status is Status.OPTIMAL
