"""Workers that are copies: they have what was loaded, and nothing of what went on here."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hindsched.analysis.copied_worker import CopiedWorker, can_be_copied

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux copies processes")

TOLD = """
import os, signal, time
from contextvars import ContextVar
from threadpoolctl import threadpool_info
import numpy, scipy.linalg

loaded = []
held = ContextVar("held", default="default")

def load():
    loaded.append(os.getpid())

def facts():
    time.sleep(0.2)
    return {
        "loaded": loaded, "pid": os.getpid(), "parent": os.getppid(), "held": held.get(),
        "blas": [each["num_threads"] for each in threadpool_info()],
        "terminate": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "overdue": signal.getsignal(signal.SIGALRM) == signal.SIG_DFL,
        "interrupt": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
        "leads": os.getpgrp() == os.getpid(),
        "environment": os.environ.get("OMP_NUM_THREADS"),
        "drawn": numpy.random.random(),
    }

def dies():
    os.kill(os.getpid(), signal.SIGKILL)
"""
SCRIPT = """
import json, os, signal, sys, threading, time
from hindsched.analysis.local_pool import LocalPool
from hindsched.solvers.door.interrupt import raise_terminated
import told

told.held.set("of the parent")
signal.signal(signal.SIGTERM, raise_terminated)
signal.signal(signal.SIGALRM, raise_terminated)
if "thread" in sys.argv:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
with LocalPool(2, told.load) as pool:
    futures = [pool.submit(told.facts) for _ in range(4)]
    workers = [each.result() for each in futures]
    print(json.dumps({"pid": os.getpid(), "workers": workers}), flush=True)
    if "orphan" in sys.argv:
        pool.submit(time.sleep, 1000)
        time.sleep(1000)
    assert list(pool.spread(abs, range(-5, 1), [1.0] * 6)) == [5, 4, 3, 2, 1, 0]
with LocalPool(2, told.load) as pool:
    print(json.dumps(type(pool.submit(told.dies).exception()).__name__))
print(json.dumps([each.name for each in threading.enumerate()]))
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "told.py").write_text(TOLD)
    path = tmp_path / "copies.py"
    path.write_text(SCRIPT)
    return path


def run(script, *words):
    done = subprocess.run(
        [sys.executable, str(script), *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_copies_have_what_was_loaded_here(script):
    told, broken, threads = run(script)
    workers = told["workers"]
    assert all(each["loaded"] == [told["pid"], each["pid"]] for each in workers)
    assert {each["parent"] for each in workers} == {told["pid"]}
    assert len({each["pid"] for each in workers}) == 2
    assert broken == "TerminatedWorkerError"
    assert threads == ["MainThread"]


def test_copies_forget_what_their_parent_was_in_the_middle_of(script):
    for each in run(script)[0]["workers"]:
        assert each["held"] == "default"
        assert each["blas"] == [1] * len(each["blas"])
        assert len(each["blas"]) >= 1
        assert each["terminate"]
        assert each["overdue"]
        assert each["interrupt"]
        assert each["leads"]
        assert each["environment"] == "1"


def test_copies_draw_for_themselves(script):
    workers = run(script)[0]["workers"]
    assert len({each["drawn"] for each in workers}) == len(workers)


def test_a_process_with_threads_is_not_copied(script):
    told, broken, threads = run(script, "thread")
    for each in told["workers"]:
        assert each["loaded"] == [each["pid"]]
        assert each["blas"] == [1] * len(each["blas"])
    assert broken == "TerminatedWorkerError"
    assert len(threads) == 2


def test_copies_do_not_outlive_their_parent(script):
    with subprocess.Popen(
        [sys.executable, str(script), "orphan"], stdout=subprocess.PIPE
    ) as parent:
        told = json.loads(parent.stdout.readline())
        parent.kill()
    copies = {Path(f"/proc/{each['pid']}/stat") for each in told["workers"]}
    assert len(copies) == 2
    deadline = time.monotonic() + 30
    while any(is_alive(each) for each in copies):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(stat):
    """Whether a process runs: one that has ended may wait to be noticed."""
    with suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_only_one_thread_may_be_there():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert not can_be_copied()
    stop.set()
    thread.join()


def test_a_worker_is_no_copy_until_it_is_started_as_one():
    assert not CopiedWorker(target=print).is_copy
