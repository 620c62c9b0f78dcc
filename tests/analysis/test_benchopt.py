"""The benchopt benchmark: its pieces without benchopt, and a run of it where benchopt is."""

import math
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hindsched.instances.catalogue import find_member
from hindsched.solutions.base import read_solution
from hindsched.solvers.certificates.file import read_certificate
from tests.scripts import script

pytestmark = pytest.mark.nightly

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "benchopt"
NAME = "oasis/library-small/h3-s2"
GANG = "gang/library-small/poisson-s10"
Records = script("library_records").Records
ON_FILE = Records(Path(__file__).parents[2] / "benchmarks/library")


@pytest.fixture
def utils(monkeypatch):
    """The benchmark's shared modules, found as benchopt finds them."""
    monkeypatch.syspath_prepend(str(BENCHMARK))
    from benchmark_utils import judge, library, program

    yield judge, library, program
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmark_utils"]:
        del sys.modules[name]


def test_records_are_judged_optimal_and_what_is_absent_is_infinitely_far(utils):
    judge, library, _ = utils
    data, recipe = library.data_of(NAME), find_member(NAME)
    known = data["instance"], data["best_objective"], data["best_bound"]
    solution = read_solution(ON_FILE.path(recipe, "solution"), data["instance"])
    certificate = read_certificate(ON_FILE.path(recipe, "certificate"), data["instance"])
    found = judge.judge(known[0], judge.Answer(solution, certificate), *known[1:])
    assert found["value"] == pytest.approx(0, abs=1e-6)
    assert found["bound_gap"] == pytest.approx(0, abs=1e-6)
    assert found["objective"] == pytest.approx(data["best_objective"])
    nothing = judge.judge(known[0], judge.Answer(claimed_bound=1.0), *known[1:])
    assert nothing["value"] == nothing["bound_gap"] == math.inf
    assert math.isnan(nothing["objective"])
    assert nothing["claimed_bound"] == 1.0


@pytest.mark.skipif(find_spec("benchopt") is None, reason="benchopt is not installed")
def test_benchopt_runs_the_benchmark(tmp_path):
    import pandas as pd

    folder = tmp_path / "benchmark"
    shutil.copytree(BENCHMARK, folder, ignore=shutil.ignore_patterns("outputs", "*cache__"))
    done = subprocess.run(
        [
            sys.executable, "-m", "benchopt", "run", str(folder),
            "-d", f"library-small[instance=[{NAME},{GANG}]]", "-s", "hindsched[method=auto]",
            "-s", "HiGHS", "--no-plot", "--no-html", "--output", "seen",
        ],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error" not in done.stdout.lower(), done.stdout
    frame = pd.read_parquet(folder / "outputs" / "seen.parquet")
    assert len(frame) == 4
    best = {name: Records().standing(find_member(name)) for name in (NAME, GANG)}
    for row in frame.to_dict("records"):
        standing = best[row["p_dataset_instance"]]
        assert row["objective_objective"] == pytest.approx(standing.objective)
        assert row["objective_value"] == pytest.approx(standing.gap, abs=1e-6)
