"""Prices of ``dual-price`` matter, and are learned as documented."""

from __future__ import annotations

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.online.engines.dual_price import DualPrice


class ZeroPrices(DualPrice):
    """Never posts a price."""

    def _duals(self, slot):
        return None


def one_slot(*utilities):
    """Jobs of one worker in slot 1, on a server that holds one worker and one PS."""
    server = {"name": "s", "capacity": {"gpu": 1, "mbps": 100}}
    demand = {"gpu": 1, "mbps": 1}
    jobs = [
        {
            "name": f"j{value}", "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": demand, "ps": demand,
            "utility": {"kind": "linear", "slope": 0, "intercept": value},
        }
        for value in utilities
    ]  # fmt: skip
    return OasisInstance.parse({
        "family": "oasis", "name": "slot", "horizon": 1, "slot_seconds": 60,
        "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps", "worker_servers": [server],
        "ps_servers": [server | {"name": "p"}], "jobs": jobs,
    })  # fmt: skip


def test_a_price_keeps_out_the_job_that_is_worth_less():
    instance = one_slot(1, 3)
    assert hs.simulate(instance, ZeroPrices()).objective == 1
    run = hs.simulate(instance, "dual-price")
    assert run.objective == 3
    assert run.solution.completion("j1") is None


def test_prices_of_whole_schedules_keep_out_the_job_that_is_worth_less():
    """Of three jobs that want the one worker in the one slot, the last is worth most."""
    job = {"tenant": "t", "arrival": 0, "epochs": 1, "chunks": 1, "minibatches": 1,
           "minibatch_slots": 1, "update_slots": 0, "gradient_mb": 0}  # fmt: skip
    worth = {"kind": "linear", "slope": 0}
    instance = AstraeaInstance.parse({
        "family": "astraea", "name": "slot", "horizon": 1, "slot_seconds": 60,
        "utility_origin": "arrival", "tenants": [{"name": "t", "worker_quota": 1, "ps_quota": 1}],
        "servers": [{"name": "s", "workers": 1, "ps": 1}], "worker_bandwidth_mbps": 1,
        "ps_bandwidth_mbps": 1,
        "jobs": [job | {"name": f"j{n}", "utility": worth | {"intercept": n}} for n in (1, 2, 5)],
    })  # fmt: skip
    run = hs.simulate(instance, "dual-price")
    assert run.objective == 5
    assert run.report["relaxations_without_duals"] == 0


@pytest.mark.parametrize("learning", ["undecided", "residual"])
def test_prices_earn_more_than_none_where_jobs_compete(learning):
    with_prices, without = [], []
    for seed in range(400, 405):
        instance = hs.generate("oasis", preset="small", jobs=24, seed=seed)
        settings = {"learning": learning, "expected": 24}
        with_prices.append(hs.simulate(instance, "dual-price", settings=settings).objective)
        without.append(hs.simulate(instance, ZeroPrices()).objective)
    assert np.mean(with_prices) > 1.15 * np.mean(without)


def test_more_iterations_than_a_solver_counts_are_refused():
    instance = hs.generate("oasis", preset="small", seed=3)
    with pytest.raises(hs.errors.InputError, match="iterations: 2147483648: input should be less"):
        hs.simulate(instance, "dual-price", settings={"iterations": 2**31})


def test_demand_ahead_is_scaled_by_what_is_expected():
    algorithm = DualPrice()
    algorithm._environment = type("E", (), {"cluster": type("C", (), {"horizon": 8})})
    algorithm._seen = [None] * 4
    assert algorithm._shares(2, 8) == pytest.approx(
        [1, 1, 2 / 3, 1 / 2, 2 / 5, 1 / 3, 2 / 7, 1 / 4]
    )
    algorithm.expected = 10
    assert algorithm._shares(2, 9) == pytest.approx(
        [1, 1, *(4 / (4 + k) for k in range(1, 7)), 0.4]
    )
    algorithm.expected = 0
    assert algorithm._shares(2, 3) == pytest.approx([1, 1, 1])
