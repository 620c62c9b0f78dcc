"""The search of batchsched: schedules fit, are never worse, and the best of tiny instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.families.batchsched import kinds as kinds_module
from hindsched.solvers.families.batchsched import level as level_module
from hindsched.solvers.families.batchsched import search as module
from hindsched.solvers.families.batchsched.methods import find_incumbent
from hindsched.solvers.families.batchsched.search import MOST_KINDS, WindowSearch, search_of
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search.neighbourhood import NeighbourhoodSearch
from hindsched.solvers.search.registry import search_of as search_of_family
from tests.brute_force.batchsched import optimum
from tests.solvers.booking import book

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
@pytest.mark.parametrize("seed", range(8))
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
        patched.setattr(level_module, "insert_all", lambda *_: (0, 0.0))
        found.construct()
    assert found.is_complete
    listed = found.solution()
    assert (listed.violations(), listed.objective()) == ([], pytest.approx(found.objective))
    assert found.improve(after(100))
    assert found.solution().objective() < listed.objective()


def test_what_is_free_is_the_same_after_many_moves():
    instance = hs.generate("batchsched", jobs=12, seed=1, servers=4, horizon=8)
    found = search(instance, 1, find_incumbent(instance, "modes"))
    found.improve(after(120))
    (seat,) = found._real.seats
    free, room = (array.copy() for array in seat.cluster[:2])
    plan, cluster = found._real.nothing()
    for table, kept in zip(plan, seat.plan, strict=True):
        table[:] = kept
    for job in range(len(instance.jobs)):
        book(1, job, plan, cluster, found._real.every)
    assert (cluster.free == free).all()
    assert (cluster.room == room).all()
    assert (cluster.total == room.sum(axis=2)).all()
    assert free.min() >= 0


@pytest.mark.parametrize("changes", [{}, RING])
def test_tiny_instances_are_solved(changes):
    hits = 0
    for seed in range(8):
        instance = hs.generate(
            "batchsched", jobs=2, servers=2, seed=seed, horizon=3, chunks=[2, 3], **changes
        )
        found = search(instance, seed, find_incumbent(instance, "modes"))
        found.improve(after(60))
        best = optimum(instance)
        assert found.objective >= best - 1e-9
        hits += found.objective <= best + 1e-9
    assert hits >= 7


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


def test_without_a_limit_no_cycle_is_the_last():
    instance = hs.generate("batchsched", jobs=4, seed=3, servers=2, horizon=4)
    found = search(instance, 5)
    found.construct()
    found.improve(after(400))
    assert not found._is_last
    assert found._cycle == 4000


def test_the_same_seed_draws_the_same():
    instance = hs.generate("batchsched", jobs=15, seed=3, servers=4, horizon=8)
    values = []
    for _ in range(2):
        found = search(instance, 5)
        found.construct()
        found.improve(after(50))
        values.append(found.solution().to_dict()["jobs"])
    assert values[0] == values[1]


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


def crowded(**changes):
    """Servers of few kinds on which jobs wait for each other."""
    return hs.generate(
        "batchsched", "paper", jobs=40, seed=0, servers=48, capacity_fraction=None, **changes
    )


@pytest.mark.parametrize("changes", [{}, RING])
def test_a_kind_of_servers_holds_what_its_servers_hold(changes, monkeypatch):
    """Exactly that where a server is divided among workers of one type, else a little more."""
    for whole in (1.0, kinds_module.WHOLE):
        monkeypatch.setattr(kinds_module, "WHOLE", whole)
        found = search(crowded(**changes))
        real, kinds = found._real, found._kinds
        _, kind = np.unique(real.capacity, axis=0, return_inverse=True)
        servers = real.nothing()[1].room[:, 0]
        summed = [servers[:, kind.ravel() == each].sum(axis=1) for each in range(kind.max() + 1)]
        room = kinds.nothing()[1].room[:, 0].T
        assert (room == summed).all() if whole == 1.0 else (room >= summed).all()
        assert ((room > 0) == (np.array(summed) > 0)).all()
        assert (kinds.every.loss >= 0).all()


@pytest.mark.parametrize("changes", [{}, RING])
def test_plans_on_kinds_of_servers_become_schedules(changes, monkeypatch):
    instance = crowded(**changes)
    found = search(instance, 1)
    found.construct()
    assert found._is_of_kinds
    begun = found._kinds.least
    while found._is_of_kinds or found._tries > 0:
        found.improve(after(1))
    assert found.iterations == 590  # two fifths of the first cycle, and all tries to realise it
    assert found._kinds.least < begun
    assert found.solution().violations() == []
    assert found._real.has_plan
    nothing = found._kinds.nothing()[0]  # no job has a mode there
    for table, none in zip(found._kinds.kept, nothing, strict=True):
        table[:] = none
    found._tries = 1
    found._realise(lambda work: [work(0)])
    assert found._real.least == found.objective


def test_servers_that_all_differ_are_no_kinds():
    found = search(hs.generate("batchsched", jobs=3, seed=0, servers=1, horizon=4))
    assert found._kinds is None


def test_plans_on_kinds_of_servers_lead_to_better_schedules(monkeypatch):
    instance = crowded()
    totals = []
    for most in (MOST_KINDS, 0.0):
        monkeypatch.setattr(module, "MOST_KINDS", most)
        total = 0.0
        for seed in range(3):
            found = search(instance, seed)
            found.construct()
            found.improve(after(200))
            total += found.objective
        totals.append(total)
    assert totals[0] < totals[1]


@pytest.mark.parametrize("changes", [{}, RING])
def test_auto_searches_from_a_list_schedule_and_not_twice(changes, monkeypatch):
    instance = hs.generate("batchsched", jobs=6, seed=12, **changes)
    expected = hs.solve(instance, "milp", threads=1).objective
    searched = "hindsched.solvers.families.batchsched.methods.improved_list_schedule"
    monkeypatch.setattr(searched, lambda *_, **__: pytest.fail("searched by insertions"))
    result = hs.solve(instance, threads=1, time_limit=60)
    assert result.objective == expected
    assert result.proof == "certificate"
