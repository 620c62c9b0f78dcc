"""Prices over whole schedules: their bound on what is left meets the linear program's value."""

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.bounds.schedule_prices import schedule_prices
from hindsched.solvers.oracles.base import build_oracle


@pytest.mark.parametrize("family", ["batchsched", "astraea"])
@pytest.mark.parametrize("seed", range(4))
def test_prices_prove_a_bound_that_best_responses_cannot_beat(family, seed):
    instance = hs.generate(family, seed=seed, jobs=5)
    oracle = build_oracle(instance, instance.check_formulation(None), rows="servers")
    residual = np.floor(0.7 * oracle.rows.capacity)
    prices = schedule_prices(oracle, residual, most_rounds=200)
    assert prices is not None
    assert (prices >= 0).all()

    def bound(at):
        responses = [oracle.best_response(j, at, residual) for j in range(len(instance.jobs))]
        values = [0.0 if r is None else r.value for r in responses]
        if oracle.optional:
            return at @ residual + sum(max(0.0, value) for value in values)
        return sum(values) - at @ residual

    free = bound(np.zeros_like(prices))
    sign = 1 if oracle.sense == "max" else -1
    assert sign * bound(prices) <= sign * free + 1e-6
    for factor in (0.5, 0.9, 1.1, 2.0):  # the duals are the best prices on their ray
        assert sign * bound(prices) <= sign * bound(factor * prices) + 1e-6 * abs(free)


def test_a_job_alone_pays_nothing():
    instance = hs.generate("astraea", jobs=1)
    oracle = build_oracle(instance, instance.check_formulation(None), rows="servers")
    assert not schedule_prices(oracle, oracle.rows.capacity).any()
