"""Several threads search one plan of batchsched: it fits, it is never worse, and all follow it."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers import side_by_side as module
from hindsched.solvers.kernels.batchsched.window_plan import book
from hindsched.solvers.methods.batchsched.level import TOGETHER, Agreement, improve_together
from hindsched.solvers.methods.batchsched.search import search_of
from hindsched.solvers.methods.duel import Duel
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.pricing.base import build_oracle
from hindsched.solvers.side_by_side import side_by_side
from hindsched.solvers.work import counting, now, spend

RING = {"architecture": "ring-allreduce"}


def search(changes, threads, **settings):
    """A search of a cluster on which jobs wait for each other."""
    sizes = {"jobs": 40, "servers": 48, "capacity_fraction": None} | settings
    instance = hs.generate("batchsched", "paper", seed=0, **sizes, **changes)
    oracle = build_oracle(instance, rows="servers")
    found = search_of(oracle, np.zeros(oracle.rows.size), seed=3)
    found.construct()
    found.threads = threads
    return found


def cost(level, plan):
    """What a plan costs."""
    return level.every.weight @ (plan.what[:, 2] + 1)


def check(level):
    """A level's cluster is what its plan leaves free, and its value what the plan costs."""
    if level.plan is None:
        return
    plan, cluster = level.nothing()
    for table, kept in zip(plan, level.plan, strict=True):
        table[:] = kept
    for job in range(len(plan.what)):
        book(1, job, plan, cluster, level.every)
    for mine, anew in zip(level.cluster, cluster, strict=True):
        assert (mine == anew).all()
    assert cluster.free.min() >= 0
    assert level.value == pytest.approx(cost(level, level.plan))


def words(seed):
    """What three threads draw from."""
    return np.random.default_rng(seed).integers(1, 2**63, 3, dtype=np.uint64)


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("of_kinds", [False, True])
def test_threads_move_one_plan_and_all_follow_it(changes, of_kinds):
    found = search(changes, 3)
    levels, values, leaders = found._kinds if of_kinds else found._reals, set(), set()
    with side_by_side(3) as together:
        for round_ in range(40):
            before = levels[0].value, levels[0].least
            tried = improve_together(levels, 5, lambda _: 1e5, words(round_), together)
            first = levels[0]
            assert 5 <= tried < 3 * 5 * (TOGETHER + 1)
            assert first.least <= min(*before, first.value)
            assert cost(first, first.kept) == pytest.approx(first.least)
            for each in levels:
                check(each)
            for each in levels[1:]:
                if each.origin is first.origin:
                    assert each.value == first.value
                    assert (each.plan.workers == first.plan.workers).all()
            values.add(first.value)
            leaders.add(id(first))
    assert len(values) > 5
    assert len(leaders) > 1


def test_of_two_plans_that_change_at_once_the_first_is_agreed_upon_and_the_best_is_kept():
    found = search({}, 3)
    levels = list(found._reals)
    agreement = Agreement(levels)
    begun, least = agreement.agreed, levels[0].least
    for at, level in enumerate(levels):
        if level.origin is not begun:
            level.follow(begun.plan, begun.value, begun)
        level.least = least
        for seed in itertools.count(10 * at):
            level.improve(5, 1e5, words(seed)[:1], agreement.over[at])
            if level.value != begun.value:
                break
    values = [level.value for level in levels]
    assert len({*values, begun.value}) == 4
    for level in levels[::-1]:
        agreement.offer(level, begun)
    last = levels[2]
    assert agreement.agreed.level is last
    assert agreement.agreed.value == values[2]
    assert (agreement.agreed.plan.what == last.plan.what).all()
    assert agreement.least == min(least, *values)
    assert all(over == [1] for over in agreement.over)
    agreement.work(0, 5, lambda _: 0.0, words(0)[:1])
    check(levels[0])
    assert levels[0].value <= agreement.agreed.value
    agreement.end()
    assert levels[0] is agreement.agreed.level
    assert cost(levels[0], levels[0].kept) == pytest.approx(agreement.least)


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("servers", [48, 3])
def test_schedules_of_threads_fit_and_are_never_worse(changes, servers):
    found = search(changes, 2, servers=servers)
    values = [found.objective]
    for _ in range(3):
        asked = itertools.count()
        found.improve(lambda asked=asked: next(asked) >= 15)
        solution = found.solution()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(found.objective)
        values.append(found.objective)
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
    check(found._real)


def test_calls_are_made_at_the_same_time():
    meet = threading.Barrier(3, timeout=60)
    with side_by_side(3) as together:
        assert [at for at, _ in together(lambda at: (at, meet.wait()))] == [0, 1, 2]
    with side_by_side(1) as together:
        assert together(lambda at: at) == [0]


def test_calls_know_what_their_caller_is_in_the_middle_of():
    with counting(), side_by_side(3) as together:
        spend(500)
        assert together(lambda _: now()) == [now()] * 3


def test_without_room_for_a_thread_calls_are_made_one_after_the_other(monkeypatch):
    class Full(ThreadPoolExecutor):
        def submit(self, *_):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "ThreadPoolExecutor", Full)
    with side_by_side(3) as together:
        assert together(lambda at: at) == [0, 1, 2]


class Members:
    """Two who search until they are ended, and find nothing."""

    size, objective, is_running = 3, None, True

    def solution(self):
        return None

    offer = exchange = lambda *_: None

    def end(self):
        self.is_running = False


def duel_of(family):
    instance = hs.generate(family, jobs=6, seed=1)
    duel = Duel(instance, instance.check_formulation(None), SolveOptions(time_limit=60), Event())
    duel.run(0.0)
    duel._team = Members()
    return duel


def test_where_the_bound_hardly_moves_threads_search_in_place_of_processes():
    duel = duel_of("batchsched")
    before = duel.search.objective
    assert duel._search_on_threads()
    assert not duel._team.is_running
    assert duel.search.threads == 3
    assert not duel._search_on_threads()
    asked = itertools.count()
    duel.search.improve(lambda: next(asked) >= 20)
    assert duel.search.objective <= before
    other = duel_of("oasis")
    assert not other._search_on_threads()
    assert other._team.is_running


def test_the_search_follows_the_prices_of_a_bound_that_converged_meanwhile(monkeypatch):
    """It followed the first ones: no turn in which the bound gains much ends with a search."""
    duel = duel_of("batchsched")
    best, seen = duel.bounding.best, []
    bounding = SimpleNamespace(best=SimpleNamespace(bound=best.bound, prices=best.prices),
                               converged=False)  # fmt: skip
    monkeypatch.setattr(duel, "bounding", bounding)

    def bound(_):
        bounding.best = SimpleNamespace(bound=1.5 * best.bound, prices=1.5 * best.prices)
        bounding.converged = True

    monkeypatch.setattr(duel, "_bound_until", bound)
    monkeypatch.setattr(duel.search, "set_prices", seen.append)
    monkeypatch.setattr(duel, "_search_until", lambda _: None)
    stops = itertools.count()
    monkeypatch.setattr(duel, "_stop", lambda _: next(stops) >= 3)
    duel._take_turns(60.0, 1.0)
    (given,) = seen
    assert np.array_equal(given, duel.oracle.prices_on_servers(1.5 * best.prices))


def test_a_move_that_only_changes_servers_is_told_too():
    """It makes the room in which another job ends sooner: lost, two threads searched like one."""
    (level, *_) = search(RING, 2)._reals
    seen = False
    for seed in range(400):
        before, value = [table.copy() for table in level.plan], level.value
        tried = level.improve(50, 0.0, words(seed)[:1], np.zeros(1, dtype=np.int64))
        pairs = zip(before, level.plan, strict=True)
        assert level.is_changed == any((old != new).any() for old, new in pairs)
        assert level.is_changed or tried == 50
        seen |= level.is_changed and level.value == value
    assert seen
    check(level)
