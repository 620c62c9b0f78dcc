"""The astraea oracles against the subproblem (9), as bounds, and on prices alike on all servers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.io import read
from hindsched.models.astraea.offline import round_instance
from hindsched.online.astraea.paper import TenantRound
from hindsched.solvers.oracles.base import build_oracle
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
    current.free_workers -= rng.integers(0, 2, current.free_workers.shape)
    current.free_ps -= rng.integers(0, 2, current.free_ps.shape)
    np.maximum(current.free_workers, 0, out=current.free_workers)
    np.maximum(current.free_ps, 0, out=current.free_ps)
    current.ledger.use[:] = current.ledger.capacity - np.concatenate(
        [current.free_workers.sum(axis=1), current.free_ps.sum(axis=1)], axis=1
    )
    price = current.ledger.prices()
    servers = len(instance.servers)
    prices = oracle.rows.pack(
        {
            "worker_capacity": np.repeat(price[None, :, :num_w], servers, axis=0).swapaxes(1, 2),
            "ps_capacity": np.repeat(price[None, :, num_w:], servers, axis=0).swapaxes(1, 2),
        }
    )
    residual = oracle.rows.pack(
        {
            "worker_capacity": current.free_workers.transpose(1, 2, 0),
            "ps_capacity": current.free_ps.transpose(1, 2, 0),
        }
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
