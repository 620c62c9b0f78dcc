"""Parts of a solve side by side: the same optimum, nothing lost, nobody left running."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

import hindsched as hs
from hindsched.errors import SolveFailed
from hindsched.solvers.door import api
from hindsched.solvers.door.interrupt import catch_interrupt, stoppable
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.methods import auto
from hindsched.solvers.methods import duel as duel_module
from hindsched.solvers.methods.auto import solve_auto
from hindsched.solvers.methods.duel import Duel
from hindsched.solvers.search.dives import Dives
from hindsched.solvers.team import JobUpdates, Team, threads_of

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="forks on Linux only")
SMALL = hs.named_instance("oasis/small/t8-j8-h3-d4-s0")
LARGE = "tests/data/instances/oasis-t100-i100-h50-s0.json"
GANG = {"jobs": 120}


@pytest.fixture(autouse=True)
def nobody_is_left():
    before = threading.active_count()
    yield
    assert not multiprocessing.active_children()
    patience = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < patience:
        time.sleep(0.01)  # a reader ends when its pipe has closed
    assert threading.active_count() <= before


@pytest.fixture(scope="module")
def best():
    return hs.solve(SMALL, time_limit=60, threads=1).solution


@pytest.fixture(scope="module")
def optimum(best):
    return best.objective()


def team_of(*parts, instance=SMALL, closed=None):
    return Team(instance, instance.check_formulation(None), 1e-6, parts, closed or Event())


def test_two_cores_prove_the_same_optimum(optimum):
    result = hs.solve(SMALL, time_limit=60, threads=2)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.details["parts"] == 2


def test_a_tree_begins_at_once_where_prices_have_converged(monkeypatch):
    said = []

    class Ended(Exception):
        """The tree has told what it proves."""

    class Listener:
        def tell(self, solution):
            pass

        def time_to_listen(self):
            return False

        def say(self, news):
            said.append(news)
            raise Ended

    duel = Duel(SMALL, SMALL.check_formulation(None), SolveOptions(time_limit=60), Event())
    known = duel.run(0.3)
    duel.bounding.converged = True
    monkeypatch.setattr(Duel, "run", None)
    grown = replace(known, details={"nodes": 1, "leaves": 1})
    left = []
    monkeypatch.setattr(auto.Growing, "run", lambda _, seconds: left.append(seconds()) or grown)
    duel.begin -= 60.0  # a program that is asked with less than nothing left refuses
    with pytest.raises(Ended):
        auto._prove(duel, known, Listener())
    [news] = said
    assert news.certificate is known.certificate
    assert left == [0.0]


def test_a_program_that_fails_loses_no_proof(optimum):
    def fails(*arguments, **keywords):
        raise SolveFailed("no memory")

    options = SolveOptions(time_limit=60, threads=2)
    result = solve_auto(SMALL, SMALL.check_formulation(None), options, program=fails)
    assert result.stopped_by is StoppedBy.GAP
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.details["program_failed"] == "no memory"
    assert result.certificate.bound == result.bound


@pytest.mark.parametrize("way", ["error", "killed"])
def test_a_member_that_fails_loses_no_optimum(way, optimum, monkeypatch):
    def fails(duel, known, member):
        if way == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ZeroDivisionError("of a member")

    monkeypatch.setattr(auto, "_prove", fails)
    result = hs.solve(SMALL, time_limit=60, threads=2)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    said = result.details.get("part_failed")
    assert said == ("ZeroDivisionError: of a member" if way == "error" else None)


def endless(*arguments, **keywords):
    while True:
        time.sleep(0.01)


def test_the_limit_of_a_program_that_hangs_keeps_what_members_found(optimum, monkeypatch):
    def method(instance, formulation, options, on_progress):
        return solve_auto(instance, formulation, options, on_progress, program=endless)

    monkeypatch.setattr(api, "methods", lambda family: {"auto": method})
    result = hs.solve(SMALL, time_limit=2, threads=2)
    assert result.stopped_by in (StoppedBy.TIME_LIMIT, StoppedBy.GAP)
    assert result.bound is not None
    assert 0 < result.objective <= optimum + 1e-9


@pytest.mark.parametrize("instance", [hs.read(LARGE), hs.generate("gang", seed=1, **GANG)])
def test_ctrl_c_stops_all_and_keeps_what_is_known(instance):
    began, told = time.perf_counter(), []

    def interrupt_once(bound, objective, seconds, message):
        if not told and bound is not None and time.perf_counter() - began > 1.0:
            told.append(message)
            signal.raise_signal(signal.SIGINT)

    result = hs.solve(instance, time_limit=600, threads=2, on_progress=interrupt_once)
    assert result.stopped_by is StoppedBy.INTERRUPTED
    assert result.objective is not None
    assert result.bound is not None


def test_the_best_told_solution_counts(best):
    nothing = hs.solve(SMALL, "auto", time_limit=0, threads=1).solution

    def tells(member):
        member.tell(best)
        member.tell(nothing)

    with team_of(tells) as team:
        team.offer(nothing)
        team.wait(lambda: 60.0)
        assert team.solution().objective() == best.objective()


def test_a_told_solution_that_breaks_a_constraint_is_refused_and_said(best):
    rows = best.assignments()
    broken = {job: [*given, *given, *given, *given] for job, given in rows.items()}
    with team_of(lambda member: member.say(JobUpdates(1e9, broken))) as team:
        team.wait(lambda: 60.0)
        assert team.solution() is None
        assert team.objective is None
    assert "breaks" in team.errors[0] or "must" in team.errors[0]


def test_a_bound_that_meets_a_solution_closes(best):
    closed = Event()

    def tells(member):
        member.tell(best)
        endless()

    with team_of(tells, closed=closed) as team:
        team.note_bound(best.objective())
        team.wait(lambda: 60.0)
        assert closed.is_set()


def test_stopping_inside_is_no_interrupt_outside():
    with catch_interrupt() as outer, stoppable() as inner:
        with catch_interrupt() as engine:
            assert engine is inner
            inner.set()
            assert engine.is_set()
        assert not outer.is_set()
        outer.set()
    with catch_interrupt() as outer, stoppable() as inner:
        outer.set()
        assert inner.is_set()


def test_workers_use_one_core_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("HINDSCHED_THREADS", raising=False)
    assert threads_of(SolveOptions()) == len(os.sched_getaffinity(0))
    assert threads_of(SolveOptions(threads=3)) == 3
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: True)
    assert threads_of(SolveOptions()) == 1


def test_what_a_searching_member_finds_reaches_the_parent():
    instance = hs.read(LARGE)
    options = SolveOptions(time_limit=60, threads=1)
    with catch_interrupt() as interrupted:
        duel = Duel(instance, instance.check_formulation(None), options, interrupted)
        duel.run(0.0)
        first = duel.search.objective
        with team_of(duel.search_along, instance=instance) as team:
            until = time.perf_counter() + 60
            while team.objective is None and time.perf_counter() < until:
                time.sleep(0.05)
            assert team.solution().objective() > first


def test_a_parent_never_waits_for_a_member_that_does_not_listen_yet():
    busy = multiprocessing.get_context("fork").Event()
    prices = np.arange(1e6)  # more than a pipe holds

    def listens_late(member):
        busy.wait()
        while not (messages := member.heard()):
            time.sleep(0.01)
        assert np.array_equal(messages[0][0], prices)
        member.say(JobUpdates(details={"heard": True}))

    with team_of(listens_late) as team:
        team.exchange(prices)
        busy.set()
        while "heard" not in team.details:
            team.exchange(prices)
            time.sleep(0.01)
    assert not team.errors


def test_a_parent_does_not_wait_for_a_member_that_only_takes_in_what_comes():
    done = multiprocessing.get_context("fork").Event()
    prices = np.arange(1e6)  # more than a pipe holds

    def takes_in(member):
        assert not member.heard()  # now the parent may say something
        member.say(JobUpdates(details={"listens": True}))
        while not done.is_set():
            member.take_in()
            time.sleep(0.01)
        ((heard, _),) = member.heard()
        assert np.array_equal(heard, prices)
        assert not member.heard()
        member.say(JobUpdates(details={"heard": True}))

    with team_of(takes_in) as team:
        while "listens" not in team.details:
            time.sleep(0.01)
        team.exchange(prices)  # without `take_in` it would wait for `done`
        team.exchange(prices + 1)  # not sent: nobody has heard the first
        done.set()
        while "heard" not in team.details and not team.errors:
            time.sleep(0.01)
    assert not team.errors


def test_a_member_takes_in_what_comes_while_it_dives(monkeypatch):
    instance = hs.read(LARGE)
    with catch_interrupt() as interrupted:
        duel = Duel(
            instance, instance.check_formulation(None), SolveOptions(threads=1), interrupted
        )
        duel.run(0.0)
        duel._dives, told = Dives(duel.oracle, 0, 1, interrupted), []

        def work(dives, prices, objective, best, seconds_left, stop):
            assert not stop()
            dives.is_over = len(told) > 2
            return

        monkeypatch.setattr(Dives, "work", work)
        monkeypatch.setattr(Duel, "_polish", lambda *_: None)
        member = SimpleNamespace(
            number=1,
            take_in=lambda: told.append("taken in"),
            heard=lambda: told.append("heard") or [],
            time_to_listen=lambda: pytest.fail("searches"),
        )
        with pytest.raises(pytest.fail.Exception):
            duel.search_along(member)
        assert told[:4] == ["taken in", "heard", "taken in", "heard"]


@pytest.fixture
def dueling():
    """A duel whose prices and search have begun, at a scale where others dive meanwhile."""
    instance = hs.read(LARGE)
    with catch_interrupt() as interrupted:
        formulation = instance.check_formulation(None)
        found = Duel(instance, formulation, SolveOptions(threads=2), interrupted)
        found.run(0.0)
        found._dives = Dives(found.oracle, 1, 2, interrupted)
        yield found


def test_a_turn_dives_and_then_searches_or_goes_on_where_there_are_windows(dueling, monkeypatch):
    dives, dived = dueling._dives, []
    monkeypatch.setattr(dueling, "_dive", lambda *_: dived.append(dueling.search.iterations))

    def turn():
        before, asked = dueling.search.iterations, iter([False, False])
        monkeypatch.setattr(dueling, "_stop", lambda _: next(asked, True))
        dueling._search_until(0.0)
        return dueling.search.iterations - before

    dives.have_windows = False
    assert turn() == 2
    assert len(dived) == 1
    dives.have_windows = True  # on, until the turn is over
    assert turn() == 0
    assert len(dived) == 4


def test_no_dive_begins_where_one_took_too_long(dueling, monkeypatch):
    prices = dueling.bounding.best.prices
    monkeypatch.setattr(Dives, "_finish", lambda *_: pytest.fail("dives"))
    begun, make = [], dueling._dives._make
    dueling._dives._make = lambda *given: begun.append(given) or make(*given)
    dueling._dives._longest = 7.0
    stops = iter([False])
    dueling._dives.work(prices, 0.0, lambda: None, lambda: 9.0, lambda: next(stops, True))
    assert len(begun) == 1
    dueling._dives._dive = None
    dueling._dives.work(prices, 0.0, lambda: None, lambda: 8.0, lambda: False)
    assert dueling._dives.is_over
    assert len(begun) == 1


def test_after_a_dive_the_search_goes_on_as_long_where_that_gained(dueling, monkeypatch):
    spans, objectives = [], iter([1.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    clock = [dueling.begin]
    monkeypatch.setattr(duel_module, "now", lambda: clock[0])

    class Improving:
        objective = property(lambda _: next(objectives))

        def improve(self, stop):
            begin = clock[0]
            while not stop():
                clock[0] += 0.01
            spans.append(round(clock[0] - begin, 1))

    monkeypatch.setattr(dueling, "search", Improving())
    for _ in range(3):
        dueling._polish(10.0, lambda: False)
    assert spans == [0.5, 10.0, 0.5]
    asks_once = SimpleNamespace(objective=1.0, improve=lambda stop: stop())
    monkeypatch.setattr(dueling, "search", asks_once)
    asked = []
    dueling._polish(10.0, lambda: asked.append(1) or True)
    assert asked  # a member takes in there what its parent says
