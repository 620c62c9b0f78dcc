"""Without matplotlib all but pictures works, and who asks for one is told what to install."""

import subprocess
import sys

import pytest

import hindsched as hs
from hindsched.cli.app import run

LINE = 'error: pictures: matplotlib: is not installed: pip install ".[plots]"\n'


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
    assert "reproduced" in out
    assert [path.name for path in tmp_path.iterdir()] == ["oasis-3.csv"]


@pytest.mark.usefixtures("_no_matplotlib")
def test_a_heat_map_is_refused_before_work(tmp_path, capsys):
    hs.write(hs.generate("oasis", seed=1, jobs=3), tmp_path / "x.json")
    files = [str(tmp_path / name) for name in ("x.json", "absent.json")]
    assert run(["explain", *files, "--prices", "none.json", "-o", str(tmp_path / "gap.png")]) == 2
    assert capsys.readouterr().err == LINE


@pytest.mark.usefixtures("_no_matplotlib")
def test_an_audit_is_without_pictures_and_says_so(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("job,submit,start,end,gpus\na,0,0,10,1\nb,0,10,12,1\n")
    command = ["audit", str(tmp_path / "log.csv"), "--gpus", "1", "--time-limit", "1"]
    assert run([*command, "-o", str(tmp_path / "out")]) == 0
    said = 'without pictures, for matplotlib is not installed: pip install ".[plots]"'
    assert said in capsys.readouterr().err
    page = (tmp_path / "out" / "audit.html").read_text()
    assert f"This page is {said}.".replace('"', "&#34;") in page
    assert "<img" not in page
    assert not list((tmp_path / "out").glob("*.png"))
