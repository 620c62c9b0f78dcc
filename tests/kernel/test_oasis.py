"""oasis in the kernel: schedules, prices and packings against brute force and the package."""

from __future__ import annotations

import copy
from fractions import Fraction

import pytest

from hindsched.kernel import oasis
from hindsched.kernel.reading import RefusedFile
from tests.kernel.agreement import bound_of, checked
from tests.strategies.oasis import data_of


def job(**other):
    utility = {"kind": "linear", "slope": -1, "intercept": 10}
    worker, ps = {"gpu": 1, "mbps": 1}, {"mbps": 1}
    return {"chunks": 2, "worker": worker, "ps": ps, "utility": utility, **other}


def cluster(*jobs, gpu=2, mbps=2, horizon=2):
    return data_of(list(jobs), [{"gpu": gpu, "mbps": 9}], [{"mbps": mbps}], horizon)


def solution(*rows, completion=1, name="j1"):
    return {"jobs": [{"name": name, "completion": completion, "assignments": list(rows)}]}


def row(first, last, workers, ps):
    return {"from": first, "to": last, "workers": {"w1": workers}, "ps": {"p1": ps}}


@pytest.mark.parametrize(
    ("equation", "amount", "instance", "given"),
    [
        ("(2)", 1, cluster(job()), solution(row(1, 1, 1, 1), completion=None)),
        ("(3)", 1, cluster(job(), gpu=3, mbps=3), solution(row(1, 1, 3, 3))),
        ("(4)", 1, cluster(job(), gpu=1), solution(row(1, 1, 2, 2))),
        ("(5)", 1, cluster(job(), mbps=1), solution(row(1, 1, 2, 2))),
        ("(6)", 1, cluster(job()), solution(row(1, 1, 2, 1))),
        ("(7)", 1, cluster(job(), mbps=3), solution(row(1, 1, 2, 3))),
        ("(9)", 2, cluster(job(arrival=2)), solution(row(1, 1, 2, 2))),
        ("(10)", 2, cluster(job(arrival=2)), solution(row(1, 1, 2, 2))),
        ("horizon", 1, cluster(job(), horizon=1), solution(row(1, 2, 1, 1), completion=2)),
    ],
)
def test_every_equation_is_checked(equation, amount, instance, given):
    found = checked(oasis, instance, given).violations
    assert (equation, amount) in [(broken.rule, broken.amount) for broken in found]
    assert all("slot" in v.where or v.rule == "(2)" for v in found)


def test_what_is_stated_of_a_schedule_must_be_true():
    instance = cluster(job())
    assert checked(oasis, instance, solution(row(1, 1, 2, 2))).objective.low == 10
    for wrong in (2, None):
        given = solution(row(1, 1, 2, 2), completion=wrong)
        (found,) = checked(oasis, instance, given).violations
        assert (found.rule, found.job, found.first) == ("completion", "j1", 1)
    with pytest.raises(RefusedFile, match="no job of"):
        checked(oasis, instance, solution(name="other"))
    with pytest.raises(RefusedFile, match="unknown server"):
        checked(oasis, instance, solution({"from": 1, "to": 1, "workers": {"x": 1}}))


def broken_instances():
    yield "not listed", cluster(job(worker={"tpu": 1, "mbps": 1}))
    yield "whole number", cluster(job(arrival=0))
    yield "whole number", cluster(job(chunks=Fraction(3, 2)))
    yield "after the horizon", cluster(job(arrival=3))
    yield "unique", cluster(job(name="j2"), job())
    yield "chunks", cluster(job(chunks=100_001))
    yield "cells", cluster(job(), horizon=10**7)


@pytest.mark.parametrize(("says", "instance"), list(broken_instances()))
def test_instances_without_a_meaning_are_refused(says, instance):
    data = {"kind": "lagrangian", "sense": "max", "prices": {}}
    with pytest.raises(RefusedFile, match=says):
        bound_of(oasis, instance, data)


def test_a_completion_is_a_slot_with_a_worker():
    """A job held to end in slot 2 pays for a worker there, though slot 1 would do alone."""
    prices = {
        "worker_capacity": [{"group": "w1", "resource": "gpu", "from": 2, "to": 2, "price": 4}]
    }
    late = {"job": "j1", "of": "completion", "at_least": 2}
    early = {"job": "j1", "of": "completion", "at_most": 1}
    data = {"kind": "tree", "sense": "max", "prices": [
        {"decisions": [late], "bound": 99, "prices": prices},
        {"decisions": [early], "bound": 99, "prices": {}},
    ]}  # fmt: skip
    never = {"job": "j1", "admitted": False}
    data["prices"][0]["decisions"].append({"job": "j1", "admitted": True})
    data["prices"].insert(0, {"decisions": [late, never], "bound": 99, "prices": {}})
    found = bound_of(oasis, cluster(job()), data)
    assert found.low == 8 + 9 - 4  # 2 GPUs at 4, and f(1) = 9 less one of them


def test_places_may_be_priced_for_any_job_and_group():
    """A job whose units the package does not pack may have a price: the bound stays a bound."""
    instance = cluster(job(name="a"), job(name="b", worker={"gpu": 2, "mbps": 1}), gpu=3, mbps=9)
    prices = {
        "worker_units": [{"group": "w1", "job": n, "from": 1, "to": 1, "price": 3} for n in "ab"]
    }
    data = {"kind": "lagrangian", "sense": "max", "prices": prices, "layout": "patterns"}
    found = bound_of(oasis, instance, copy.deepcopy(data))
    # one server holds (a, b) = (1, 1) or (2, 0), which is worth 6; a runs twice in slot 2 for 9,
    # b needs both slots and pays 3 of 9
    assert found.low == found.high == 6 + 9 + 6


def test_a_layout_is_named_or_the_first():
    instance = cluster(job())
    by_server = [{"server": "w1", "resource": "gpu", "from": 1, "to": 2, "price": 1}]
    data = {"kind": "lagrangian", "sense": "max", "prices": {"worker_capacity": by_server}}
    by_name = copy.deepcopy(data | {"layout": "servers"})
    assert bound_of(oasis, instance, by_name).low == 4 + 8
    for layout in ({}, {"layout": "groups"}):
        with pytest.raises(RefusedFile, match="keys must be"):
            bound_of(oasis, instance, copy.deepcopy(data | layout))
    with pytest.raises(RefusedFile, match="layout"):
        bound_of(oasis, instance, data | {"layout": "cluster"})
