"""mlbroker's oracle: exact where nothing is rewarded, tiers one by one, and plans in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.solutions.base import build_solution
from hindsched.solvers.base import build_oracle, family_solvers
from hindsched.solvers.families.mlbroker.oracle import BROKER
from tests.strategies.mlbroker import instances, two_jobs


def random_prices(oracle: Any, draws: Any) -> Any:
    """Prices about the gains and launches."""
    gains, launch = oracle.unit_prices.max() + 1, oracle.launches.max(initial=0) + 1
    arrays = {
        "discount": gains * draws.uniform(0, 1.2, oracle.rows.sets[0].shape),
        "deployment": launch * draws.uniform(0, 1.2, oracle.rows.sets[1].shape),
    }
    return oracle.rows.pack({k: v * (draws.random(v.shape) < 0.7) for k, v in arrays.items()})


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
        rows[job.name] = oracle.assignments(j, found)
        costs = build_solution(tiny.with_jobs((job,)), {job.name: rows[job.name]}, "tight").costs
        use = np.zeros(oracle.rows.size)
        use[found.rows] = found.amounts
        discounted = oracle.rows.unpack(use)["discount"][:, :, j]
        rent = oracle.unit_prices * costs.used - oracle.gains * discounted.transpose(2, 0, 1)
        moved = costs.transfer * tiny.weights[0] + costs.communication * tiny.weights[3]
        assert found.objective == pytest.approx(rent.sum() + moved.sum(), rel=1e-7, abs=1e-7)
        assert found.value == pytest.approx(found.objective + prices @ use, rel=1e-7, abs=1e-7)
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


def test_what_is_branched_on() -> None:
    tiny, tree_rows = two_jobs(5), family_solvers("mlbroker").tree_layouts
    assert tree_rows(tiny, "tight") == ("servers",)
    assert tree_rows(tiny, "paper") == ()
    job = tiny.jobs[0].model_copy(update={"name": BROKER})
    named = tiny.with_jobs((job, tiny.jobs[1]))
    assert tree_rows(named, "tight") == ()
    assert not build_oracle(tiny, "paper").features
    assert set(build_oracle(tiny, "tight").features) == {"tier", "workers", "ps"}
