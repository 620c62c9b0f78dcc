"""The sweep: order, dying workers, Dask, and the wish to stop."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import pytest

from hindsched.analysis import cluster, sweep
from hindsched.analysis.tasks import OFFLINE, ONLINE, Task
from hindsched.errors import InputError
from hindsched.solvers.door import interrupt
from hindsched.solvers.door.interrupt import Terminated, raise_terminated

# Workers cannot import test modules, so functions of this one travel by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Stub:
    """An instance as far as the sweep looks at it."""

    def __init__(self, name):
        self.name = name


INSTANCES = [Stub("a"), Stub("b")]


def tasks(count, **settings):
    return [
        Task(OFFLINE, "a"),
        *(Task(ONLINE, "b", "fifo", seed, settings) for seed in range(count - 1)),
    ]


def work(instance, task):
    return {
        "task": task.key,
        "status": "ok",
        "error": None,
        "instance": instance.name,
        "pid": os.getpid(),
    }


def dies_once(instance, task):
    marker = Path(task.settings.get("marker", "/nonexistent/x"))
    if task.seed == 1 and not marker.exists():
        marker.write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return work(instance, task)


def dies_always(instance, task):
    if task.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(instance, task)


def dies_in_even_seeds(instance, task):
    if task.kind == ONLINE and task.seed % 2 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(instance, task)


def interrupted(instance, task):
    return {**work(instance, task), "stopped_by": "interrupted" if task.seed == 1 else "gap"}


def slow(instance, task):
    """The offline task waits until another worker is busy; the others never end."""
    folder = Path(task.settings["folder"])
    if task.kind == ONLINE:
        (folder / str(os.getpid())).touch()
        time.sleep(600)
    while not any(folder.iterdir()):
        time.sleep(0.01)
    return work(instance, task)


LIMITED = """
import json, sys
import numpy as np
from hindsched.analysis import sweep
from hindsched.analysis.tasks import OFFLINE, ONLINE, Task, run_task
from hindsched.instances.generators.registry import generate
from hindsched.limits import nobody_asked
from hindsched.memory import memory_limit
from hindsched.solvers.door import interrupt


class Greedy:
    family = "oasis"

    def sha256(self):
        return str(np.empty(5 << 25).nbytes)


def takes_a_lot(instance, task):
    if task.kind == OFFLINE:
        instance = Greedy()  # wants more than a GB
    return {"asked": not nobody_asked(), **run_task(instance, task)}


sweep.run_task = takes_a_lot
instance = generate("oasis", jobs=2, horizon=5)
todo = [Task(OFFLINE, instance.name), *(Task(ONLINE, instance.name, a) for a in ("fifo", "drf"))]
with memory_limit(json.loads(sys.argv[1])):
    records = sweep.run_tasks(todo, [instance], workers=1)
print(json.dumps([[r["status"], r.get("error", ""), r["asked"]] for r in records]))
"""
"""A process of its own, because a limit counts what the process holds already."""


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [0, 2])
def test_records_come_in_the_order_of_the_tasks(monkeypatch, workers):
    monkeypatch.setattr(sweep, "run_task", work)
    seen = []
    records = sweep.run_tasks(tasks(5), INSTANCES, workers=workers, on_record=seen.append)
    assert [record["task"] for record in records] == [task.key for task in tasks(5)]
    assert [record["instance"] for record in records] == ["a", "b", "b", "b", "b"]
    assert len(seen) == 5
    here = {record["pid"] == os.getpid() for record in records}
    assert here == {workers == 0}


def test_a_worker_that_dies_once_costs_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(sweep, "run_task", dies_once)
    todo = tasks(5, marker=str(tmp_path / "marker"))
    records = sweep.run_tasks(todo, INSTANCES, workers=2)
    assert (tmp_path / "marker").exists()
    assert [record["status"] for record in records] == ["ok"] * 5


def test_a_task_that_kills_its_worker_fails_alone(monkeypatch):
    monkeypatch.setattr(sweep, "run_task", dies_always)
    records = sweep.run_tasks(tasks(4), INSTANCES, workers=2)
    status = {record["task"]: record["status"] for record in records}
    assert status == {
        "a--offline": "ok",
        "b--fifo--s0": "ok",
        "b--fifo--s1": "failed",
        "b--fifo--s2": "ok",
    }
    died = next(record for record in records if record["status"] == "failed")
    assert died["error"].startswith("the worker process died")


@pytest.mark.parametrize("limit", [1 << 30, None])
def test_workers_have_the_limit_of_memory(limit):
    command = [sys.executable, "-c", LIMITED, json.dumps(limit)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    records = json.loads(done.stdout.splitlines()[-1])
    assert [status for status, _, _ in records] == ["failed", "ok", "ok"]
    refused = records[0][1].startswith("not enough memory (Unable to allocate 1.25 GiB")
    assert refused == (limit is not None)
    assert {asked for _, _, asked in records} == {limit is not None}


def test_an_interrupted_solve_stops_the_sweep_and_is_not_kept(monkeypatch):
    monkeypatch.setattr(sweep, "run_task", interrupted)
    kept = []
    with pytest.raises(KeyboardInterrupt):
        sweep.run_tasks(tasks(4), INSTANCES, workers=0, on_record=kept.append)
    assert [record["task"] for record in kept] == ["a--offline", "b--fifo--s0"]


def test_a_solve_that_sigterm_ended_stops_the_sweep_by_its_name(monkeypatch):
    monkeypatch.setattr(sweep, "run_task", interrupted)
    monkeypatch.setattr(interrupt, "_terminated", True)
    with pytest.raises(interrupt.Terminated):
        sweep.run_tasks(tasks(4), INSTANCES, workers=0)


def test_an_interrupted_solve_can_be_kept(monkeypatch):
    monkeypatch.setattr(sweep, "run_task", interrupted)
    records = sweep.run_tasks(tasks(4), INSTANCES, workers=0, stop_when_interrupted=False)
    assert len(records) == 4


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_workers_do_not_outlive_an_interrupt(monkeypatch, tmp_path):
    """Nor do they leave an exception in one of the pool's threads."""
    monkeypatch.setattr(sweep, "run_task", slow)
    todo = [
        Task(OFFLINE, "a", settings={"folder": str(tmp_path)}),
        *tasks(9, folder=str(tmp_path))[1:],
    ]
    kept = []

    def interrupt(record):
        kept.append(record["task"])
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sweep.run_tasks(todo, INSTANCES, workers=2, on_record=interrupt)
    assert kept == ["a--offline"]
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert workers
    assert not any(is_alive(pid) for pid in workers)
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(20)


def test_dask_runs_the_same_tasks(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="hindsched[dask] is not installed")
    monkeypatch.setattr(sweep, "run_task", work)
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=None,
    )
    with cluster:
        records = sweep.run_tasks(tasks(4), INSTANCES, dask=cluster.scheduler_address)
    assert [record["task"] for record in records] == [task.key for task in tasks(4)]


def test_no_scheduler_at_the_address(monkeypatch):
    monkeypatch.setattr(cluster, "TIMEOUT", "1s")
    pytest.importorskip("distributed", reason="hindsched[dask] is not installed")
    with pytest.raises(InputError, match="must be a scheduler's address"):
        sweep.run_tasks(tasks(1), INSTANCES, dask="tcp://127.0.0.1:1")


def test_negative_workers():
    with pytest.raises(InputError, match="workers: -1: must be at least 0"):
        sweep.run_tasks(tasks(1), INSTANCES, workers=-1)


@pytest.mark.parametrize("address", ["", "foo", "foo:bar", "http://x:80"])
def test_a_malformed_address_is_found_before_a_client_exists(monkeypatch, address):
    distributed = pytest.importorskip("distributed", reason="hindsched[dask] is not installed")

    def client(*args, **kwargs):
        raise AssertionError("a client that fails complains once more when it is thrown away")

    monkeypatch.setattr(distributed, "Client", client)
    with pytest.raises(InputError, match="dask: "):
        sweep.run_tasks(tasks(1), INSTANCES, dask=address)


def test_a_worker_whose_parent_died_before_it_began_ends_at_once():
    """It is told who its parent is: asked after the parent's death, the system names another."""
    script = (
        "import time; from hindsched.analysis.local_pool import Parent, prepare_worker;"
        "prepare_worker(Parent(1 << 22, False)); time.sleep(60)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=50, check=False, stderr=subprocess.PIPE
    )
    assert (done.returncode, done.stderr) == (1, b"")


def test_sigterm_is_said_by_its_name_where_it_is_listened_to(monkeypatch):
    monkeypatch.setattr(sweep, "run_task", work)
    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        with pytest.raises(Terminated):
            sweep.run_tasks(
                tasks(9),
                INSTANCES,
                workers=1,
                on_record=lambda record: signal.raise_signal(signal.SIGTERM),
            )
    finally:
        signal.signal(signal.SIGTERM, before)


def test_many_tasks_that_kill_their_workers_do_not_stop_the_others(monkeypatch):
    """Suspects run one at a time; each that kills its worker costs one pool."""
    monkeypatch.setattr(sweep, "run_task", dies_in_even_seeds)
    records = sweep.run_tasks(tasks(5), INSTANCES, workers=2)
    assert [record["status"] for record in records] == ["ok", "failed", "ok", "failed", "ok"]
