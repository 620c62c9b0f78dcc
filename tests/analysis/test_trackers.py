"""Killing the process that tracks the pools' semaphores: nothing is said of it, nothing is left."""

import subprocess
import sys
from pathlib import Path

import pytest

KILLED = """
import os, signal
from hindsched.analysis.trackers import start_trackers
start_trackers()
from joblib.externals.loky.backend import resource_tracker
from joblib.externals.loky.backend.context import get_context
lock, other = get_context("loky").Lock(), get_context("loky").Lock()
print(lock._semlock.name, other._semlock.name)
tracker = resource_tracker._resource_tracker._pid
os.kill(tracker, signal.SIGKILL)
os.waitid(os.P_PID, tracker, os.WEXITED | os.WNOWAIT)
del lock
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for semaphores in /dev/shm")
def test_a_tracker_that_is_killed_leaves_neither_tracebacks_nor_semaphores():
    ran = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=True)
    assert "relaunching" in ran.stderr
    assert "Traceback" not in ran.stderr
    names = ran.stdout.split()
    assert len(names) == 2
    assert not [name for name in names if Path(f"/dev/shm/sem.{name[1:]}").exists()]
