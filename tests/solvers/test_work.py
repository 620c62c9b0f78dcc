"""Under a work limit no clock decides: every method says the same, whatever the machine does."""

import json
import math
import os
import signal
import threading
import time

import pytest

import hindsched as hs
from hindsched.errors import InputError
from hindsched.solvers.door import work
from hindsched.solvers.door.api import compile_solve, methods
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import StoppedBy
from hindsched.solvers.families.gang import methods as gang_methods
from hindsched.solvers.methods import auto, base

INSTANCES = [
    hs.generate("oasis", seed=1, jobs=4, horizon=6),
    hs.generate("batchsched", seed=1, jobs=3),
    hs.generate("astraea", seed=1, jobs=4),
    hs.generate("edgecloud", seed=1, jobs=4),
    hs.generate("mlbroker", seed=1, jobs=2),
    hs.generate("gang", seed=1, jobs=20),
]


def told(result):
    """All of a result that could differ."""
    solution, certificate = result.solution, result.certificate
    parts = (
        None if solution is None else solution.to_dict({}),
        result.bound,
        None if certificate is None else certificate.to_dict(),
        result.stopped_by,
        {key: value for key, value in result.details.items() if not key.endswith("seconds")},
    )
    return json.dumps(parts, sort_keys=True, default=str)


def under_load(function):
    """Call while another thread takes half of the interpreter's time."""
    over = threading.Event()

    def burn():
        while not over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=burn)
    thread.start()
    try:
        return function()
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.family)
def test_every_method_says_the_same_whatever_threads_and_load(instance):
    for method in methods(instance.family):
        if (instance.family, method) in (("gang", "tree"), ("gang", "milp")):
            continue  # slow

        def solve(threads, method=method):
            return hs.solve(instance, method, work_limit=20, seed=2, threads=threads)

        first, second = solve(1), under_load(lambda: solve(2))
        assert told(first) == told(second), method
        assert first.stopped_by is not StoppedBy.TIME_LIMIT


def test_more_work_is_no_worse_and_none_gives_an_interval(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SIZE", 0)
    instance = hs.generate("oasis", seed=0, jobs=15, horizon=15)
    none, some, more = (hs.solve(instance, work_limit=units) for units in (0, 20, 200))
    assert none.objective <= some.objective <= more.objective
    assert more.bound <= some.bound <= none.bound
    assert more.stopped_by is StoppedBy.ITERATION_LIMIT


def test_work_is_counted_inside_only():
    assert not work.is_counted()
    before = work.now()
    with work.counting():
        work.count_work(3)
        assert work.now() == pytest.approx(3 * work.UNIT_SECONDS)
        assert work.units_of(work.now()) == 3
    assert before <= work.now() <= time.perf_counter()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"work_limit": -1}, "at least 0"), ({"work_limit": 1.5}, "integer"),
        ({"work_limit": True}, "integer"), ({"work_limit": 5, "time_limit": 1}, "must be alone"),
        ({"work_limit": 5, "solver": "scip"}, "is for highs"), ({"time_limit": "5"}, "^time_limit"),
        ({"time_limit": -1.0}, "^time_limit"), ({"time_limit": math.nan}, "^time_limit"),
        ({"gap": "small"}, "^gap"), ({"threads": 1.5}, "^threads"), ({"threads": 10**6}, "^thr"),
        ({"seed": -1}, "^seed"), ({"progress": "no"}, "^progress"), ({"solver": "x"}, "^solver"),
        ({"solver_options": ["presolve"]}, "^solver_options"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SolveOptions.of(options)


@pytest.mark.parametrize("method", ["milp", "auto"])
def test_a_signal_ends_the_building_of_a_program(monkeypatch, method):
    """Pyomo does not look at events; what was found before is kept."""
    compile_solve("gang")
    monkeypatch.setattr(gang_methods, "can_enumerate", lambda instance, formulation: False)

    def building(*arguments, **settings):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    monkeypatch.setattr(base, "offline_program", building)
    before = signal.signal(signal.SIGTERM, work.raise_terminated)
    instance = hs.generate("gang", seed=1, jobs=12)
    try:
        begin = time.perf_counter()
        result = hs.solve(instance, method, time_limit=120)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.perf_counter() - begin < 30
    assert result.stopped_by == "interrupted"
    assert result.solution.is_feasible()
