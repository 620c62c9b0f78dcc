"""The astraea oracles against the subproblem (9), as bounds, and on prices alike on all servers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.io import read
from hindsched.models.astraea.offline import round_instance
from hindsched.online.astraea.paper import TenantRound
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solvers.door.subproblem import model_response
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force.astraea import optimum
from tests.strategies.astraea import astraea_instances

EITHER = st.integers(1, 2).flatmap(lambda types: astraea_instances(types=types))


def random_prices(oracle, seed):
    rng = np.random.default_rng(seed)
    prices = rng.choice([0.0, 0.0, 0.5, 1.0, 3.0, *rng.uniform(0, 4, 3)], oracle.rows.size)
    residual = np.floor(oracle.rows.capacity * rng.choice([0, 0.5, 1, 1, 1], oracle.rows.size))
    return prices, residual


@given(EITHER, st.integers(0, 2**32))
def test_oracle_equals_the_subproblem_at_random_prices_and_residuals(instance, seed):
    oracle = build_oracle(instance, rows="servers")
    prices, residual = random_prices(oracle, seed)
    for left in (None, residual):
        block = seed % oracle.num_blocks
        response = oracle.best_response(block, prices, left)
        expected = model_response(oracle, block, prices, left)
        assert (response is None) == (expected is None)
        if response is None:
            continue
        assert response.value == pytest.approx(expected.value, abs=1e-6)
        limit = oracle.rows.capacity if left is None else left
        use = np.zeros(oracle.rows.size)
        np.add.at(use, response.rows, response.amounts)
        assert (use <= limit + 1e-9).all()
        assert response.value == pytest.approx(response.objective - prices @ use, abs=1e-9)
        name = oracle.block_name(block)
        rows = {name: oracle.assignments(block, response)}
        solution = AstraeaSolution.from_assignments(instance, rows)
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(response.objective)


@given(EITHER, st.integers(0, 2**32))
def test_every_price_vector_bounds_the_optimum_in_both_layouts(instance, seed):
    best = optimum(instance).value
    merged, servers = build_oracle(instance, rows="cluster"), build_oracle(instance, rows="servers")
    for oracle in (merged, servers):
        prices, _ = random_prices(oracle, seed)
        assert oracle.bound(prices) >= best - 1e-9
        assert oracle.bound(prices / 4) >= best - 1e-9
        one_by_one = type(oracle).__mro__[1].__mro__[1].block_values(oracle, prices)
        together = oracle.block_values(prices)
        assert together[0] == pytest.approx(one_by_one[0], abs=1e-9)
    prices, _ = random_prices(merged, seed)
    spread = merged.prices_on_servers(prices)
    # Merging servers relaxes the blocks: its bound is never the sharper one at the same prices.
    assert merged.bound(prices) >= servers.bound(spread) - 1e-6


@given(EITHER)
def test_a_solution_read_back_uses_what_it_uses(instance):
    best = optimum(instance)
    solution = AstraeaSolution.from_assignments(instance, best.assignments)
    for layout in ("cluster", "servers"):
        oracle = build_oracle(instance, rows=layout)
        found = oracle.use_of(solution)
        use = np.zeros(oracle.rows.size)
        for response in found:
            if response is not None:
                np.add.at(use, response.rows, response.amounts)
        assert sum(r.objective for r in found if r is not None) == pytest.approx(best.value)
        assert (use <= oracle.rows.capacity + 1e-9).all()
        assert use.sum() == pytest.approx(solution.worker_use.sum() + solution.ps_use.sum())


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


def test_unknown_layout_and_residual_on_the_cluster():
    instance = read("tests/data/instances/astraea-j5-s40.json")
    with pytest.raises(InputError, match="rows"):
        build_oracle(instance, rows="buckets")
    oracle = build_oracle(instance)
    with pytest.raises(InputError, match="servers"):
        oracle.best_response(0, np.zeros(oracle.rows.size), oracle.rows.capacity)
