"""Several threads search one plan of batchsched: it fits, it is never worse, and all follow it."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers import side_by_side as module
from hindsched.solvers.kernels.batchsched.window_plan import book
from hindsched.solvers.methods.batchsched.level import improve_together
from hindsched.solvers.methods.batchsched.search import search_of
from hindsched.solvers.pricing.base import build_oracle
from hindsched.solvers.side_by_side import side_by_side

RING = {"architecture": "ring-allreduce"}


def one_after_the_other(work):
    """Three calls without threads, the last one first: the others have nothing left to try."""
    return [work(at) for at in (2, 1, 0)][::-1]


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


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("of_kinds", [False, True])
def test_threads_move_one_plan_and_all_follow_it(changes, of_kinds):
    found = search(changes, 3)
    levels, values, leaders = found._kinds if of_kinds else found._reals, set(), set()
    for round_ in range(80):
        before = levels[0].value, levels[0].least
        words = np.random.default_rng(round_).integers(1, 2**63, 3, dtype=np.uint64)
        tried = improve_together(levels, 20, 1e5, words, one_after_the_other)
        first = levels[0]
        assert 1 <= tried <= 20  # the first that ends, ends the others
        assert first.least == min(*before, first.value)
        assert cost(first, first.kept) == pytest.approx(first.least)
        for each in levels:
            check(each)
        others = [each.value for each in levels[1:] if each.origin is first.origin]
        assert others == [first.value] * len(others)
        assert len(others) == 2 or first.value != before[0]
        values.add(first.value)
        leaders.add(id(first))
    assert len(values) > 5
    assert len(leaders) > 1


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("servers", [48, 3])
def test_schedules_of_threads_fit_and_are_never_worse(changes, servers):
    found = search(changes, 2, servers=servers)
    values = [found.objective]
    for _ in range(3):
        asked = itertools.count()
        found.improve(lambda asked=asked: next(asked) >= 150)
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


def test_without_room_for_a_thread_calls_are_made_one_after_the_other(monkeypatch):
    class Full(ThreadPoolExecutor):
        def submit(self, *_):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "ThreadPoolExecutor", Full)
    with side_by_side(3) as together:
        assert together(lambda at: at) == [0, 1, 2]
