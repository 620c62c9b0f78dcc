"""The oasis oracle against the subproblem (27), against Algorithm 2 as printed, and as a bound."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.io import read
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.subproblem import model_response
from hindsched.solvers.families.oasis import resources
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search import NeighbourhoodSearch
from tests.brute_force.oasis import deployments, optimum
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


@given(oasis_instances(), st.integers(0, 2**32))
def test_oracle_equals_the_subproblem_at_random_prices_and_residuals(instance, seed):
    oracle = OasisOracle(instance, layout="servers")
    prices, residual = random_prices(oracle, seed)
    for left in (None, residual):
        block = seed % oracle.num_blocks
        response = oracle.best_response(block, prices, left)
        expected = model_response(oracle, block, prices, left)
        assert (response is None) == (expected is None)
        if response is None:
            continue
        assert response.value == pytest.approx(expected.value, abs=1e-6)
        check_response(oracle, block, prices, left, response)


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
    oracle = OasisOracle(instance, layout="servers")
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


@given(oasis_instances(), st.integers(0, 2**32))
def test_bound_is_never_below_the_optimum_and_layouts_agree(instance, seed):
    groups, servers = OasisOracle(instance), OasisOracle(instance, layout="servers")
    rng = np.random.default_rng(seed)
    best = optimum(instance).value
    for scale in (0.0, 0.3, 3.0):
        prices = scale * rng.choice([0.0, 1.0, 2.0], groups.rows.size)
        bound = groups.bound(prices)
        assert bound >= best
        assert bound == pytest.approx(servers.bound(groups.prices_on_servers(prices)), abs=1e-6)
        loose = servers.bound(scale * rng.uniform(0, 2, servers.rows.size))
        assert loose >= best


def test_one_compiled_call_equals_the_single_responses(medium):
    oracle = build_oracle(medium)
    assert oracle.layout == "groups"
    rng = np.random.default_rng(0)
    scale = 10 / np.maximum(oracle.rows.capacity, 1.0)
    for level in (0.0, 0.1, 1.0):
        prices = level * rng.uniform(size=oracle.rows.size) * scale
        values, use = oracle.block_values(prices)
        expected = np.zeros(oracle.rows.size)
        for block, response in enumerate(oracle.responses(prices)):
            assert values[block] == (0 if response is None else response.value)
            if response is not None:
                np.add.at(expected, response.rows, response.amounts)
        assert use == pytest.approx(expected)


def test_prices_that_cannot_be_written_compile_nothing_anew(medium):
    oracle = build_oracle(medium)
    prices = np.full(oracle.rows.size, 1e-3)
    kernels = (resources.best_schedules, resources.best_schedule, resources.place_schedule)
    found = []
    for _ in range(2):
        values, use = oracle.block_values(prices)
        found.append((values.tolist(), use.tolist(), oracle.best_response(0, prices).value))
        found.append({kernel: len(kernel.signatures) for kernel in kernels})
        prices.flags.writeable = False
    assert found[:2] == found[2:]


def test_above_hides_only_what_is_not_wanted(medium):
    oracle = OasisOracle(medium, layout="servers")
    prices = 3e-2 / np.maximum(oracle.rows.capacity, 1.0)
    for block in range(20):
        response = oracle.best_response(block, prices)
        same = oracle.best_response(block, prices, above=response.value - 1e-6)
        assert same.value == response.value
        assert (same.rows == response.rows).all()
        assert oracle.best_response(block, prices, above=response.value) is None


def test_ties_go_to_the_first_servers_and_the_earliest_end(medium):
    oracle = OasisOracle(medium, layout="servers")
    response = oracle.best_response(0, np.zeros(oracle.rows.size))
    servers = response.plan.workers.servers[response.plan.workers.slots == response.plan.end]
    assert servers.min() == 0
    assert (np.diff(servers) > 0).all()
    job = medium.jobs[0]
    most = medium.most_workers(job)
    assert response.plan.end == job.arrival + -(-medium.work_of(job) // most) - 1


def test_use_of_a_solution_adds_up_in_both_layouts(medium):
    search = NeighbourhoodSearch(build_oracle(medium, rows="servers"))
    search.construct()
    solution = search.solution()
    assert solution.violations() == []
    for layout in ("groups", "servers"):
        oracle = OasisOracle(medium, layout=layout)
        found = oracle.use_of(solution)
        use = np.zeros(oracle.rows.size)
        for response in found:
            if response is not None:
                np.add.at(use, response.rows, response.amounts)
        assert (use <= oracle.rows.capacity * (1 + 1e-9)).all()
        total = sum(response.objective for response in found if response is not None)
        assert total == pytest.approx(solution.objective())


def test_bad_use_is_refused(medium):
    oracle = build_oracle(medium)
    with pytest.raises(ValueError, match="must not be negative"):
        oracle.bound(np.full(oracle.rows.size, -1.0))
    with pytest.raises(InputError, match="rows"):
        build_oracle(medium, rows="racks")
    response = oracle.best_response(0, np.zeros(oracle.rows.size))
    with pytest.raises(TypeError, match="servers"):
        oracle.assignments(0, response)


def test_tables_ask_for_the_memory_that_they_take_and_grow_as_needed(medium, monkeypatch):
    asked = []
    monkeypatch.setattr(resources, "check_memory", lambda what, need: asked.append(need))
    oracle = OasisOracle(medium)
    prices = 3e-2 / np.maximum(oracle.rows.capacity, 1.0)
    order = sorted(range(len(medium.jobs)), key=lambda j: medium.work_of(medium.jobs[j]))
    sizes = []
    for block in (order[0], order[-1], order[3], order[-1]):
        response = oracle.best_response(block, prices)
        alone = OasisOracle(medium).best_response(block, prices)
        assert response.value == alone.value
        assert response.rows.tolist() == alone.rows.tolist()
        scratch = oracle._scratch
        sizes.append(scratch.table.nbytes + scratch.costs.nbytes)
        task = oracle.block(block).task
        assert scratch.table.shape == (medium.horizon + 1, scratch.table.shape[1])
        assert scratch.table.shape[1] > task.total
        assert scratch.costs.shape[1] >= task.needed.size
    assert sizes[0] < sizes[1] == sizes[2] == sizes[3]
    assert asked[-1] == pytest.approx(sizes[3], rel=0.01)
    assert len(asked) < 4 + 4 * 2 + 1


@given(oasis_instances(), st.integers(0, 2**32))
def test_the_most_that_a_job_runs_is_what_servers_hold(instance, seed):
    """Workers and PSs of a block, from the definition: on groups and on servers."""
    for layout in ("groups", "servers"):
        oracle = OasisOracle(instance, layout=layout)
        for number, job in enumerate(instance.jobs):
            block = oracle.block(number)
            held = [moves for moves in deployments(instance, job) if sum(moves[0])]
            most = max((sum(y) for y, _ in held), default=0)
            assert block.task.needed.size - 1 >= most
            rooms = {}
            for side, servers, demand in (
                ("worker", instance.worker_servers, job.worker),
                ("ps", instance.ps_servers, job.ps),
            ):
                rooms[side] = sum(
                    min(
                        int(Fraction(str(server.capacity.get(kind, 0))) / Fraction(str(need)))
                        for kind, need in demand.items() if need
                    )
                    for server in servers
                )  # fmt: skip
            assert most <= min(job.chunks, rooms["worker"])
            for count in range(block.task.needed.size):
                ps = block.task.needed[count]
                assert ps <= rooms["ps"]
                assert count <= rooms["worker"]
