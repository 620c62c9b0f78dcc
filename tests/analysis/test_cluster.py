"""A Dask cluster: what is wrong with it is said, in one line, while it can be mended."""

import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time

import cloudpickle
import pytest

from hindsched.analysis import cluster
from hindsched.analysis.cluster import SchedulerLost, run_on_cluster
from hindsched.analysis.tasks import OFFLINE, Task
from hindsched.errors import InputError

pytestmark = pytest.mark.nightly

distributed = pytest.importorskip("distributed", reason="hindsched[dask] is not installed")
cloudpickle.register_pickle_by_value(sys.modules[__name__])
TASKS = [Task(OFFLINE, "a")]


def work(instance, task):
    return {"task": task.key, "status": "ok"}


def slow(instance, task):
    time.sleep(60)


@pytest.fixture
def local():
    with distributed.LocalCluster(
        n_workers=0,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=None,
    ) as made:
        yield made


def test_without_a_worker_it_waits_aloud(local, monkeypatch):
    monkeypatch.setattr(cluster, "FIRST_NOTE_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.1)
    said = []

    def say(line):
        said.append(line)
        threading.Thread(target=local.scale, args=(1,)).start()

    found = list(run_on_cluster(TASKS, {"a": None}, local.scheduler_address, work, say))
    assert [record["status"] for _, record in found] == ["ok"]
    assert said[0].startswith("waiting: the scheduler at tcp://")
    assert f"dask worker {local.scheduler_address}" in said[0]


def kills(instance, task):
    if task.instance == "a":
        os._exit(7)
    return work(instance, task)


def test_who_kills_its_worker_fails_alone():
    """Dask blames all that the dead worker had been given, too."""
    dask = pytest.importorskip("dask")
    tasks = [Task(OFFLINE, name) for name in "abc"]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
    ):
        found = run_on_cluster(
            tasks, dict.fromkeys("abc"), cluster.scheduler_address, kills, lambda line: None
        )
        records = {task.instance: record for task, record in found}
    assert records["a"]["error"].startswith("lost on the cluster: ")
    assert [records[name]["status"] for name in "bc"] == ["ok", "ok"]


def one_worker():
    return distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, processes=True
    )


def dies_once(folder, task):
    """The last of the tasks ends its worker, once, when it is told to."""
    if task.instance == "c" and not (folder / "died").exists():
        while not (folder / "go").exists():
            time.sleep(0.05)
        (folder / "died").touch()
        os._exit(7)
    return work(None, task)


def test_results_that_died_with_their_worker_are_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "POLL_SECONDS", 20.0)  # so that both are seen to end at once
    tasks = [Task(OFFLINE, name) for name in "abc"]
    with one_worker() as made:
        [before] = made.scheduler.workers
        found = run_on_cluster(
            tasks, dict.fromkeys("abc", tmp_path), made.scheduler_address, dies_once, print
        )
        records = [next(found)[1]]
        (tmp_path / "go").touch()
        while before in made.scheduler.workers:
            time.sleep(0.05)
        time.sleep(0.5)
        records += [record for _, record in found]
    assert {record["task"]: record["status"] for record in records} == {
        task.key: "ok" for task in tasks
    }


class Deadly:
    def __reduce__(self):
        os._exit(7)


def gives_deadly(instance, task):
    return {"a": Deadly()} if task.instance == "a" else work(instance, task)


def test_whose_result_kills_who_holds_it_fails_alone(monkeypatch):
    monkeypatch.setattr(cluster, "LOSSES", 1)
    monkeypatch.setattr(cluster, "FETCH_SECONDS", 0.5)
    tasks = [Task(OFFLINE, name) for name in "ab"]
    with one_worker() as made:
        found = run_on_cluster(
            tasks, dict.fromkeys("ab"), made.scheduler_address, gives_deadly, print
        )
        records = {task.instance: record for task, record in found}
    assert records["a"]["error"].startswith("lost on the cluster: its result went 1 time")
    assert records["b"]["status"] == "ok"


def test_a_worker_of_another_version_is_refused(local, monkeypatch):
    local.scale(1)
    monkeypatch.setattr(cluster, "versions", lambda: {"hindsched": "9.9"})
    with pytest.raises(
        InputError, match=r"dask worker tcp://.*: must run hindsched 9\.9 and Python"
    ):
        list(run_on_cluster(TASKS, {"a": None}, local.scheduler_address, slow))


def test_a_worker_without_the_package_is_refused(local, monkeypatch):
    local.scale(1)
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "hindsched" else real(name)
    )
    with pytest.raises(InputError, match="without hindsched: must have the package: install"):
        list(run_on_cluster(TASKS, {"a": None}, local.scheduler_address, slow))


def test_a_lost_scheduler_is_one_line(monkeypatch, capfd):
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "LOST_SECONDS", 0.5)
    script = (
        "import asyncio, distributed\n"
        "async def main():\n"
        "    async with distributed.Scheduler(port=0, dashboard=False) as made:\n"
        "        async with distributed.Worker(made.address, dashboard=False):\n"
        "            print(made.address, flush=True)\n"
        "            await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        threading.Timer(1.0, process.kill).start()
        with pytest.raises(SchedulerLost, match=f"the Dask scheduler at {address} is lost"):
            list(run_on_cluster(TASKS, {"a": None}, address, slow))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    time.sleep(0.5)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["distributed.client", "tornado.application", "asyncio"])
def test_what_dask_logs_is_silent_while_it_works(name):
    """Its modules have levels of their own."""
    logger = logging.getLogger(name)
    before = logger.level
    with cluster.without_tracebacks():
        assert not logger.isEnabledFor(logging.CRITICAL)
    assert logger.level == before


@pytest.mark.parametrize("address", ["tls://x:1", "inproc://x/1", "ucx://h:1", "tcp://", "foo"])
def test_addresses_that_are_refused(address):
    with pytest.raises(InputError, match=f"dask: {address}: must be"):
        list(run_on_cluster(TASKS, {"a": None}, address, work))
