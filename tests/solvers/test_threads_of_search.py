"""Several threads search one plan of batchsched: it fits, it is never worse, and all follow it."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

import hindsched as hs
from hindsched.solvers import side_by_side as module
from hindsched.solvers.door.work import counting, now, spend
from hindsched.solvers.families.batchsched.level import TOGETHER, Level
from hindsched.solvers.families.batchsched.search import jobs_of, search_of
from hindsched.solvers.kernels.batchsched.common_plan import Common, agree, take_over
from hindsched.solvers.kernels.batchsched.window_moves import improve
from hindsched.solvers.kernels.batchsched.window_plan import nothing_changed, renew_room, use
from hindsched.solvers.kernels.turns import apart, end_turn, take_turn
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.side_by_side import side_by_side
from tests.solvers.booking import book

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
    """What is free at every seat is what its plan leaves, and the common costs are the plans'."""
    for seat in level.seats:
        plan, cluster = level.nothing()
        for table, mine in zip(plan, seat.plan, strict=True):
            table[:] = mine
        for job in range(len(plan.what)):
            book(1, job, plan, cluster, level.every)
        for mine, anew in zip(seat.cluster, cluster, strict=True):
            assert (mine == anew).all()
        assert cluster.free.min() >= 0
        if seat.version == level.common.version:
            assert same(seat.plan, level.common.plan)
    for plan, costs in zip((level.common.plan, level.kept), level.common.cost, strict=True):
        assert costs == pytest.approx(cost(level, plan))
    assert level.least <= level.common.cost[0]


def same(one, other):
    """Whether two plans are the same."""
    return all((mine == yours).all() for mine, yours in zip(one, other, strict=True))


def words(seed):
    """What three threads draw from."""
    return np.random.default_rng(seed).integers(1, 2**63, 3, dtype=np.uint64)


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("of_kinds", [False, True])
def test_threads_move_one_plan_and_all_follow_it(changes, of_kinds):
    found = search(changes, 3)
    level, values = found._kinds if of_kinds else found._real, set()
    with side_by_side(3) as together:
        for round_ in range(40):
            least = level.least
            tried = level.improve(5, lambda _: 1e5, words(round_), together)
            assert 0 < tried <= 3 * 5 * TOGETHER
            assert level.least <= least
            check(level)
            values.add(float(level.common.cost[0]))
    assert len(values) > 5
    assert all(seat.version > 0 for seat in level.seats)
    level.threads = 1
    level.improve(1, lambda _: 0.0, words(0), lambda work: [work(0)])
    check(level)
    assert level.seats[0].version == level.common.version


def moved(level, seat, draws):
    """Jobs that a seat moved, of which the others know nothing, and what that costs."""
    common, nobody = level.common, np.empty(0, dtype=np.int64)
    take_over(common, seat, nobody, level.every, nothing_changed(len(level.capacity)))
    assert same(seat.plan, common.plan)
    alone = Common(*(copied(plan) for plan in (common.plan, common.kept)),
                   *(table.copy() for table in common[2:]))  # fmt: skip
    prices = level.prices._replace(multiple=np.ones(1))
    while alone.version == common.version:
        alone.over[0] = 0
        word = np.random.default_rng(next(draws)).integers(1, 2**63, 1, dtype=np.uint64)
        improve(1, (1e3, 1e3), alone, seat, prices, level.jobs, word)
    seat.version[:] = common.version
    return np.flatnonzero(alone.changed == alone.version), alone.cost[0] - common.cost[0]


def copied(plan):
    """A copy of a plan."""
    return type(plan)(*(table.copy() for table in plan))


@pytest.mark.parametrize("changes", [{}, RING])
def test_moves_go_together_unless_a_job_was_moved_twice_or_there_is_no_room(changes):
    found, draws, seen = search(changes, 1), itertools.count(), Counter()
    level, changed = found._real, nothing_changed(len(found._real.capacity))
    common, least = level.common, level.least
    for _ in range(150):
        level.threads = 1
        level.threads = 3
        _, one, two = level.seats
        first, gain = moved(level, one, draws)
        second, other = moved(level, two, draws)
        before, cost_before, mine = copied(common.plan), float(common.cost[0]), copied(two.plan)
        version = int(common.version[0])
        assert agree(common, one, first, gain, level.every, changed)
        assert same(common.plan, one.plan)
        assert (np.flatnonzero(common.changed == version + 1) == first).all()
        assert common.cost[0] == pytest.approx(cost_before + gain)
        agreed, least = copied(common.plan), min(least, float(common.cost[0]))
        if agree(common, two, second, other, level.every, changed):
            seen["together"] += 1
            assert common.version == version + 2
            assert common.cost[0] == pytest.approx(cost_before + gain + other)
            assert same(common.plan, two.plan)
            for job in range(40):
                by = mine if job in second else agreed
                assert (common.plan.what[job] == by.what[job]).all()
                assert (common.plan.workers[job] == by.workers[job]).all()
            check(level)
        else:
            seen["twice" if set(first) & set(second) else "no room"] += 1
            assert common.version == version + 1
            assert same(common.plan, agreed)
            for table, old in zip(two.plan, before, strict=True):  # as the search takes it back
                table[second] = old[second]
            if set(first) & set(second):
                assert two.version == version
                assert same(two.plan, before)
            else:
                assert two.version == version + 1
                assert same(two.plan, agreed)
            level.threads = 2
            check(level)
        least = min(least, float(common.cost[0]))
        assert level.least == pytest.approx(least)
        assert common.turn == 0
    assert len(seen) == 3, seen


@pytest.mark.parametrize("scale", [1, 2**40])
def test_a_move_without_room_leaves_the_workers_that_fit_as_they_were(scale):
    """Of a type that needs nothing of what was short, minus infinitely many fit meanwhile."""
    instance = hs.generate("batchsched", "paper", seed=0, jobs=2, servers=1, **RING)
    every = jobs_of(instance)
    shape = every.worker.shape
    needs = np.zeros(shape)
    needs[0, :, 0], needs[0, :, -1] = 2 * scale, 1
    needs[0, 0, 0] = 0
    share = np.divide(1.0, needs, out=np.full(shape, np.inf), where=needs > 0)
    every = every._replace(worker=needs, share=share)
    capacity = np.full((1, shape[2]), 10)
    capacity[0, 0] = 3 * scale
    level = Level(every, capacity, 4)
    level.threads = 2
    level.begin(level.no_plan(), 0.0)
    changed = nothing_changed(1)
    for job, seat in enumerate(level.seats):  # each puts its job where there is room for one
        take_over(level.common, seat, np.zeros(0, dtype=np.int64), every, changed)
        seat.plan.what[job] = 1, 2, 3, -1, -1, 0
        seat.plan.workers[job] = 1
        book(1, job, seat.plan, seat.cluster, every)
    one, two = level.seats
    assert agree(level.common, one, np.array([0]), 1.0, every, changed)
    assert not agree(level.common, two, np.array([1]), 1.0, every, changed)
    use(-1, 1, two.plan, two.cluster, every, changed)
    two.plan.what[1], two.plan.workers[1] = (0, 0, 0, -1, 0, 0), 0
    renew_room(two.cluster, every.share, changed)
    for mine, yours in zip(two.cluster, one.cluster, strict=True):
        assert (mine == yours).all()
    assert (two.cluster.total == two.cluster.room.sum(axis=2)).all()
    assert same(two.plan, one.plan)


def test_threads_that_failed_in_a_move_begin_anew():
    found = search({}, 2)
    level = found._real

    def fail(work):
        level.seats[1].cluster.free[:] = -1.0
        raise MemoryError

    with pytest.raises(MemoryError):
        level.improve(5, lambda _: 0.0, words(0), fail)
    assert level.threads == 2
    with side_by_side(2) as together:
        level.improve(5, lambda _: 1e5, words(1), together)
    check(level)


def test_turns_are_taken_one_after_the_other():
    """A million additions each, of which none is lost."""
    turn, total = apart(np.int64(0)), np.zeros(1)

    @njit(nogil=True)
    def add(times, turn, total):
        for _ in range(times):
            take_turn(turn)
            total[0] += 1
            end_turn(turn)

    add(1, turn, total)
    with side_by_side(3) as together:
        together(lambda _: add(1_000_000, turn, total))
    assert total == 3_000_001
    assert turn == 0


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


def test_a_move_that_only_changes_servers_is_told_too():
    """It makes the room in which another job ends sooner: lost, two threads searched like one."""
    level = search(RING, 1)._real
    common, seen = level.common, False
    for seed in range(400):
        before, value, version = copied(common.plan), float(common.cost[0]), common.version.copy()
        level.improve(1, lambda _: 0.0, words(seed), lambda work: [work(0)])
        differs = not same(before, common.plan)
        assert differs == (common.version == version + 1)
        told = (common.changed == common.version) if differs else np.zeros(40, dtype=bool)
        other = (before.what != common.plan.what).any(axis=1)
        other |= (before.workers != common.plan.workers).any(axis=1)
        assert (told == other).all()
        seen |= differs and common.cost[0] == value
    assert seen
    check(level)
