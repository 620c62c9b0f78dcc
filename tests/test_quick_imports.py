"""Solving starts without the parts of scipy that nothing of it reads."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import hindsched as hs
result = hs.solve(hs.generate("oasis", seed=1, jobs=2, horizon=4), "milp", gap=0.5)
assert result.solution is not None
assert "scipy.stats" not in sys.modules
from scipy.stats import norm  # the real one, not what Pyomo saw
assert norm.cdf(0.0) == 0.5
"""


BEFORE = ["", "import numba", "import hindsched.online.engines.dual_price"]


@pytest.mark.parametrize("first", BEFORE)
def test_solving_imports_no_statistics_but_whoever_asks_has_them(first):
    done = subprocess.run(
        [sys.executable, "-c", f"{first}\n{PROGRAM}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


QUANTUM = """
import sys
import numpy as np
from hindsched.quick_cvxpy import cp
assert "scipy.stats" not in sys.modules
mixed = cp.quantum_rel_entr(np.eye(2) / 2, np.eye(2))  # the one atom that reads the statistics
assert abs(mixed.value + np.log(2)) < 1e-9
from scipy.stats import norm
assert norm.cdf(0.0) == 0.5
"""


@pytest.mark.parametrize("first", ["", "import hindsched.online.baselines.finish_time"])
def test_cvxpy_is_imported_without_statistics_and_finds_them_where_it_needs_them(first):
    done = subprocess.run(
        [sys.executable, "-c", f"{first}\n{QUANTUM}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


MEANWHILE = """
import sys, threading, time
held = []
def import_meanwhile():
    while "scipy.stats" not in sys.modules:
        time.sleep(0.0002)
    import scipy.stats
    held.append(scipy.stats)
    held.append(scipy.stats.norm)
other = threading.Thread(target=import_meanwhile)
other.start()
from hindsched.quick_cvxpy import cp
other.join()
import scipy.stats
assert held[1] is held[0].norm is scipy.stats.norm
"""


def test_another_thread_has_the_statistics_while_cvxpy_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", MEANWHILE], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
