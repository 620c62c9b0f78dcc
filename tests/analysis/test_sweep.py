"""The sweep: order, dying workers, Dask, and the wish to stop."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import cloudpickle
import pytest

import hindsched as hs
from hindsched.analysis import sweep
from hindsched.analysis.comparison import Comparison
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import Lost, map_calls, run_tasks
from hindsched.analysis.tasks import OFFLINE, ONLINE, Task
from hindsched.cli.app import run
from hindsched.errors import InputError
from hindsched.solvers.door.work import Terminated, raise_terminated

# Workers cannot import test modules, so functions of this one travel by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def square(number):
    return number * number


def dies(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def sleeps(number, folder):
    """The first waits until another process is busy; the others never end."""
    if number:
        (Path(folder) / str(os.getpid())).touch()
        time.sleep(600)
    while not any(Path(folder).iterdir()):
        time.sleep(0.01)
    return number


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [0, 2])
def test_every_call_has_its_result(workers):
    found = dict(map_calls(square, [(n,) for n in range(5)], workers=workers))
    assert found == {n: n * n for n in range(5)}


@pytest.mark.nightly
def test_a_process_that_dies_costs_its_own_call_alone():
    found = dict(map_calls(dies, [(n,) for n in range(4)], workers=2))
    assert found == {0: 0, 1: Lost("the worker process died, twice"), 2: 2, 3: 3}


@pytest.mark.nightly
def test_a_call_that_does_not_end_is_killed(monkeypatch, tmp_path):
    monkeypatch.setattr(sweep, "OVERRUN_SECONDS", 15.0)
    found = dict(map_calls(sleeps, [(n, str(tmp_path)) for n in (1, 0)], workers=2, time_limit=1))
    assert found == {0: Lost("time limit: neither finished nor stopped"), 1: 0}


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_processes_do_not_outlive_the_wish_to_stop(tmp_path, number):
    kept = []
    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        calls = map_calls(sleeps, [(n, str(tmp_path)) for n in range(3)], workers=2)
        kept.append(next(calls)[0])
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt) as stopped:
            next(calls)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert isinstance(stopped.value, Terminated) is (number == signal.SIGTERM)
    assert kept == [0]
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert workers
    assert not any(is_alive(pid) for pid in workers)


KILLED_SWEEP = """
import os, pathlib, sys, time
from hindsched.analysis.sweep import map_calls

def works(folder, number):
    (pathlib.Path(folder) / str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    list(map_calls(works, [(sys.argv[1], n) for n in range(2)], workers=2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_at_once_when_their_parent_is_killed(tmp_path):
    (tmp_path / "workers").mkdir()
    script = tmp_path / "killed.py"
    script.write_text(KILLED_SWEEP)
    parent = subprocess.Popen([sys.executable, script, tmp_path / "workers"])
    while len(workers := [int(path.name) for path in (tmp_path / "workers").iterdir()]) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    ends = time.monotonic() + 30
    while any(map(is_running, workers)) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def is_running(pid):
    """Whether a process is there that has not ended, perhaps unheard."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def interrupted(instance, task, limit):
    return {"task": task.key, "stopped_by": "interrupted" if task.seed == 1 else "gap"}


def test_an_interrupted_solve_stops_the_sweep_unless_it_is_wanted(monkeypatch):
    instance = hs.generate("oasis", seed=1, jobs=2)
    todo = [Task(OFFLINE, instance.name)]
    todo += [Task(ONLINE, instance.name, "fifo", seed) for seed in range(3)]
    monkeypatch.setattr(sweep, "run_task", interrupted)
    kept = []
    with pytest.raises(KeyboardInterrupt):
        run_tasks(todo, [instance], workers=0, on_record=kept.append)
    assert [record["task"] for record in kept] == [task.key for task in todo[:2]]
    assert len(run_tasks(todo, [instance], workers=0, stop_when_interrupted=False)) == 4


@pytest.mark.nightly
def test_dask_runs_the_same_calls():
    distributed = pytest.importorskip("distributed", reason="hindsched[dask] is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address=None,
    ) as cluster:  # fmt: skip
        found = dict(map_calls(square, [(n,) for n in range(4)], dask=cluster.scheduler_address))
    assert found == {n: n * n for n in range(4)}


@pytest.mark.parametrize("address", ["", "foo", "foo:bar", "http://x:80", "tcp://127.0.0.1:1"])
def test_no_scheduler_at_the_address(monkeypatch, address):
    pytest.importorskip("distributed", reason="hindsched[dask] is not installed")
    monkeypatch.setattr(sweep, "CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match="dask: "):
        list(map_calls(square, [(1,)], dask=address))


@pytest.mark.nightly
def test_a_folder_from_python_is_resumed_by_the_command(tmp_path, capsys):
    instance = hs.generate("oasis", seed=1, jobs=3)
    how = {"method": "bound", "time_limit": 1, "progress": False, "out": tmp_path / "out"}
    found = hs.compare(instance, ["oasis", "fifo"], workers=2, seeds=1, **how)
    for name in ("report.html", "runs.csv", "manifest.json"):
        assert (tmp_path / "out" / name).is_file()
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "tasks").iterdir()}
    lost = tmp_path / "out" / "tasks" / next(iter(done)).name
    lost.unlink()
    assert run(["bench", "--resume", "--workers", "0", "--out", str(tmp_path / "out")]) == 0
    assert str(Comparison(ResultStore.open(tmp_path / "out").records())) == str(found)
    assert all(path.stat().st_mtime_ns == time for path, time in done.items() if path != lost)
    with pytest.raises(InputError, match="holds results already"):
        hs.compare(instance, ["oasis"], seeds=1, **how)
