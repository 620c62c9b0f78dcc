"""The pricing oracles against the model of the same block, enumeration and a slow search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.batchsched.modes import modes
from hindsched.models.windows.sets import row_use
from hindsched.solvers.door.subproblem import model_response
from hindsched.solvers.families.batchsched import oracle_search as search_module
from hindsched.solvers.families.batchsched.list_schedule import (
    ListScheduler,
    as_solution,
    list_schedule,
    weighted_completion,
)
from hindsched.solvers.families.batchsched.oracle import ServerOracle
from hindsched.solvers.families.batchsched.oracle_search import ScheduleSearch, most_workers
from hindsched.solvers.kernels.placement import Window, best_host, greedy_host
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force.batchsched import cheapest_placement, placements
from tests.strategies.batchsched import instance, tiny_instances

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


@pytest.mark.parametrize("rows", ["servers", "cluster", "preemptive"])
@pytest.mark.parametrize("architecture", [PARAMETER_SERVER, RING_ALLREDUCE])
def test_a_gpu_that_no_worker_can_use_is_not_paid_for(architecture, rows):
    """Workers of 2 GPUs on a server of 3: two jobs of a slot end at 2 + 3, and prices prove it."""
    job = {"arrival": 1, "weight": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
           "gradient_mb": 0.0, "minibatch_slots": [1.0]}  # fmt: skip
    own = {"update_slots": [0.0]} if architecture == PARAMETER_SERVER else {"reduce_slots": 0.0}
    inst = instance(architecture, [(3, 9)], [(2, 1)], [1], [job | own] * 2)
    oracle = build_oracle(inst, "preemptive" if rows == "preemptive" else None, rows=rows)
    prices = np.zeros(oracle.rows.size)
    prices[0] = 0.5
    found = oracle.bound(prices)
    assert found == pytest.approx(2 + 3)


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
    more = ((0, 0), (0, 0), (0, min(d for d, _ in placements(instance, job))))
    wide = np.pad(prices, more), np.pad(full, more, "edge")  # slots behind the priced ones are free
    alone = slow_best(instance, job, *wide, slots + more[2][1])
    assert oracle.best_response(0, prices.ravel()).value == pytest.approx(alone)


def test_layouts_bound_the_optimum_and_read_solutions():
    for architecture in (PARAMETER_SERVER, RING_ALLREDUCE):
        instance = generate("small", 2, jobs=5, architecture=architecture)
        solution = as_solution(instance, list_schedule(instance))
        for rows in ("cluster", "servers"):
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


def random_state(instance, slots, random):
    """Free capacities and prices, shape (slots, servers, resources)."""
    full = np.repeat(instance.server_capacity[None], slots, axis=0)
    free = np.maximum(full - random.choice([0, 0, 1], full.shape), 0)
    return free, random.choice([0.0, 0.5, 1.0, 3.0], full.shape)


def priced_schedules(instance, job, free, prices, first, last):
    """(completion, paid) of every schedule in slots `first` .. `last` that fits what is free."""
    for d, use in placements(instance, job):
        need = np.array(use)
        for start in range(max(1, first), last - d + 2):
            window = slice(start - 1, start - 1 + d)
            if np.all(need <= free[window] + 1e-9):
                yield start + d, float((need * prices[window]).sum())


@settings(max_examples=60, **EXAMPLES)
@given(tiny_instances(num_jobs=2), st.integers(0, 10**6))
def test_a_search_finds_the_cheapest_of_all_schedules_and_keeps_its_books(instance, seed):
    slots, random = 8, np.random.default_rng(seed)
    free, prices = random_state(instance, slots, random)
    search = ScheduleSearch(instance, slots, most_workers(instance.jobs))
    job, other = instance.jobs
    index = search.index(job)
    alone = priced_schedules(instance, job, full_of(search), 0 * prices, 1, slots)
    found = search.cheapest(index)
    assert (found and found.completion) == min((t for t, _ in alone), default=None)
    search.reset(free, prices)
    first, last = sorted(random.integers(1, slots + 3, 2).tolist())
    for rate in (0.0, 0.7):
        known = [
            rate * t + paid
            for t, paid in priced_schedules(instance, job, free, prices, first, min(last, slots))
        ]
        best = min(known, default=np.inf)
        found = search.cheapest(index, rate=rate, earliest=first, last=last)
        assert (found is None) == (not known)
        greedy = search.cheapest(index, rate=rate, earliest=first, last=last, greedy=True)
        assert greedy is None or greedy.cost >= best - 1e-9
        if found is None:
            continue
        assert found.cost == pytest.approx(best)
        assert first <= found.start <= found.last == found.completion - 1 <= last
        dear = search.cheapest(index, rate=rate, limit=best - 1e-6, earliest=first, last=last)
        assert dear is None
        again = search.cheapest(index, rate=rate, limit=best + 1e-6, earliest=first, last=last)
        assert again.cost == pytest.approx(best)
        # A schedule is what its row says; booked it is gone, given back all is as before.
        assert search.fits(found)
        use = search.use(found)
        assert use.tolist() == row_use(instance, found.row()).tolist()
        before = search.residual.copy()
        search.book(found)
        window = slice(found.start - 1, found.last)
        taken = before - search.residual
        assert taken[window] == pytest.approx(np.repeat(use[None], found.duration, axis=0))
        taken[window] = 0
        assert not taken.any()
        left = np.maximum(free, 0).astype(float)
        left[window] -= use
        rest = [
            rate * t + paid for t, paid in priced_schedules(instance, other, left, prices, 1, slots)
        ]
        second = search.cheapest(search.index(other), rate=rate)
        assert (second is None) == (not rest)
        assert second is None or second.cost == pytest.approx(min(rest))
        later = found.shifted(1)
        assert (later.start, later.last) == (found.start + 1, found.last + 1)
        twice = np.all(use <= left[window].min(axis=0) + 1e-9)
        assert search.fits(found) == bool(twice)
        search.book(found, sign=-1.0)
        assert search.residual == pytest.approx(before)


def test_a_search_asks_for_the_memory_that_it_takes(monkeypatch):
    asked = []
    monkeypatch.setattr(
        search_module, "check_memory", lambda what, need: asked.append((what, need))
    )
    instance = generate("small", 4, jobs=5)
    search = ScheduleSearch(instance, 40, 1)
    state = search.state
    taken = sum(part.nbytes for part in (state.minima, state.prefix, search.prices))
    ((what, need),) = asked
    assert what == "a search over 40 slots"
    assert taken <= need <= 1.5 * taken


def full_of(search):
    """Everything is free."""
    return np.repeat(search.capacity[None], search.slots, axis=0)


@settings(max_examples=30, **EXAMPLES)
@given(tiny_instances(num_jobs=4), st.integers(0, 10**6))
def test_lists_place_every_job_as_early_as_it_can_be(instance, seed):
    scheduler = ListScheduler(instance)
    random = np.random.default_rng(seed)
    tables = [list(modes(instance, job).tuples()) for job in instance.jobs]
    shortest = [min(d for *_, d in table) for table in tables]
    assert scheduler.fastest.tolist() == shortest
    density = [job.weight / d for job, d in zip(instance.jobs, shortest, strict=True)]
    assert scheduler.density_order() == sorted(range(4), key=lambda j: -density[j])
    order = random.permutation(4).tolist()
    slots = 40
    for multiple in (0.0, 2.0):
        prices = random.choice([0.0, 1.0], (5, *instance.server_capacity.shape))
        run = scheduler.run(order, prices, multiple)
        free = np.repeat(instance.server_capacity[None].astype(float), slots, axis=0)
        spread = np.zeros_like(free)
        spread[:5] = multiple * prices
        for position in order:
            job = instance.jobs[position]
            best = min(
                job.weight * t + paid
                for t, paid in priced_schedules(instance, job, free, spread, job.arrival, slots)
            )
            placed = run[job.name]
            assert placed.cost == pytest.approx(best)
            free[placed.start - 1 : placed.last] -= row_use(instance, placed.row())
        assert as_solution(instance, run).violations() == []
    value = weighted_completion(instance, list_schedule(instance))
    assert value == weighted_completion(instance, scheduler.run(scheduler.density_order()))


@settings(max_examples=40, **EXAMPLES)
@given(tiny_instances(), st.integers(0, 3), st.sampled_from([0.0, 1.5]))
def test_slots_that_grow_change_no_list(instance, seed, multiple):
    random = np.random.default_rng(seed)
    order = list(random.permutation(len(instance.jobs)))
    prices = random.uniform(0, 2, (4, *instance.server_capacity.shape))
    growing, at_once = ListScheduler(instance), ListScheduler(instance)
    growing._slots, at_once._slots = 1, 200
    few, many = (each.run(order, prices, multiple) for each in (growing, at_once))
    assert as_solution(instance, few).violations() == []
    if multiple == 0:  # at prices a job may be better off in slots that did not exist
        assert solution_rows(instance, few) == solution_rows(instance, many)


def solution_rows(instance, schedules):
    return as_solution(instance, schedules).assignments()
