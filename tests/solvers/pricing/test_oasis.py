"""The oasis oracle against the subproblem (27), against Algorithm 2 as printed, and as a bound."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.decimals import how_many_fit
from hindsched.instances.io import read
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.families.oasis.oracle import OasisServers
from tests.strategies.oasis import oasis_instances


@pytest.fixture(scope="module")
def medium():
    return read("tests/data/instances/oasis-t100-i100-h50-s0.json")


def random_prices(oracle, seed: int):
    """Random prices with many zeros and ties."""
    rng = np.random.default_rng(seed)
    prices = rng.choice([0.0, 0.0, 0.5, 1.0, 3.0, *rng.uniform(0, 4, 3)], oracle.rows.size)
    residual = np.floor(oracle.rows.capacity * rng.choice([0, 0.5, 1, 1, 1], oracle.rows.size))
    return prices, residual


def check_response(oracle, block, prices, residual, response):
    """Value, use and rows of a response agree with its schedule, which the checker accepts."""
    limit = oracle.rows.capacity if residual is None else residual
    use = np.zeros(oracle.rows.size)
    np.add.at(use, response.rows, response.amounts)
    assert (use <= limit + 1e-9).all()
    assert response.value == pytest.approx(response.objective - prices @ use, abs=1e-9)
    name = oracle.block_name(block)
    rows = {name: oracle.assignments(block, response)}
    solution = OasisSolution.from_assignments(oracle.instance, rows)
    assert solution.violations() == []
    assert solution.completion(name) == response.plan.end
    assert solution.objective() == pytest.approx(response.objective)
    again = oracle.use_of(solution)[block]
    same = np.zeros(oracle.rows.size)
    np.add.at(same, again.rows, again.amounts)
    assert same == pytest.approx(use)


def algorithm_2(instance, job, prices):
    """The payoff of Algorithm 2 as printed: recursion over whole chunks, memoised."""
    worker, ps = instance.demand_of(job)
    worker_prices, ps_prices = prices["worker_capacity"], prices["ps_capacity"]
    rooms = (
        how_many_fit(instance.worker_capacity, worker, 10**6),
        how_many_fit(instance.ps_capacity, ps, 10**6),
    )
    b, big_b = instance.bandwidth_of(job)
    chunk = job.minibatches * instance.minibatch_time(job)

    def deploy(unit_prices, room, wanted):
        cost = 0.0
        for h in np.argsort(unit_prices, kind="stable"):
            units = min(int(room[h]), wanted)
            cost += units * unit_prices[h]
            wanted -= units
        return cost if wanted == 0 else math.inf

    @cache
    def cost_t(t, d):
        wanted = math.ceil(d * chunk - 1e-9)
        if wanted > job.chunks:
            return math.inf
        servers = math.ceil(wanted * b / big_b - 1e-9)
        if servers > wanted:
            return math.inf
        return deploy(worker @ worker_prices[:, :, t - 1].T, rooms[0], wanted) + deploy(
            ps @ ps_prices[:, :, t - 1].T, rooms[1], servers
        )

    @cache
    def dp_cost(t, chunks):
        if t < job.arrival:
            return 0.0 if chunks == 0 else math.inf
        return min(cost_t(t, d) + dp_cost(t - 1, chunks - d) for d in range(chunks + 1))

    return max(
        job.utility.value(end - job.arrival) - dp_cost(end, job.epochs * job.chunks)
        for end in range(job.arrival, instance.horizon + 1)
    )


@given(oasis_instances(), st.integers(0, 2**32))
def test_chunk_program_equals_algorithm_2_and_never_beats_the_exact_one(instance, seed):
    oracle = OasisServers(instance)
    prices, _ = random_prices(oracle, seed)
    for block, job in enumerate(instance.jobs):
        exact = oracle.best_response(block, prices)
        chunks = oracle.chunk_best_response(block, prices)
        expected = algorithm_2(instance, job, oracle.rows.unpack(prices))
        if chunks is None:
            assert expected == -math.inf
            continue
        assert chunks.value == pytest.approx(expected, abs=1e-9)
        assert chunks.value <= exact.value + 1e-9
        check_response(oracle, block, prices, None, chunks)


def test_above_hides_only_what_is_not_wanted(medium):
    oracle = OasisServers(medium)
    prices = 3e-2 / np.maximum(oracle.rows.capacity, 1.0)
    for block in range(20):
        response = oracle.best_response(block, prices)
        same = oracle.best_response(block, prices, above=response.value - 1e-6)
        assert same.value == response.value
        assert (same.rows == response.rows).all()
        assert oracle.best_response(block, prices, above=response.value) is None


def test_ties_go_to_the_first_servers_and_the_earliest_end(medium):
    oracle = OasisServers(medium)
    response = oracle.best_response(0, np.zeros(oracle.rows.size))
    servers = response.plan.workers.servers[response.plan.workers.slots == response.plan.end]
    assert servers.min() == 0
    assert (np.diff(servers) > 0).all()
    job = medium.jobs[0]
    most = medium.most_workers(job)
    assert response.plan.end == job.arrival + -(-medium.work_of(job) // most) - 1
