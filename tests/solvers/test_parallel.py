"""Works side by side: the same optimum, nothing lost, nobody left running."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace

import pytest

import hindsched as hs
from hindsched.errors import SolveFailed
from hindsched.solvers.door import api
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result, Status, StoppedBy
from hindsched.solvers.door.work import catch_interrupt
from hindsched.solvers.methods import auto
from hindsched.solvers.methods.auto import BoundAndSearch, solve_auto
from hindsched.solvers.parallel import SideBySide, threads_of


@pytest.fixture(autouse=True)
def nobody_is_left():
    before = {child.pid for child in multiprocessing.active_children()}  # idle workers of a sweep
    yield
    assert {child.pid for child in multiprocessing.active_children()} <= before


pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="forks on Linux only")
SMALL = hs.named_instance("oasis/small/t8-j8-h3-d4-s0")
LARGE = "tests/data/instances/oasis-t100-i100-h50-s0.json"


@pytest.fixture(scope="module")
def optimum():
    return hs.solve(SMALL, time_limit=60, threads=1).objective


def endless(*arguments, **keywords):
    while True:
        time.sleep(0.01)


def test_what_works_return_is_found_and_the_others_are_killed():
    with SideBySide([lambda: "x" * 1_000_000, endless]) as beside:
        until = time.monotonic() + 60
        while not beside.look() and time.monotonic() < until:
            time.sleep(0.01)
        assert [len(each) for each in beside.results] == [1_000_000]
    assert not beside.errors


def test_works_that_are_told_to_stop_say_what_they_have():
    begun = multiprocessing.get_context("fork").Event()

    def works():
        with catch_interrupt() as stop:
            begun.set()
            while not stop.is_set():
                time.sleep(0.01)
        return "so far"

    with catch_interrupt(), SideBySide([works]) as beside:
        assert begun.wait(60)
        assert beside.stop() == ["so far"]


def test_ctrl_c_keeps_what_the_program_beside_has_found(monkeypatch):
    best = hs.solve(SMALL, time_limit=60, threads=1).solution

    def program(instance, formulation, options, on_progress, *, incumbent):
        os.kill(os.getppid(), signal.SIGINT)
        with catch_interrupt() as stop:
            while not stop.is_set():
                time.sleep(0.01)
        return Result(
            instance=instance, formulation=formulation, method="milp", solution=best,
            status=Status.FEASIBLE, stopped_by=StoppedBy.INTERRUPTED,
        )  # fmt: skip

    monkeypatch.setattr(auto, "_run_beside_program", lambda both, has_tree: waits_for(both))
    options = SolveOptions(time_limit=60, threads=2, gap=1e-12)
    found = solve_auto(SMALL, "standard", options, program=program)
    assert found.stopped_by is StoppedBy.INTERRUPTED
    assert found.objective == best.objective()


def waits_for(both):
    while not both.clock.stop.is_set():
        time.sleep(0.01)
    return replace(both.known, solution=None, status=Status.NO_SOLUTION)


@pytest.mark.parametrize("way", ["error", "killed"])
def test_a_work_that_fails_says_so(way):
    def fails():
        if way == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ZeroDivisionError("of a work")

    with SideBySide([fails]) as beside:
        assert beside.wait(lambda: 1.0) == []
    said = {"error": "ZeroDivisionError: of a work", "killed": "ended without a word"}
    assert beside.errors == [said[way]]


def test_two_cores_prove_the_same_optimum(optimum):
    result = hs.solve(SMALL, time_limit=60, threads=2)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.details["parts"] == 2


def test_what_closes_beside_ends_a_program_that_does_not(optimum):
    def waits(instance, formulation, options, on_progress, *, incumbent):
        with catch_interrupt() as interrupted:
            while not interrupted.is_set():
                time.sleep(0.01)
        raise SolveFailed("interrupted")

    options = SolveOptions(time_limit=600, threads=2)
    result = solve_auto(SMALL, SMALL.check_formulation(None), options, program=waits)
    assert result.stopped_by is StoppedBy.GAP
    assert result.objective == pytest.approx(optimum, rel=1e-6)


def test_ctrl_c_stops_all_and_keeps_what_is_known(monkeypatch):
    began, told = time.perf_counter(), []

    def interrupt_once(bound, objective, seconds, message):
        if not told and bound is not None and time.perf_counter() - began > 1.0:
            told.append(message)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(api, "LineProgress", lambda limit: interrupt_once)
    result = hs.solve(hs.read(LARGE), time_limit=600, threads=2, progress=True)
    assert result.stopped_by is StoppedBy.INTERRUPTED
    assert result.objective is not None
    assert result.bound is not None


def test_workers_use_one_core_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("HINDSCHED_THREADS", raising=False)
    assert threads_of(SolveOptions()) == len(os.sched_getaffinity(0))
    assert threads_of(SolveOptions(threads=3)) == 3
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: True)
    assert threads_of(SolveOptions()) == 1


def test_the_best_of_those_who_search_side_by_side_counts(monkeypatch):
    best = hs.solve(SMALL, time_limit=60, threads=1).solution
    beside = BoundAndSearch._search_beside
    monkeypatch.setattr(
        BoundAndSearch,
        "_search_beside",
        lambda both, number, clock: best if number == 2 else beside(both, number, clock),
    )  # fmt: skip
    monkeypatch.setattr(auto, "SMALL_SIZE", 0)
    result = hs.solve(SMALL, time_limit=2, threads=3)
    assert result.objective == pytest.approx(best.objective())
    assert result.details["parts"] == 3


def test_works_end_with_a_parent_that_is_killed():
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe(duplex=False)

    def parent():
        with SideBySide([lambda: (theirs.send(os.getpid()), endless())]):
            endless()

    process = fork.Process(target=parent)
    process.start()
    theirs.close()
    assert mine.poll(60)
    mine.recv()
    process.kill()
    process.join()
    assert mine.poll(60)  # closed, as nobody is left that could send
    with pytest.raises(EOFError):
        mine.recv()
