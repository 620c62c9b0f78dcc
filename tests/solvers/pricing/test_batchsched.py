"""The pricing oracles against the model of the same block, enumeration and a slow search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.solvers.kernels.placement import Window, best_host, greedy_host
from hindsched.solvers.pricing.base import build_oracle
from hindsched.solvers.pricing.batchsched.list_schedule import as_solution, improved_list_schedule
from hindsched.solvers.pricing.batchsched.oracle import ServerOracle
from hindsched.solvers.pricing.batchsched.search import ScheduleSearch
from hindsched.solvers.subproblem import model_response
from tests.brute_force.batchsched import cheapest_placement, placements
from tests.strategies.batchsched import tiny_instances

EXAMPLES = {"derandomize": True, "database": None, "deadline": None}
G1 = {"omega": [[3, 2], [2, 4]], "delta": [[0, 1], [2, 5]]}
G2 = {"omega": [[1, 3], [3, 2]], "delta": [[4, 3], [0, 5]]}


def place(problem, kernel, *budget):
    omega, delta, e, z = (
        np.array(problem[key], dtype=float) for key in ("omega", "delta", "e", "z")
    )
    fits = np.where(e > 0, np.floor(omega / np.where(e > 0, e, 1)), 99).min(axis=1)
    cost = delta @ e
    order = np.argsort(cost, kind="stable")
    ratio = problem["b"] / problem["B"]
    room = fits.astype(np.int64)
    window = Window(omega, room, cost, order, delta @ z)
    return kernel(problem["N"], window, e, z, ratio, *budget)[0]


def test_g1_and_g2():
    more = {"e": [1, 1], "z": [0, 2], "b": 1, "B": 1, "N": 2}
    for known, greedy in ((G1, 22), (G2, np.inf)):
        problem = {**known, **more}
        assert cheapest_placement(problem) == 18
        assert place(problem, best_host, 1e9) == 18
        assert place(problem, greedy_host, 1e9) == greedy


@settings(max_examples=300, **EXAMPLES)
@given(st.data())
def test_placement_is_exact_and_algorithm_4_never_cheaper(data):
    servers = data.draw(st.integers(2, 3))
    pair = st.lists(st.integers(0, 4), min_size=2, max_size=2)
    problem = {
        "omega": [data.draw(pair) for _ in range(servers)],
        "delta": [data.draw(pair) for _ in range(servers)],
        "e": [1, data.draw(st.integers(0, 2))], "z": [data.draw(st.integers(0, 1)), 1],
        "b": data.draw(st.integers(1, 2)), "B": data.draw(st.integers(1, 2)),
        "N": data.draw(st.integers(1, 3)),
    }  # fmt: skip
    exact = place(problem, best_host, 1e9)
    assert exact == cheapest_placement(problem)
    assert place(problem, greedy_host, 1e9) >= exact


def slow_best(instance, job, prices, residual, slots):
    """Cheapest w (t + d) + prices x use over raw decisions that fit what is left."""
    best = np.inf
    for d, use in placements(instance, job):
        need = np.array(use)
        for start in range(job.arrival, slots - d + 2):
            window = slice(start - 1, start - 1 + d)
            if np.all(need[:, :, None] <= residual[:, :, window] + 1e-9):
                paid = float((need[:, :, None] * prices[:, :, window]).sum())
                best = min(best, job.weight * (start + d) + paid)
    return best


@settings(max_examples=60, **EXAMPLES)
@given(tiny_instances(num_jobs=1), st.integers(0, 10**6), st.booleans())
def test_oracle_equals_raw_decisions_and_the_model(instance, seed, stepwise):
    slots = 9
    random = np.random.default_rng(seed)
    oracle = ServerOracle(instance, None, slots)
    shape = (*instance.server_capacity.shape, slots)
    prices = random.choice([0.0, 0.0, 0.5, 1.0, 3.0], shape)
    used = random.choice([0, 0, 1], shape)
    if stepwise:  # prices and free capacity that change seldom, as booked schedules leave them
        prices, used = (np.repeat(values[:, :, ::3], 3, axis=2) for values in (prices, used))
    full = np.repeat(instance.server_capacity[:, :, None], slots, axis=2)
    residual = np.maximum(full - used, 0)
    job = instance.jobs[0]
    expected = slow_best(instance, job, prices, residual, slots)
    found = oracle.best_response(0, prices.ravel(), residual.ravel())
    by_model = model_response(oracle, 0, prices.ravel(), residual.ravel())
    if found is None:
        assert np.isinf(expected)
        assert by_model is None
        return
    assert found.value == pytest.approx(expected)
    assert by_model.value == pytest.approx(expected)
    paid = prices.ravel()[found.rows] @ found.amounts
    assert found.value == pytest.approx(found.objective + paid)
    assert np.all(residual.ravel()[found.rows] >= found.amounts - 1e-9)
    outside = job.weight * (slots + 2)
    alone = slow_best(instance, job, prices, full, slots)
    assert oracle.best_response(0, prices.ravel()).value == pytest.approx(min(alone, outside))


@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
def test_starts_skipped_between_changes_are_no_better(architecture):
    instance = generate("small", 4, jobs=5, architecture=architecture)
    search = ScheduleSearch(instance, 40, 4)
    random = np.random.default_rng(1)
    for job in instance.jobs:
        index = search.index(job)
        skipping = search.cheapest(index, rate=0.5)
        search.state.changes[:] = True
        every = search.cheapest(index, rate=0.5)
        assert skipping.cost == pytest.approx(every.cost)
        assert skipping.start == every.start
        search.book(skipping)
        servers = np.arange(len(instance.servers))
        shape = (skipping.duration, len(servers), len(instance.resources))
        search.set_prices(skipping.start, skipping.last, servers, random.random() * np.ones(shape))
        search.reset(search.residual.copy(), search.prices.copy())


def test_layouts_bound_the_optimum_and_read_solutions():
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        instance = generate("small", 2, jobs=5, architecture=architecture)
        solution = as_solution(instance, improved_list_schedule(instance, insertions=20))
        for rows in ("cluster", "buckets", "servers"):
            oracle = build_oracle(instance, rows=rows)
            prices = np.linspace(0.0, 0.01, oracle.rows.size)
            values, use = oracle.block_values(prices)
            assert oracle.bound(prices) <= solution.objective()
            responses = [oracle.best_response(j, prices) for j in range(len(instance.jobs))]
            assert values == pytest.approx([response.value for response in responses])
            total = np.zeros(oracle.rows.size)
            for response in responses:
                np.add.at(total, response.rows, response.amounts)
            assert use == pytest.approx(total)
            read = oracle.use_of(solution)
            assert sum(r.objective for r in read) == pytest.approx(solution.objective())
            total[:] = 0
            for response in read:
                np.add.at(total, response.rows, response.amounts)
            assert np.all(total <= oracle.rows.capacity + 1e-6)
            assert (
                oracle.prices_on_servers(prices).size
                == build_oracle(instance, rows="servers").rows.size
            )
