"""gang in the kernel: best responses against all schedules, the fast path, and files tampered."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hindsched.instances.gang.generator import generate
from hindsched.kernel import gang, reading
from hindsched.kernel.reading import RefusedFile
from hindsched.solvers.certificates.certificate import certify
from hindsched.solvers.families.gang.oracle import GangOracle
from hindsched.solvers.families.gang.replay import incumbents
from tests.kernel.agreement import bound_of, checked, exact


def random_oracle(instance, formulation, seed):
    """An oracle on a few random intervals, and prices."""
    rng = np.random.default_rng(seed)
    cut = np.unique(np.concatenate([[0], rng.integers(0, 40, 6)])).astype(np.int64)
    oracle = GangOracle(instance, formulation, cut)
    return oracle, np.round(rng.choice([0.0, 0.07, 0.5, 2.0], oracle.rows.size), 2)


def certificate(oracle, prices):
    return certify(oracle, prices).to_dict()


def kernel_bound(instance, data):
    found = bound_of(gang, exact(instance.to_dict()), exact(data))
    assert found.low == found.high
    return found.low


def known():
    instance = generate("small", 2, jobs=5)
    oracle, prices = random_oracle(instance, "non-preemptive", 2)
    schedule = next(iter(incumbents(instance, "non-preemptive")))
    return instance, schedule.to_dict(), certificate(oracle, prices)


@pytest.mark.parametrize(
    ("which", "path", "value", "says"),
    [
        ("certificate", ("prices",), {"pool": []}, "unknown row sets"),
        ("certificate", ("prices", "gpus", 0, "to"), 0, "whole number"),
        ("certificate", ("prices", "gpus", 0, "more"), 0, "keys"),
        ("certificate", ("prices", "gpus", 1, "from"), 1, "must follow"),
        ("instance", ("jobs", 0, "gpus"), 9, "asks for more|from 9"),
        ("instance", ("placement",), "consolidated", "placement"),
        ("instance", ("jobs", 0, "duration"), Fraction(1, 2), "whole slots"),
        ("solution", ("jobs", 0, "assignments", 0, "gpus"), 0, "whole number"),
        ("solution", ("jobs", 0, "assignments", 0, "servers"), {}, "keys"),
    ],
)
def test_tampered_files_are_refused(which, path, value, says):
    instance, solution, data = known()
    files = {"instance": exact(instance.to_dict()), "solution": exact(solution)}
    files["certificate"] = exact(data)
    files["certificate"]["prices"] = {
        "gpus": [{"from": 1, "to": 2, "price": 1}, {"from": 4, "to": 4, "price": 2}]
    }
    inside = files[which]
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    check = {"solution": lambda: checked(gang, files["instance"], files["solution"])}
    prove = check.get(which, lambda: bound_of(gang, files["instance"], files["certificate"]))
    with pytest.raises((RefusedFile, KeyError), match=says):
        prove()


def test_a_server_may_have_more_gpus_than_decisions_can_name():
    many = 2**31 + 5
    job = {"name": "a", "submit": 0, "duration": 3, "gpus": many}
    data = {
        "slot_seconds": 1, "placement": "consolidated", "jobs": [job],
        "servers": [{"name": "s", "gpus": many}],
    }  # fmt: skip
    low = {"server": "s", "from": 1, "to": 10, "price": Fraction(1, 10**12)}
    file = {"kind": "lagrangian", "layout": "placements", "prices": {"gpus": [low]}}
    found = bound_of(gang, data, {**file, "formulation": "non-preemptive"}).low
    assert found == 3 - (10 - 3) * many * low["price"]  # it pays for 3 of 10 slots


def test_many_intervals_cost_a_job_only_those_that_it_looks_at():
    rng = np.random.default_rng(5)
    instance = generate("paper", 5, jobs=300)
    cut = np.arange(0, 20_001 * 300, 300, dtype=np.int64)
    oracle = GangOracle(instance, "non-preemptive", cut)
    data = certificate(oracle, np.round(1e-4 * rng.random(oracle.rows.size), 7))
    steps = reading._NONE["steps"]
    kernel_bound(instance, data)
    assert steps - reading._NONE["steps"] < 10 * cut.size * len(instance.jobs) / 20


@pytest.mark.parametrize("formulation", ["preemptive", "elastic,deadlines"])
def test_only_jobs_in_one_piece_have_trees_and_placements(formulation):
    instance = generate("small", 2, jobs=5)
    oracle, prices = random_oracle(instance, formulation, 2)
    data = certificate(oracle, prices)
    leaf = {"decisions": [], "bound": data["bound"], "prices": data["prices"]}
    with pytest.raises(RefusedFile, match="have no trees"):
        kernel_bound(instance, data | {"kind": "tree", "prices": [leaf]})
    with pytest.raises(RefusedFile, match="only of consolidated jobs"):
        kernel_bound(instance, data | {"layout": "placements"})
    prices = {"gpus": [{"from": 1, "to": 1, "price": 1}]}
    with pytest.raises(RefusedFile, match="makespan"):
        kernel_bound(instance, data | {"formulation": "elastic,makespan", "prices": prices})
