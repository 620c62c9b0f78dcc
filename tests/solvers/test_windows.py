"""Windows of oasis' schedules: what stands outside of them stands, and no schedule gets worse."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

import hindsched as hs
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.oasis import progress as progress_module
from hindsched.solvers.families.oasis import windows as windows_module
from hindsched.solvers.families.oasis.dive import Dive
from hindsched.solvers.families.oasis.fluid import SMALL, FluidProgram
from hindsched.solvers.families.oasis.methods import insert_by_density
from hindsched.solvers.families.oasis.packing_inequalities import PackingInequalities
from hindsched.solvers.families.oasis.progress import Later, Window, with_slots
from hindsched.solvers.families.oasis.windows import Windows
from hindsched.solvers.methods import auto, duel
from hindsched.solvers.methods.base import better
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search.dives import Dives, windows_of

FOREVER = 1e6


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(progress_module, "LONG", 1)


@pytest.fixture(scope="module")
def crowded():
    """An instance, its oracle, prices and a schedule without the job that is worth most in it."""
    instance = hs.generate("oasis", "paper", 1, jobs=24, horizon=24, servers=6, max_duration=6)
    oracle = build_oracle(instance)
    prices = subgradient_bound(oracle, SolveOptions(), max_iterations=60).prices
    known = insert_by_density(instance)
    most = max(known.workers, key=known.value)
    rows = {name: counts for name, counts in known.assignments().items() if name != most}
    return instance, oracle, prices, OasisSolution.from_assignments(instance, rows)


def dived(dive):
    while not dive.is_over:
        dive.step(FOREVER)
    return dive.solution()


def dive_into(oracle, prices, solution, first, last):
    return Dive(oracle, prices, 0.0, 2, Event(), Window(solution, first, last))


def gained_in(oracle, prices, solution, length=12):
    """The first window of some length that makes a schedule better, and the better one."""
    for first in range(1, oracle.instance.horizon - length + 2):
        found = dived(dive_into(oracle, prices, solution, first, first + length - 1))
        if found is not None and found.objective() > solution.objective() + 1e-6:
            return Window(found, first, first + length - 1)
    raise AssertionError("no window gains anything")


def test_what_is_done_outside_of_a_window_is_known(crowded):
    instance, oracle, _, solution = crowded
    ends = {solution.completion(name) for name in solution.workers}
    spans = [(end, min(24, end + 7)) for end in ends] + [(max(1, end - 7), end) for end in ends]
    for first, last in [(1, 24), (1, 8), (7, 15), (20, 24), *spans]:
        progress = Window(solution, first, last).progress(oracle)
        assert (progress.slot, progress.until) == (first, last)
        for number, job in enumerate(instance.jobs):
            end = solution.completion(job.name)
            open_then = job.arrival <= last and (end is None or end >= first)
            assert (number in progress.alive) == open_then
            assert not open_then or progress.latest[number] == 24  # prices do not bind a window
            if end is None or not open_then:
                assert not progress.done[number]
                continue
            counts = solution.workers[job.name].sum(axis=1)
            assert progress.done[number] == counts[: first - 1].sum()
            expected = Later(counts[last:].sum(), solution.value(job.name)) if end > last else None
            assert progress.later.get(number) == pytest.approx(expected)


@pytest.mark.parametrize(("first", "last"), [(1, 24), (1, 8), (7, 15), (10, 11), (20, 24)])
def test_the_program_of_a_window_is_above_what_stands_in_it(crowded, first, last):
    _, oracle, prices, solution = crowded
    window = Window(solution, first, last)
    progress = window.progress(oracle)
    value = window.value(oracle, progress.alive)
    inequalities = PackingInequalities(oracle, Event())
    fluid = FluidProgram(oracle, prices, 0.0, 0.0, Event(), progress, 24, inequalities)
    small = SMALL * oracle.bound(prices) * len(progress.alive)
    assert fluid.solve(FOREVER)
    assert fluid.objective >= value - small
    while fluid.add_packing_inequalities():
        assert fluid.solve(FOREVER)
        assert fluid.objective >= value - small


def test_what_stands_outside_of_a_window_stands_and_nothing_is_worse(crowded):
    instance, oracle, prices, solution = crowded
    window = gained_in(oracle, prices, solution)
    found = window.solution
    assert found.is_feasible()
    outside = [slot for slot in range(24) if not window.first <= slot + 1 <= window.last]
    later = False
    for job in instance.jobs:
        if job.name in found.workers and found.completion(job.name) > window.last:
            later = True
            for one, other in ((found.workers, solution.workers), (found.ps, solution.ps)):
                assert (one[job.name][outside] == other[job.name][outside]).all()
    assert later


def test_a_dive_into_a_window_that_is_worth_no_more_is_given_up(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    dive = dive_into(oracle, prices, solution, 7, 15)
    packed = []
    monkeypatch.setattr(dive, "_to_beat", 1e9)
    monkeypatch.setattr(dive, "_wish", packed.append)
    assert dived(dive) is solution
    assert not packed


def test_with_other_slots_who_ends_sooner_stops_and_who_does_not_end_is_left_out(crowded):
    instance, oracle, _, solution = crowded
    long = max(solution.workers, key=lambda name: np.count_nonzero(solution.workers[name].sum(1)))
    number, slots = instance.job_index(long), np.flatnonzero(solution.workers[long].sum(axis=1))
    first = int(slots[0]) + 1
    without = with_slots(oracle, solution, {first: {}})
    assert long not in without.workers
    others = [job for job in solution.workers if not solution.workers[job][first - 1].any()]
    assert others
    for job in others:
        assert (without.workers[job] == solution.workers[job]).all()
    workers, ps = solution.workers[long], solution.ps[long]
    most = oracle.block(number).task.total
    many = np.zeros_like(workers[0])
    many[0] = most
    sooner = with_slots(oracle, solution, {first: {number: (many, ps[first - 1])}})
    assert sooner.completion(long) == first
    assert not sooner.workers[long][first:].any()
    assert not sooner.ps[long][first:].any()
    same = with_slots(oracle, solution, Window(solution, 1, instance.horizon).placed())
    assert same.assignments() == solution.assignments()
    nothing = with_slots(oracle, None, Window(solution, 1, instance.horizon).placed())
    assert nothing.assignments() == solution.assignments()


def test_what_was_gained_in_a_window_is_tried_in_the_schedule_of_another(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    window = gained_in(oracle, prices, solution)
    monkeypatch.setattr(windows_module, "LENGTHS", (12,))
    windows = Windows(oracle, 0, 1, Event())
    windows._dive = dive_into(oracle, prices, solution, window.first, window.last)
    found = dived(windows._dive)
    assert found.objective() > solution.objective()
    assert windows.next(prices, solution).window.solution.assignments() == found.assignments()
    windows._dive = None
    begun = windows.next(prices, solution).window.solution
    assert begun.assignments() == found.assignments()
    assert windows.next(prices, solution).window.solution is solution  # tried once


def test_what_was_gained_in_a_window_stays_where_the_next_is_worth_no_more(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    window = gained_in(oracle, prices, solution)
    monkeypatch.setattr(windows_module, "LENGTHS", (12,))
    windows = Windows(oracle, 0, 1, Event())
    windows._gained = [window]
    dive = windows.next(prices, solution)
    monkeypatch.setattr(dive, "_to_beat", 1e9)
    found = dived(dive)
    assert dive.failed
    assert found.objective() == window.solution.objective()
    assert windows.next(prices, found).window.solution.assignments() == found.assignments()


def test_windows_sweep_over_the_horizon_until_nothing_is_gained(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    monkeypatch.setattr(windows_module, "LENGTHS", (12,))
    monkeypatch.setattr(windows_module, "SWEEPS", 2)
    windows, best, spans = Windows(oracle, 1, 2, Event()), solution, []
    while (dive := windows.next(prices, best)) is not None:
        spans.append((dive.window.first, dive.window.last))
        found = dived(dive)
        if found is not None:
            assert found.is_feasible()
            assert found.objective() >= best.objective() - 1e-9
            best = found
    assert best.objective() > solution.objective()
    assert len(spans) > 4 * 2
    assert spans[:6] == [(13, 24), (19, 24), (4, 15), (10, 21), (16, 24), (1, 12)]
    monkeypatch.setattr(progress_module, "LONG", 24)
    assert Windows(build_oracle(hs.generate("oasis", "small", 0)), 0, 1, Event()).next(
        prices, solution
    ) is None  # fmt: skip


def test_where_a_sweep_gains_nothing_the_next_has_windows_of_another_length(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    better_one = gained_in(oracle, prices, solution).solution
    monkeypatch.setattr(windows_module, "LENGTHS", (12, 8))
    made = []

    def fails(oracle, prices, least, number, interrupted, window, inequalities):
        made.append((number, window.last - window.first + 1))
        return SimpleNamespace(window=window, solution=lambda: None)

    monkeypatch.setattr(windows_module, "Dive", fails)
    windows = Windows(oracle, 0, 1, Event())
    while windows.next(prices, solution) is not None:
        pass
    sweeps = {number: max(length for each, length in made if each == number) for number, _ in made}
    assert sweeps == {0: 12, 1: 12, 2: 8, 3: 12, 4: 8}  # another margin each
    made.clear()
    assert windows.next(prices, better_one) is not None
    assert made == [(5, 12)]
    made.clear()
    windows = Windows(oracle, 1, 2, Event())
    while windows.next(prices, solution) is not None:
        pass
    assert {number for number, _ in made} == {1, 3, 5, 7, 9}  # another process has the others


def test_a_short_horizon_has_no_windows(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    monkeypatch.setattr(progress_module, "LONG", 25)
    assert oracle.instance.horizon == 24
    assert Windows(oracle, 0, 1, Event()).next(prices, solution) is None
    assert not Dives(oracle, 0, 1, Event()).have_windows
    monkeypatch.setattr(progress_module, "LONG", 24)
    assert Dives(oracle, 0, 1, Event()).have_windows
    assert Windows(oracle, 0, 1, Event()).next(prices, solution) is not None


def test_the_first_dive_is_followed_by_windows_and_then_by_the_next(crowded, monkeypatch):
    _, oracle, prices, _ = crowded
    monkeypatch.setattr(windows_module, "LENGTHS", (8,))
    monkeypatch.setattr(windows_module, "SWEEPS", 1)
    dives, kinds, bests = Dives(oracle, 0, 1, Event()), [], [None]
    while len(kinds) < 3 or kinds[-1]:
        found = dives.work(prices, 0.0, lambda: bests[-1], lambda: FOREVER, lambda: False)
        kinds.append(dives._of_windows)
        if found is not None:
            assert not kinds[-1] or found.objective() > bests[-1].objective()
            bests.append(better(bests[-1], found))
        assert len(kinds) < 200
    assert kinds[:2] == [False, True]
    assert not kinds[-1]
    assert windows_of("astraea") is None


class Endless:
    """A dive that always has as long to go as it is told."""

    is_over = False

    def __init__(self, seconds):
        self.seconds = seconds

    def seconds_to_go(self):
        return self.seconds

    def step(self, seconds):
        raise AssertionError("takes a step")


def test_windows_follow_a_dive_that_would_not_end_in_time_and_no_other_dive(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    dives = Dives(oracle, 0, 1, Event())
    dives._dive = Endless(2 * FOREVER)
    begun = iter([Endless(1.0), None])
    monkeypatch.setattr(dives._windows, "next", lambda *_: next(begun))
    stops = iter([False])
    dives.work(prices, 0.0, lambda: solution, lambda: FOREVER, lambda: next(stops, True))
    assert not dives.is_over
    assert dives._of_windows is False
    with pytest.raises(AssertionError, match="takes a step"):
        dives.work(prices, 0.0, lambda: solution, lambda: FOREVER, lambda: False)
    assert dives._of_windows
    dives._dive = Endless(2 * FOREVER)
    assert dives.work(prices, 0.0, lambda: solution, lambda: FOREVER, lambda: False) is None
    assert dives.is_over  # a window that would not end in time is the last
    dives.is_over, dives._dive = False, None
    assert dives.work(prices, 0.0, lambda: solution, lambda: FOREVER, lambda: False) is None
    assert dives.is_over


def test_a_better_schedule_from_elsewhere_begins_the_sweeps_anew(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    better_one = gained_in(oracle, prices, solution).solution
    monkeypatch.setattr(windows_module, "LENGTHS", (12,))
    windows = Windows(oracle, 0, 1, Event())
    assert windows.next(prices, solution) is not None
    windows._idle = 10**6
    assert windows.next(prices, solution) is None
    assert windows.next(prices, better_one) is not None


def test_a_window_that_gains_begins_the_sweeps_anew(crowded, monkeypatch):
    _, oracle, prices, solution = crowded
    window = gained_in(oracle, prices, solution)
    monkeypatch.setattr(windows_module, "LENGTHS", (12,))
    windows = Windows(oracle, 0, 1, Event())
    windows._dive = dive_into(oracle, prices, solution, window.first, window.last)
    assert dived(windows._dive).objective() > solution.objective()
    windows._idle = 10**6
    assert windows.next(prices, solution) is not None  # though nobody has told it of its own gain


def test_auto_with_windows_goes_the_same_way_twice(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SIZE", 0)
    monkeypatch.setattr(duel, "LEAST_TO_DIVE", 0)
    monkeypatch.setattr(windows_module, "LENGTHS", (8,))
    instance = hs.generate("oasis", "paper", 1, jobs=14, horizon=14, servers=8, max_duration=5)
    tried, next_of = [], Windows.next

    def counted(windows, prices, solution):
        tried.append(solution.objective())
        return next_of(windows, prices, solution)

    monkeypatch.setattr(Windows, "next", counted)
    one, other = (hs.solve(instance, work_limit=600) for _ in range(2))
    assert one.solution.assignments() == other.solution.assignments()
    assert one.solution.is_feasible()
    assert tried
