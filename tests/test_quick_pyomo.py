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
