"""Without matplotlib all but pictures works, and who asks for one is told what to install."""

import subprocess
import sys

import pytest

import hindsched as hs
from hindsched.cli.app import run

NOWHERE = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nowhere())
from hindsched.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def _no_matplotlib(monkeypatch):
    import pyomo.environ  # noqa: F401  (looks for matplotlib in its own way when it is imported)

    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_bench_writes_its_report(tmp_path):
    hs.write(hs.generate("oasis", seed=1, jobs=3, horizon=6, servers=3), tmp_path / "x.json")
    words = ["bench", "x.json", "--algorithm", "fifo", "--time-limit", "2", "--workers", "0"]
    command = [sys.executable, "-c", NOWHERE, *words, "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.usefixtures("_no_matplotlib")
def test_a_figure_has_its_table_and_verdicts(tmp_path, capsys):
    quick = ["--quick", "--set", "jobs=[3,4]", "-o", str(tmp_path)]
    assert run(["figure", "oasis", "3", *quick]) == 0
    out, err = capsys.readouterr()
    assert "without pictures" in err
    assert "not measured at scale" in out
    assert [path.name for path in tmp_path.iterdir()] == ["oasis-3.csv"]
