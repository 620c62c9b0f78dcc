"""Pictures: axes in, axes out, nothing shown, nothing left behind, drawn at the right places."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import hindsched as hs
from hindsched.analysis.plot import used_shares as utilisation
from hindsched.errors import InputError
from hindsched.solutions.base import build_solution

PNG = b"\x89PNG"


@pytest.fixture(autouse=True)
def headless(monkeypatch):
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda *args: pytest.fail("a picture was shown"))
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def measured(instance):
    names = ["oasis", "fifo", "drf"]
    return hs.ratio(instance, names, seeds=2, method="bound", time_limit=1, progress=False)


def pictures(solution, measured):
    return {
        "gantt": lambda ax: hs.plot.gantt(solution, ax=ax),
        "utilisation": lambda ax: hs.plot.utilisation(solution, ax=ax),
        "ratios": lambda ax: hs.plot.ratios(measured, ax=ax),
    }


@pytest.mark.parametrize("name", ["gantt", "utilisation", "ratios"])
def test_every_picture(name, solution, measured, tmp_path):
    draw = pictures(solution, measured)[name]
    before = dict(mpl.rcParams)
    axes = draw(None)
    assert dict(mpl.rcParams) == before
    assert axes.get_xlabel()
    assert axes.get_title("left")
    for suffix in ("png", "svg", "pdf"):
        hs.plot.save(axes.figure, tmp_path / f"x.{suffix}")
    assert (tmp_path / "x.png").read_bytes().startswith(PNG)
    assert plt.get_fignums() == []

    _, mine = plt.subplots()
    assert draw(mine) is mine
    assert mine.has_data()


def test_a_dot_is_the_ratio_of_the_mean_over_seeds(measured):
    fifo = next(row for row in measured.algorithms if row.algorithm == "fifo")
    assert len(fifo.runs) == 2
    drawn = [each.get_offsets() for each in hs.plot.ratios(measured).collections]
    dots = next(places for places in drawn if len(places) == len(measured.algorithms))
    assert dots[1][0] == pytest.approx(fifo.ratio.interval.upper, rel=1e-6)


def test_a_file_of_an_unknown_kind(solution, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.png"):
        hs.plot.save(hs.plot.gantt(solution).figure, tmp_path / "x.docx")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="must be writable"):
        hs.plot.save(hs.plot.gantt(solution).figure, tmp_path / "file" / "x.png")


def test_bars_stand_where_the_job_runs(instance):
    job = instance.jobs[4]
    rows = {job.name: [{"from": 4, "to": 6, "workers": {"w1": 1}, "ps": {"p1": 1}}]}
    axes = hs.plot.gantt(build_solution(instance, rows))
    [bar] = axes.patches
    assert (bar.get_x(), bar.get_width()) == (3.5, 3.0)
    assert bar.get_y() + bar.get_height() / 2 == pytest.approx(4)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[4] == job.name


def test_utilisation_counts_idle_servers(instance):
    rows = {"j1": [{"from": 1, "to": 2, "workers": {"w1": 1}, "ps": {"p1": 1}}]}
    solution = build_solution(instance, rows)
    name, servers, share = utilisation(solution, "gpu")
    assert name == "gpu"
    assert "w25" in servers
    assert share.shape == (len(servers), instance.horizon)
    used = instance.jobs[0].worker["gpu"] / instance.worker_servers[0].capacity["gpu"]
    assert share[servers.index("w1"), :3].tolist() == pytest.approx([used, used, 0.0])
    assert np.count_nonzero(share) == 2
    with pytest.raises(InputError, match="resource: nope: must be one of"):
        utilisation(solution, "nope")
