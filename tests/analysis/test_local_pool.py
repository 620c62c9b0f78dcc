"""Pools that are there before their tasks: they load at once, and share out what is slow."""

import os
import signal
import threading
import time

import pytest

from hindsched.analysis import copied_worker, sweep
from hindsched.analysis.local_pool import LocalPool, balanced
from hindsched.analysis.report.data import one_by_one

PARENT = os.getpid()


@pytest.fixture(autouse=True)
def fresh_workers(monkeypatch):
    """No copies, which a test runner with one thread would get; see `test_copied_worker`."""
    monkeypatch.setattr(copied_worker, "can_be_copied", lambda: False)


def loads():
    os.environ["HINDSCHED_TEST_LOADED"] = "yes"


def fails():
    raise ImportError("absent")


def loaded():
    return os.environ.get("HINDSCHED_TEST_LOADED")


def squared(number):
    return number**2, os.getpid()


def dies_elsewhere(number):
    if os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_workers_load_before_their_first_task():
    with LocalPool(1, loads) as pool:
        assert pool.submit(loaded).result() == "yes"
    assert loaded() is None


def test_a_load_that_fails_is_left_to_the_tasks_that_need_it():
    with LocalPool(1, fails) as pool:
        assert pool.submit(squared, 3).result()[0] == 9


def test_shares_are_balanced_the_heaviest_first():
    assert balanced([1, 9, 1, 1, 6], 2) == [[1], [4, 0, 2, 3]]
    assert balanced([1], 2) == [[0]]
    assert balanced([], 2) == []


def test_items_are_spread_and_found_in_their_order():
    with LocalPool(2) as pool:
        found = list(pool.spread(squared, range(5), [1, 9, 1, 1, 6]))
    assert [number for number, _ in found] == [0, 1, 4, 9, 16]
    assert PARENT not in {process for _, process in found}


@pytest.mark.parametrize("items", [[1, 2, 3], []])
def test_what_a_worker_dies_with_is_done_here(items):
    with LocalPool(2) as pool:
        assert list(pool.spread(dies_elsewhere, items, [1] * len(items))) == items
        assert list(pool.spread(dies_elsewhere, items, [1] * len(items))) == items


def test_one_by_one_gives_what_a_pool_gives():
    assert list(one_by_one(abs, [-2, 1], [1, 1])) == [2, 1]


def test_no_workers_make_no_pool():
    with sweep.begun_pool(0) as pool:
        assert pool is None


def test_a_pool_that_is_still_loading_ends_at_once_with_an_error():
    began = time.monotonic()
    with pytest.raises(ValueError, match="wrong"), LocalPool(2, signal.pause):
        raise ValueError("wrong")
    assert time.monotonic() - began < 60


def test_what_nobody_waits_for_any_more_ends_with_the_pool():
    began = time.monotonic()
    with LocalPool(1) as pool:
        pool.submit(time.sleep, 100)
    assert time.monotonic() - began < 60


def test_no_thread_of_a_pool_outlives_it(monkeypatch):
    from joblib.externals.loky.backend.queues import Queue

    def hesitates(*arguments, feed=Queue._feed):
        feed(*arguments)
        time.sleep(0.5)

    monkeypatch.setattr(Queue, "_feed", hesitates)
    before = set(threading.enumerate())
    with LocalPool(1) as pool:
        assert pool.submit(squared, 3).result()[0] == 9
    assert not set(threading.enumerate()) - before
