"""The astraea oracles against the subproblem (9), as bounds, and on prices alike on all servers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.io import read
from hindsched.online.astraea.paper import TenantRound
from hindsched.solvers.base import build_oracle
from tests.astraea_example import round_instance
from tests.strategies.astraea import astraea_instances

EITHER = st.integers(1, 2).flatmap(lambda types: astraea_instances(types=types))


@given(EITHER, st.integers(0, 2**32))
def test_offers_at_uniform_prices_are_the_best_responses(instance, seed):
    """Lemma 2 after the repairs: phase 2's offer has the payoff of the oracle at these prices."""
    rng = np.random.default_rng(seed)
    slots = instance.horizon
    instance = round_instance(instance, slots)  # in a round every job has arrived
    bases = np.full(len(instance.worker_types), 5.0), np.full(len(instance.ps_types), 3.0)
    current = TenantRound(instance, slots, bases)
    num_w = len(instance.worker_types)
    oracle = build_oracle(instance, rows="servers")
    current.free[:] = np.maximum(current.free - rng.integers(0, 2, current.free.shape), 0)
    current.ledger.use[:] = current.ledger.capacity - current.free.sum(axis=1)
    price = np.repeat(current.ledger.prices().T[None], len(instance.servers), axis=0)
    free = current.free.transpose(1, 2, 0)
    prices, residual = (
        oracle.rows.pack({"worker_capacity": part[:, :num_w], "ps_capacity": part[:, num_w:]})
        for part in (price, free)
    )
    for block, job in enumerate(instance.jobs):
        values = oracle.values_of(job)
        offer = current.offer(job, oracle.table(block), values, shared=True)
        response = oracle.best_response(block, prices, residual)
        found = -np.inf if offer is None else values[offer.last] - offer.cost
        expected = -np.inf if response is None else response.value
        assert found == pytest.approx(expected, abs=1e-9)


def test_must_complete_without_room_bounds_nothing():
    instance = read("tests/data/instances/astraea-j5-s40.json")
    short = instance.with_fields(horizon=4)
    oracle = build_oracle(short, "must-complete")
    assert oracle.bound(np.zeros(oracle.rows.size)) == -np.inf
