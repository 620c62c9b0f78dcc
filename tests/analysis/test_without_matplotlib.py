"""Without matplotlib all but pictures works, and who asks for one is told what to install."""

import sys

import pytest

from hindsched.cli.app import run


@pytest.fixture
def _no_matplotlib(monkeypatch):
    import pyomo.environ  # noqa: F401  (looks for matplotlib in its own way when it is imported)

    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("_no_matplotlib")
def test_a_figure_has_its_table_and_means(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    quick = ["--quick", "--set", "jobs=[3,4]", "-o", str(tmp_path)]
    assert run(["figure", "oasis", "3", *quick]) == 0
    out, err = capsys.readouterr()
    assert "without pictures" in err
    assert "fifo" in out
    assert [path.name for path in tmp_path.iterdir()] == ["oasis-3.csv"]
