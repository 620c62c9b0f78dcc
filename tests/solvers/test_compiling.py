"""Kernels compile before any clock starts, once a machine."""

import contextlib
import signal
import time

import pytest

import hindsched as hs
from hindsched.solvers import compiling
from hindsched.solvers.compiling import compile_first, is_compiled, tiny_instances
from hindsched.solvers.door.api import compile_solve


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A machine on which nothing was compiled yet."""
    monkeypatch.delenv("HINDSCHED_COMPILE", raising=False)
    monkeypatch.setattr(compiling, "_done", set())
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_work_runs_once_on_each_tiny_instance_and_leaves_a_mark(fresh, monkeypatch):
    seen = []
    compile_first("oasis work", seen.append, "oasis")
    assert seen == list(tiny_instances("oasis"))
    assert is_compiled("oasis work")
    monkeypatch.setattr(compiling, "_done", set())  # another process finds the mark
    compile_first("oasis work", seen.append, "oasis")
    assert len(seen) == len(tiny_instances("oasis"))
    assert not is_compiled("oasis other work")


def test_compiling_is_announced_once_with_its_seconds(fresh, capsys, monkeypatch):
    compile_first("oasis quick", lambda tiny: None, "oasis")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(compiling, "QUIET_SECONDS", 0.01)
    for _ in range(2):
        compile_first("oasis solve", lambda tiny: time.sleep(0.05), "oasis")
    assert capsys.readouterr().err.splitlines() == [
        "compiling kernels for oasis solve, once on this machine: some 40 s",
        "compiled in 0 s, which no time of a solve counts",
    ]


def test_ctrl_c_ends_compiling_at_once(fresh, monkeypatch):
    went_on = []

    def compile_slowly(*arguments):
        signal.raise_signal(signal.SIGINT)
        went_on.append(arguments)

    monkeypatch.setattr("hindsched.solvers.door.api._counted", compile_slowly)
    with pytest.raises(KeyboardInterrupt):
        compile_solve("astraea")
    assert went_on == []
    assert not is_compiled("astraea solve")


def test_ctrl_c_that_llvm_drops_ends_compiling_for_an_algorithm(fresh, monkeypatch):
    def compile_slowly(*arguments, **settings):
        with contextlib.suppress(KeyboardInterrupt):  # as a callback of ctypes does
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        compile_first("astraea astraea", compile_slowly, "astraea")
    assert not is_compiled("astraea astraea")


def test_decisions_and_solves_are_timed_without_the_compiler(fresh, monkeypatch):
    """What runs first is slow here, as a compiler is; neither clock sees it."""
    slow = []

    def compile_slowly(what, work, family, **runs):
        slow.append(what)
        time.sleep(0.3)

    monkeypatch.setattr("hindsched.online.simulator.compile_first", compile_slowly)
    monkeypatch.setattr("hindsched.solvers.door.api.compile_first", compile_slowly)
    instance = hs.generate("astraea", jobs=2)
    started = time.perf_counter()
    done = hs.simulate(instance, "astraea")
    result = hs.solve(instance, "bound", time_limit=5.0)
    assert slow == ["astraea astraea", "astraea solve"]
    assert done.seconds + done.simulator_seconds < time.perf_counter() - started - 0.6
    assert result.seconds < time.perf_counter() - started - 0.6
