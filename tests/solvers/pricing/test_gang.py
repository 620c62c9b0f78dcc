"""Gang's oracles against every schedule of a job; interval rows, and bounds without prices."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.gang.instance import GangInstance, gang_data, split_formulation
from hindsched.solvers.base import build_oracle
from hindsched.solvers.families.gang.oracle import GangOracle, IntervalRows, cuts_of
from hindsched.solvers.oracles.decisions import COMPLETES
from tests.strategies.gang import tiny_instances

KINDS = ("non-preemptive", "preemptive", "elastic")
BEHIND = 12
"""Free slots behind the last row in which a schedule may end."""


def per_slot(cut: Any, prices: Any, slots: int) -> list[float]:
    """The price that holds in every slot."""
    found = [0.0] * slots
    for k, price in enumerate(prices):
        for t in range(cut[k], min(cut[k + 1], slots)):
            found[t] = price
    return found


def schedules(instance: GangInstance, j: int, formulation: str, price: list[float]) -> Any:
    """(completion, own cost, paid) of every completion of a job, with the cheapest slots by it."""
    kind, goal = split_formulation(formulation)
    job, seconds = instance.jobs[j], float(instance.slot_seconds)
    submit, length, gpus = (int(a[j]) for a in (
        instance.submits, instance.durations, instance.job_gpus))  # fmt: skip
    due = int(instance.deadlines[j])
    for end in range(submit + 1, len(price) + 1):
        own = float(job.weight) * seconds * (end - submit)
        if goal == "deadlines":
            own = float(job.weight) if 0 <= due < end else 0.0
        if kind == "non-preemptive":
            if end - length >= submit:
                yield end, own, gpus * seconds * sum(price[end - length : end])
            continue
        most, work = gpus, length * gpus
        if kind == "elastic":
            most = int(instance.most_gpus[j])
        total = 0.0
        for each in sorted(price[submit:end]):
            total += each * min(most, work) * seconds
            work -= min(most, work)
        if work == 0:
            yield end, own, total


@given(tiny_instances(), st.integers(0, 2**32))
def test_the_pool_s_responses_are_the_cheapest_schedules(instance: Any, seed: int) -> None:
    draws = np.random.default_rng(seed)
    for kind, goal in itertools.product(KINDS, ("", ",deadlines")):
        own = build_oracle(instance, kind + goal, rows="intervals")
        cut = np.unique(np.append(draws.integers(0, 9, 4), 0))
        oracle = own.on_rows(IntervalRows(instance, cut))
        assert isinstance(oracle, GangOracle)
        assert oracle.rows.capacity == pytest.approx(
            instance.total_gpus * float(instance.slot_seconds) * (cut[1:] - cut[:-1])
        )
        prices = draws.integers(0, 4, oracle.rows.size) / 2.0
        price = per_slot(cut.tolist(), prices.tolist(), 9 + BEHIND)
        for j in range(len(instance.jobs)):
            known = list(schedules(instance, j, kind + goal, price))
            value = min(own + paid for _, own, paid in known)
            found = oracle.best_response(j, prices)
            assert found.value == pytest.approx(value)
            assert found.objective + prices[found.rows] @ found.amounts == pytest.approx(value)
            assert (found.amounts <= oracle.rows.capacity[found.rows] + 1e-9).all()
            if kind != "non-preemptive":
                continue
            low, high = sorted(draws.integers(0, 10, 2).tolist())
            within = {COMPLETES: (low, high)}
            kept = [(end, a + b) for end, a, b in known if low <= end <= high]
            due = int(instance.deadlines[j])
            if goal:  # one that misses its deadline completes after all slots
                kept = [(end, cost) for end, cost in kept if due < 0 or end <= due]
            response = oracle.restricted_response(j, prices, within)
            assert (response is None) == (not kept)
            if kept:
                assert response.value == pytest.approx(min(cost for _, cost in kept))
                assert low <= oracle.features_of(j, response)[COMPLETES] <= high


def consolidated(seed: int) -> GangInstance:
    """Three servers, jobs that need one, and jobs that need two or three."""
    draws = np.random.default_rng(seed)
    sizes = draws.integers(1, 4, 3).tolist()
    most = sum(sizes) + 1
    jobs = [
        {"name": f"j{n}", "submit": int(draws.integers(0, 3)) * 2.0,
         "duration": int(draws.integers(1, 4)) * 2.0, "gpus": int(draws.integers(1, most)),
         "weight": float(draws.choice([1, 2, 0.5])), "deadline": float(draws.integers(1, 6)) * 2.0}
        for n in range(3)
    ]  # fmt: skip
    servers = [{"name": f"s{h}", "gpus": size} for h, size in enumerate(sizes)]
    return GangInstance.parse(
        gang_data("tiny", jobs, slot_seconds=2.0, servers=servers, placement="consolidated")
    )


ROW = {"from": 2, "to": 3, "price": 1.5}


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"gpu": []}, r"prices: .*the rows gpus"),
        ({"gpus": [ROW, 3]}, r"prices\.gpus\[1\]: "),
        ({"gpus": [{**ROW, "slot": 1}]}, r"prices\.gpus\[0\]: .*keys from, price, to"),
        ({"gpus": [{**ROW, "from": 0}]}, r"prices\.gpus\[0\]\.from: "),
        ({"gpus": [{**ROW, "to": 10**18}]}, r"prices\.gpus\[0\]\.to: "),
        ({"gpus": [{**ROW, "to": 1}]}, r"prices\.gpus\[0\]\.to: 1: must not precede from = 2"),
        ({"gpus": [ROW, {**ROW, "from": 3}]}, r"prices\.gpus\[1\]\.from: 3: must follow slot 3"),
        ({"gpus": [{**ROW, "price": True}]}, r"prices\.gpus\[0\]\.price: "),
        ({"gpus": [{**ROW, "price": -1}]}, r"prices\.gpus\[0\]\.price: .*not be negative"),
        ({"gpus": [{**ROW, "price": 1e101}]}, r"prices\.gpus\[0\]\.price: .*1e\+100"),
    ],
)  # fmt: skip
def test_bad_prices_of_intervals_are_named(prices: Any, message: str) -> None:
    oracle = build_oracle(consolidated(1))
    with pytest.raises(InputError, match=message):
        oracle.on_rows_of_file(prices)
    with pytest.raises(InputError, match=message):
        oracle.rows.from_file(prices)


def test_prices_bring_their_intervals_along() -> None:
    instance = consolidated(1)
    own = build_oracle(instance)
    first = {"gpus": [{"from": 1, "to": 1, "price": 3}, {"from": 2, "to": 4, "price": 1.0},
                      {"from": 7, "to": 7, "price": 2.0}]}  # fmt: skip
    assert cuts_of(first).tolist() == [0, 1, 4, 6, 7]
    assert cuts_of({}).tolist() == [0]
    leaves = [{"prices": first}, {"prices": {"gpus": [{"from": 3, "to": 9, "price": 1}]}}]
    assert cuts_of([*leaves, {"prices": {}}]).tolist() == [0, 1, 2, 4, 6, 7, 9]
    oracle = own.on_rows_of_file(first)
    flat = oracle.rows.from_file(first)
    assert flat.tolist() == [3, 1, 0, 2]
    assert oracle.rows.from_file({}).tolist() == [0] * 4
    assert oracle.rows.to_file(flat) == first
    assert oracle.rows.label(1) == {"rows": "gpus", "interval": "2-4", "slot": 2}
    fine = own.on_rows(IntervalRows(instance, np.arange(9)))
    spread = fine.prices_from("intervals", oracle.rows, flat)
    assert spread.tolist() == [3, 1, 1, 1, 0, 0, 2, 0]
    assert fine.rows.to_file(spread) == first
    assert fine.bound(spread) == pytest.approx(oracle.bound(flat))
    for wrong in ({"from": 2, "to": 3}, {"from": 3, "to": 4}, {"from": 7, "to": 8}):
        with pytest.raises(InputError, match=rf"prices\.gpus: {wrong['from']}-{wrong['to']}"):
            oracle.rows.from_file({"gpus": [{**wrong, "price": 1}]})
    makespan = build_oracle(instance, "non-preemptive,makespan")
    assert makespan.on_rows_of_file({"gpus": []}).rows.size == 0
    with pytest.raises(InputError, match=r"prices\.gpus: .*empty for the makespan"):
        makespan.on_rows_of_file(first)
