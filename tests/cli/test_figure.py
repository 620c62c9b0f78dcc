"""``figure``: a table and a drawing of any registered experiment."""

import json

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from hindsched.analysis.figures.base import Figure, Plot, figures
from hindsched.cli.app import run


def experiment(scale, on_row):
    rows = []
    for seed in range(scale.seeds):
        on_row(f"seed {seed}")
        rows.append({"jobs": scale.pick(100, 5), "algorithm": "oasis", "seed": seed, "value": seed})
    return pd.DataFrame(rows)


PLOT = Plot("jobs", "value", "algorithm")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    figure = Figure("7x", "A figure", experiment, PLOT)
    monkeypatch.setitem(figures("oasis"), "7x", figure)
    return tmp_path / "figures"


@pytest.mark.parametrize(
    ("options", "seeds", "jobs"),
    [([], 5, 100), (["--quick"], 1, 5), (["--quick", "--seeds", "3"], 3, 5)],
)
def test_table_and_drawing(folder, capsys, options, seeds, jobs):
    assert run(["figure", "oasis", "7x", *options, "-o", str(folder), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["seeds"], summary["rows"]) == (seeds, seeds)
    frame = pd.read_csv(folder / "oasis-7x.csv")
    assert list(frame["seed"]) == list(range(seeds))
    assert set(frame["jobs"]) == {jobs}
    assert (folder / "oasis-7x.png").read_bytes().startswith(b"\x89PNG")
    assert plt.get_fignums() == []


def test_the_means_that_are_drawn_are_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    options = ["--quick", "--set", "jobs=[4,6]", "-o", str(tmp_path)]
    assert run(["figure", "astraea", "4a", *options, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["settings"] == {"jobs": [4, 6]}
    frame = pd.read_csv(tmp_path / "astraea-4a.csv")
    wide = frame.pivot_table(index=["seed", "jobs"], columns="scheme", values="revenue")
    assert run(["figure", "astraea", "4a", *options]) == 0
    shown = capsys.readouterr().out
    assert "revenue" in shown
    assert f"{wide.loc[0, 6]['hived']:.2f}" in shown


@pytest.mark.parametrize("start", ["abc", "NaN", "-1", "[1]"])
def test_a_start_that_is_no_time_is_one_line(start, tmp_path, capsys):
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "timestamp,duration,num_gpus,cluster\n"
        + "".join(f"2017-10-0{1 + n % 9} 00:00:00,600,1,a\n" for n in range(90))
    )
    asked = ["edgecloud", "7", "--quick", "--set", f"start={start}", "--from-trace", str(trace)]
    assert run(["figure", *asked, "-o", str(tmp_path / "out")]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith("error: set.start: ")
