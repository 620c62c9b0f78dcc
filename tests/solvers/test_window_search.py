"""The search of batchsched: schedules fit, are never worse, and the best of tiny instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.families.batchsched import search as module
from hindsched.solvers.families.batchsched.methods import find_incumbent
from hindsched.solvers.families.batchsched.search import WindowSearch, search_of
from hindsched.solvers.kernels.batchsched.window_moves import smallest
from hindsched.solvers.kernels.batchsched.window_plan import use_all
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search import NeighbourhoodSearch
from hindsched.solvers.search import search_of as search_of_family
from tests.brute_force.batchsched import optimum

RING = {"architecture": "ring-allreduce"}


def after(calls):
    """Stop after so many questions."""
    asked = itertools.count()
    return lambda: next(asked) >= calls


def search(instance, seed=0, start=None):
    """A search at random prices."""
    oracle = build_oracle(instance, rows="servers")
    prices = np.random.default_rng(seed).exponential(1.0, oracle.rows.size)
    prices *= instance.jobs[0].weight / oracle.rows.capacity.max()
    return search_of(oracle, prices, seed=seed, start=start)


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("seed", range(3))
def test_schedules_fit_and_are_never_worse(changes, seed):
    instance = hs.generate("batchsched", jobs=12, seed=seed, servers=4, horizon=8, **changes)
    start = find_incumbent(instance, "modes")
    found = search(instance, seed, start)
    values = [found.objective]
    assert values == [start.objective()]
    for _ in range(4):
        better = found.improve(after(30))
        solution = found.solution()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(found.objective)
        assert better is (found.objective < values[-1])
        values.append(found.objective)
    assert values == sorted(values, reverse=True)
    built = search(instance, seed)
    built.construct()
    assert built.is_complete
    assert built.solution().violations() == []


@pytest.mark.parametrize("changes", [{}, RING])
def test_where_no_insertion_ends_in_the_priced_slots_a_list_does(changes, monkeypatch):
    """In 2 of 100 small clusters full of jobs there was no schedule to go on from."""
    instance = hs.generate("batchsched", jobs=12, seed=3, servers=4, horizon=8, **changes)
    found = search(instance, 3)
    with monkeypatch.context() as patched:
        patched.setattr(module, "insert_all", lambda *_: (0, 0.0))
        found.construct()
    assert found.is_complete
    listed = found.solution()
    assert (listed.violations(), listed.objective()) == ([], pytest.approx(found.objective))
    assert found.improve(after(100))
    assert found.solution().objective() < listed.objective()


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_free_is_what_whole_numbers_say_after_many_moves(changes, seed):
    """Also where a worker type needs nothing of a resource."""
    instance = hs.generate("batchsched", "paper", seed, jobs=15, servers=12,
                           capacity_fraction=None, **changes)  # fmt: skip
    data = instance.model_dump()
    del data["worker_types"][0]["demand"][instance.resources[1]]
    found = search(type(instance).model_validate(data), seed)
    found.construct()
    found.improve(after(60))
    free, room, total = found._cluster
    jobs, fresh = found._every, found._nothing_taken()
    use_all(found._plan, fresh, jobs)
    assert (fresh.free == free).all()
    assert free.min() >= 0
    expected = np.full(room.shape, 32000)
    for h, m, r in np.ndindex(len(free), *jobs.worker.shape):
        if needed := int(jobs.worker[m, r]):
            expected[m, :, h] = np.minimum(expected[m, :, h], free[h, r].astype(int) // needed)
    assert (room == expected).all()
    assert (total == expected.sum(axis=2)).all()


def test_the_smallest_are_those_of_a_stable_order():
    random = np.random.default_rng(0)
    for _ in range(100):
        keys = random.integers(0, 12, random.integers(1, 40)).astype(float)
        count = int(random.integers(1, len(keys) + 1))
        assert (smallest(keys, count) == np.argsort(keys, kind="stable")[:count]).all()


@pytest.mark.parametrize("changes", [{}, RING])
def test_tiny_instances_are_solved(changes):
    hits = 0
    for seed in range(8):
        instance = hs.generate(
            "batchsched", jobs=2, servers=2, seed=seed, horizon=3, chunks=[2, 3], **changes
        )
        found = search(instance, seed, find_incumbent(instance, "modes"))
        found.improve(after(300))
        best = optimum(instance)
        assert found.objective >= best - 1e-9
        hits += found.objective <= best + 1e-9
    assert hits >= 6


@pytest.mark.parametrize(("seconds", "steps"), [(8990.0, 100), (9000.0, 300)])
def test_the_last_cycle_cools_down_with_the_time_that_is_left(seconds, steps):
    """A second is an iteration, ten a step: cycles of 1,000 and 2,000 before the last."""
    instance = hs.generate("batchsched", jobs=15, seed=3, servers=4, horizon=8)
    oracle = build_oracle(instance, rows="servers")
    begun = []
    found = search_of(
        oracle,
        np.zeros(oracle.rows.size),
        seconds_left=lambda: seconds - sum(each.iterations for each in begun),
    )
    begun.append(found)
    found.construct()
    shares = []
    while found.iterations < seconds:
        found.improve(after(1))
        shares.append(found._share_of_cycle() if found._is_last else -1.0)
    left = seconds - 10 * steps
    assert shares[: steps - 1] + shares[-1:] == [-1.0] * steps
    assert shares[steps - 1 : -1] == pytest.approx(np.arange(0.0, left, 10.0) / left)


def test_better_solutions_are_adopted_and_searched_on():
    instance = hs.generate("batchsched", jobs=12, seed=4, servers=4, horizon=8)
    good = search(instance, 1)
    good.construct()
    good.improve(after(200))
    poor = find_incumbent(instance, "modes")
    found = search(instance, 2, poor)
    assert not found.adopt(poor)
    assert found.adopt(good.solution()) is (good.objective < poor.objective())
    found.improve(after(150))
    assert found.objective <= good.objective
    assert found.solution().violations() == []


def test_jobs_in_pieces_are_searched_by_the_search_of_all_families():
    instance = hs.generate("batchsched", jobs=3, seed=0)
    for formulation, kind in (("modes", WindowSearch), ("preemptive", NeighbourhoodSearch)):
        oracle = build_oracle(instance, formulation, rows="servers")
        assert isinstance(search_of_family(oracle, np.zeros(oracle.rows.size)), kind)


@pytest.mark.parametrize("changes", [{}, RING])
def test_auto_proves_small_optima_by_a_certificate(changes):
    instance = hs.generate("batchsched", jobs=6, seed=12, **changes)
    result = hs.solve(instance, threads=1, time_limit=60)
    assert result.status == "optimal"
    assert result.proof == "certificate"
