"""Pictures: axes in, axes out, nothing shown, nothing left behind, drawn at the right places."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import hindsched as hs
from hindsched.analysis.plots import price_lines
from hindsched.analysis.plots import used_shares as utilisation
from hindsched.analysis.spans import Span, job_spans
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
def instance():
    return hs.named_instance("oasis-t10-i10-h25-s0")


@pytest.fixture(scope="module")
def solution(instance):
    return hs.simulate(instance, "oasis").solution


@pytest.fixture(scope="module")
def certificate(instance):
    return hs.solve(instance, "bound", options={"time_limit": 2}).certificate


@pytest.fixture(scope="module")
def measured(instance):
    names = ["oasis", "fifo", "drf"]
    return hs.ratio(instance, names, seeds=2, method="bound", time_limit=1, progress=False)


def pictures(solution, certificate, measured):
    return {
        "gantt": lambda ax: hs.plot.gantt(solution, ax=ax),
        "utilisation": lambda ax: hs.plot.utilisation(solution, ax=ax),
        "prices": lambda ax: hs.plot.prices(certificate, ax=ax),
        "ratios": lambda ax: hs.plot.ratios(measured, ax=ax),
        "gap": lambda ax: hs.plot.gap(hs.explain(solution, certificate), ax=ax),
    }


@pytest.mark.parametrize("name", ["gantt", "utilisation", "prices", "ratios", "gap"])
def test_every_picture(name, solution, certificate, measured, tmp_path):
    draw = pictures(solution, certificate, measured)[name]
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


def test_a_file_of_an_unknown_kind(solution, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.png"):
        hs.plot.save(hs.plot.gantt(solution).figure, tmp_path / "x.docx")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="must be writable"):
        hs.plot.save(hs.plot.gantt(solution).figure, tmp_path / "file" / "x.png")


def test_spans_merge_rows_by_worker_count():
    rows = {
        "oasis": [
            {"from": 1, "to": 3, "workers": {"a": 2}, "ps": {"p": 1}},
            {"from": 3, "to": 4, "workers": {"b": 1}, "ps": {}},
            {"from": 7, "to": 7, "workers": {"a": 1}, "ps": {}},
        ],
        "edgecloud": [
            {"chunk": 1, "server": "e1", "worker": 1, "from": 2, "to": 4},
            {"chunk": 2, "server": "e1", "worker": 2, "from": 3, "to": 4},
            {"ps": "e1", "from": 2, "to": 9},
        ],
        "mlbroker": [{"from": 5, "to": 5, "workers": {"r1": 4}, "ps": "r1"}],
    }
    spans = {}
    for family, own in rows.items():
        solution = build_solution(hs.generate(family, "small"), {})
        solution.assignments = lambda own=own: {"j": own}
        spans[family] = job_spans(solution)["j"]
    assert spans == {
        "oasis": [Span(1, 2, 2), Span(3, 3, 3), Span(4, 4, 1), Span(7, 7, 1)],
        "edgecloud": [Span(2, 2, 1), Span(3, 4, 2)],
        "mlbroker": [Span(5, 5, 4)],
    }


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


def test_pictures_take_runs_results_and_frames(instance, measured, tmp_path):
    run, result = hs.simulate(instance, "fifo"), hs.solve(instance, "bound", time_limit=1)
    assert hs.plot.gantt(run).patches
    assert hs.plot.utilisation(run).images
    assert hs.plot.prices(result).lines
    ours, frames = hs.plot.ratios(measured), hs.plot.ratios(measured.to_frame())
    assert [list(line.get_xdata()) for line in ours.lines] == [
        list(line.get_xdata()) for line in frames.lines
    ]
    hs.plot.save(ours, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(PNG)
    with pytest.raises(InputError, match="must have a solution to draw"):
        hs.plot.gantt(result.bound)


def test_prices_on_rows_of_capacity_0_are_drawn_themselves():
    instance = hs.named_instance("mlbroker-r3-t2-s51")
    certificate = hs.solve(instance, "bound", options={"time_limit": 2}).certificate
    assert price_lines(certificate) == {}
    ax = hs.plot.prices(certificate)
    lines = [line for line in ax.lines if len(line.get_ydata())]
    assert lines or ax.texts
    assert "sum of prices" in ax.get_ylabel()


def test_drawing_leaves_a_notebooks_settings_as_the_backend_set_them():
    """In an interactive session drawing switches nothing off and leaves no setting of ours."""
    import matplotlib as mpl

    from hindsched.analysis.plots import common_look

    before = mpl.rcParams["axes.grid"]

    @common_look
    def draw():
        mpl.rcParams["interactive"] = True  # as a backend does when it is first used
        return mpl.rcParams["axes.grid"]

    try:
        assert draw() is True
        assert mpl.rcParams["interactive"] is True
        assert mpl.rcParams["axes.grid"] == before
    finally:
        mpl.rcParams["interactive"] = False
