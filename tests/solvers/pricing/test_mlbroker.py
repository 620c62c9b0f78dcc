"""mlbroker's oracle: exact where nothing is rewarded, tiers one by one, and plans in files."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.solutions.base import build_solution
from hindsched.solvers.families.mlbroker.oracle import BROKER, tree_rows
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import Feature
from tests.brute_force.mlbroker import transport
from tests.strategies.mlbroker import instances, two_jobs


def slot_costs(
    tiny: Any, j: int, t: int, discount: Any, presence: Any, limits: Any, paper: bool
) -> float:
    """Least cost of a job in a slot over all workers and PSs within limits; `limits` by feature."""
    job, size, w = tiny.jobs[j], len(tiny.datacenters), tiny.weights
    needed, arc = int(tiny.workers_needed[j, t]), tiny.transfer_price.tolist()
    pinned = job.pinned_datacenters or ()
    for r, center in enumerate(tiny.datacenters):
        if center.name in pinned:
            arc[r] = [0.0 if q == r else math.inf for q in range(size)]
    unit = w[1] * np.minimum(
        tiny.unit_price, tiny.discounted_price + discount[:, :, j, t] / (w[1] or 1)
    )
    best = math.inf
    for y in itertools.product(range(max(needed, 1) + 1), repeat=size):
        low = [limits.get(Feature("workers", (r, t)), (0, 99)) for r in range(size)]
        if any(not a <= n <= b for n, (a, b) in zip(y, low, strict=True)):
            continue
        room = [float(tiny.capacity[j]) * n for n in y]
        moved = transport(tiny.data[j, t].tolist(), room, arc)
        if math.isinf(moved):
            continue
        for p in range(size):
            serves = [limits.get(Feature("ps", (r, t)), (0, 1)) for r in range(size)]
            if any(not a <= (r == p) <= b for r, (a, b) in enumerate(serves)):
                continue
            units = np.outer(y, tiny.worker_demand[j])
            units[p] += tiny.ps_demand[j]
            talk = sum(n * tiny.transfer_price[r, p] for r, n in enumerate(y))
            talk *= 0 if paper else float(tiny.exchange[j]) * w[3]
            cost = w[0] * moved + talk + float((units * unit).sum())
            for r, n in enumerate(y):  # presence that is rewarded is taken without being used
                cost += presence[r] if n or r == p else min(0.0, presence[r])
            best = min(best, cost)
    return best


def random_prices(oracle: Any, draws: Any) -> Any:
    """Prices about the gains and launches."""
    gains, launch = oracle.unit_prices.max() + 1, oracle.launches.max(initial=0) + 1
    arrays = {
        "discount": gains * draws.uniform(0, 1.2, oracle.rows.sets[0].shape),
        "deployment": launch * draws.uniform(0, 1.2, oracle.rows.sets[1].shape),
    }
    return oracle.rows.pack({k: v * (draws.random(v.shape) < 0.7) for k, v in arrays.items()})


@given(instances(kinds=2, weights=False), st.integers(0, 2**32))
def test_a_job_is_priced_slot_by_slot(tiny: Any, seed: int) -> None:
    draws = np.random.default_rng(seed)
    for formulation in ("tight", "paper"):
        oracle = build_oracle(tiny, formulation)
        prices = random_prices(oracle, draws)
        arrays = oracle.rows.unpack(prices)
        for j, job in enumerate(tiny.jobs):
            for restricted in (False, formulation == "tight"):
                limits: dict[Feature, tuple[int, int]] = {}
                if restricted:
                    name = str(draws.choice(["workers", "ps"]))
                    t = int(draws.integers(job.arrival - 1, job.departure))
                    low = int(draws.integers(0, 2))
                    window = (low, low + int(draws.integers(0, 2)))
                    limits[Feature(name, (int(draws.integers(2)), t))] = window
                expected = 0.0
                for t in range(job.arrival - 1, job.departure):
                    mu = arrays["deployment"][:, j]
                    later = mu[:, t + 1] if t + 1 < job.departure else 0.0
                    expected += slot_costs(
                        tiny, j, t, arrays["discount"], mu[:, t] - later, limits,
                        formulation == "paper",
                    )  # fmt: skip
                    expected += np.minimum(0.0, float(oracle.launches[j]) - mu[:, t]).sum()
                found = oracle.restricted_response(j, prices, limits)
                assert (found is None) == math.isinf(expected)
                if found is not None:
                    assert found.value == pytest.approx(expected, rel=1e-7, abs=1e-7)


@given(instances(kinds=2), st.integers(0, 2**32))
def test_a_plan_costs_its_value_where_no_presence_is_rewarded(tiny: Any, seed: int) -> None:
    """Prices of deployments that stay as they are, no dearer than a launch: nothing is relaxed."""
    draws = np.random.default_rng(seed)
    oracle = build_oracle(tiny, "tight")
    prices = random_prices(oracle, draws)
    arrays = {k: v.copy() for k, v in oracle.rows.unpack(prices).items()}
    flat = draws.random((len(tiny.datacenters), len(tiny.jobs))) * oracle.launches
    arrays["deployment"][:] = flat[:, :, None]
    prices = oracle.rows.pack(arrays)
    rows = {}
    for j, job in enumerate(tiny.jobs):
        found = oracle.best_response(j, prices)
        cost = found.objective + float(prices[found.rows] @ found.amounts)
        assert cost == pytest.approx(found.value, rel=1e-7, abs=1e-7)
        rows[job.name] = oracle.assignments(j, found)
        assert [row["from"] for row in rows[job.name]] == list(
            range(job.arrival, job.departure + 1)
        )
        alone = build_solution(tiny.with_jobs((job,)), {job.name: rows[job.name]}, "tight")
        life = slice(job.arrival - 1, job.departure)
        assert alone.workers[0, life].tolist() == found.plan.workers.tolist()
        assert alone.ps[0, life].tolist() == found.plan.ps.tolist()
    solution = build_solution(tiny, rows, "tight")
    assert solution.violations() == []
    own = oracle.use_of(solution)
    assert sum(one.objective for one in own) == pytest.approx(solution.objective())
    use = np.zeros(oracle.rows.size)
    for one in own:
        np.add.at(use, one.rows, one.amounts)
    assert (use <= 1e-9 * (1 + np.abs(use).max())).all()
    broker = oracle.best_response(len(tiny.jobs), prices)
    assert oracle.assignments(len(tiny.jobs), broker) == []
    assert oracle.place([]) is None


@given(instances(kinds=2, jobs=3), st.integers(0, 2**32))
def test_the_broker_pays_a_fee_where_that_is_worth_it(tiny: Any, seed: int) -> None:
    draws = np.random.default_rng(seed)
    oracle = build_oracle(tiny, "tight")
    prices = 2 * random_prices(oracle, draws)
    discount = oracle.rows.unpack(prices)["discount"]
    broker, jobs = len(tiny.jobs), len(tiny.jobs)
    size, kinds, _, horizon = discount.shape
    at = (int(draws.integers(size)), int(draws.integers(kinds)), int(draws.integers(horizon)))
    for window in ((0, 9), (0, 0), (1, 9), (1, 1), (2, 9)):
        expected = 0.0
        for r, k, t in itertools.product(range(size), range(kinds), range(horizon)):
            most = [
                max(int(tiny.workers_needed[j, t]), 1) * tiny.worker_demand[j, k]
                + tiny.ps_demand[j, k]
                if tiny.jobs[j].arrival <= t + 1 <= tiny.jobs[j].departure else 0.0
                for j in range(jobs)
            ]  # fmt: skip
            fee = tiny.weights[1] * (tiny.unit_price - tiny.discounted_price)[r, k]
            fee *= tiny.threshold[r, k]
            buys = fee - float(discount[r, k, :, t] @ most)
            low, high = window if (r, k, t) == at else (0, 1)
            expected += min([0.0] * (low == 0) + [buys] * (high > 0 and low < 2), default=math.inf)
        limits = {Feature("tier", at): window}
        found = oracle.restricted_response(broker, prices, limits)
        assert (found is None) == math.isinf(expected)
        if found is not None:
            assert found.value == pytest.approx(expected, abs=1e-9)
            cost = found.objective + float(prices[found.rows] @ found.amounts)
            assert cost == pytest.approx(found.value, abs=1e-9)


def test_what_is_branched_on() -> None:
    tiny = two_jobs(5)
    assert tree_rows(tiny, "tight") == ("servers",)
    assert tree_rows(tiny, "paper") == ()
    job = tiny.jobs[0].model_copy(update={"name": BROKER})
    named = tiny.with_jobs((job, tiny.jobs[1]))
    assert tree_rows(named, "tight") == ()
    assert not build_oracle(tiny, "paper").features
    assert set(build_oracle(tiny, "tight").features) == {"tier", "workers", "ps"}


@given(instances(slots=3))
def test_launches_are_spread_over_a_life(tiny: Any) -> None:
    prices = build_oracle(tiny, "tight").amortised_launches()
    oracle = build_oracle(tiny, "tight")
    assert prices.shape == oracle.rows.sets[1].shape
    for j, job in enumerate(tiny.jobs):
        mine = prices[:, j, job.arrival - 1 : job.departure]
        assert mine[:, 0] == pytest.approx(oracle.launches[j])
        each = np.append(mine, np.zeros((len(mine), 1)), axis=1)
        life = job.departure - job.arrival + 1
        assert -np.diff(each, axis=1) == pytest.approx(oracle.launches[j] / life)
        assert prices[:, j].sum() == pytest.approx(mine.sum())
