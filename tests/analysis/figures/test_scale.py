"""Settings and traces of a figure, and the paper's values in its drawing."""

from __future__ import annotations

import os

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from hindsched.analysis.figures.base import FigureScale, Plot, TraceInput, draw, figure
from hindsched.errors import InputError
from hindsched.instances.traces.table import load_trace

TRACES = os.environ.get("HINDSCHED_TRACES")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def run(family, number, **settings):
    scale = FigureScale(quick=True, seeds=1, settings=settings)
    return figure(family, number).run(scale, lambda text: None)


def test_a_setting_of_the_axis_gives_its_values():
    assert set(run("astraea", "4a", jobs=[5, 7])["jobs"]) == {5, 7}
    assert set(run("astraea", "4a", jobs=5)["jobs"]) == {5}


def test_any_other_setting_changes_the_instances():
    scale = FigureScale(quick=True, settings={"servers": 9})
    made = scale.instance("astraea", "paper", 0, {"jobs": 4}, servers=10, tenants=3)
    assert len(made.servers) == 9
    assert len(made.jobs) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"utility": "power"}, "set.utility: power: is what this figure varies itself"),
        ({"jobs": []}, "set.jobs: \\[\\]: must hold at least one value"),
        ({"nope": 1}, "set.nope: 1: the generator of astraea has the settings"),
        ({"jobs": ["a"]}, "set.jobs"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(InputError, match=message):
        run("astraea", "4a", **settings)


@pytest.fixture
def trace(tmp_path):
    """Hourly jobs of two virtual clusters."""
    rows = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    for hour in range(96):
        part = ("6214e9", "7f04ca")[hour % 2]
        rows.append(f"2017-09-{4 + hour // 24:02} {hour % 24:02}:00:00,7200,2,14400,{part}")
    path = tmp_path / "philly.csv"
    path.write_text("\n".join(rows))
    return TraceInput(load_trace(path, "philly"), str(path))


@pytest.mark.parametrize(("family", "number"), [("astraea", "4a"), ("edgecloud", "7")])
def test_a_figure_from_a_trace(family, number, trace):
    scale = FigureScale(quick=True, seeds=2, settings={"jobs": [4]}, trace=trace)
    plain = FigureScale(quick=True, seeds=2, trace=trace)
    made = [plain.instance(family, "paper", seed, {"jobs": 4}, servers=6) for seed in (0, 1)]
    assert [len(item.jobs) for item in made] == [4, 4]
    assert "philly.csv" in str(made[0].provenance)
    frame = figure(family, number).run(scale, lambda text: None)
    assert set(frame["seed"]) == {0, 1}


def test_what_a_trace_does_not_have_cannot_be_varied(trace):
    scale = FigureScale(quick=True, trace=trace)
    with pytest.raises(InputError, match=r"from-trace: .*has no tenants, which this figure varies"):
        scale.instance("astraea", "paper", 0, {"tenants": 3})


def test_the_papers_values_are_in_its_figures():
    drawn = figure("astraea", "5").picture(
        pd.DataFrame(
            {"jobs": [5, 5], "servers": [5, 15], "scheme": ["a", "a"], "seed": [0, 0],
             "performance_lower": [0.8, 0.9]}
        )
    )  # fmt: skip
    assert any(list(line.get_ydata()) == [0.6, 0.6] for line in drawn.axes[0].lines)


def test_only_the_schemes_asked_for_are_run():
    scale = FigureScale(quick=True, seeds=1, schemes=("fifo",))
    table = figure("oasis", "3").run(scale, lambda text: None)
    assert set(table["scheme"]) == {"fifo"}
    with pytest.raises(InputError, match="schemes: nope: must be one of oasis, "):
        FigureScale(schemes=("nope",)).chosen(["oasis", "fifo"])


@pytest.mark.parametrize("kind", ["lines", "bars", "points"])
def test_every_kind_of_drawing(kind):
    frame = pd.DataFrame({"a": [1, 2, 1, 2], "b": [1.0, 2.0, None, 4.0], "c": list("xxyy")})
    made = draw(frame, Plot("a", "b", "c", kind, panels="c"), title="A title", levels=(1.5,))
    assert len(made.axes) == 2
    assert made.axes[0].get_xlabel() == "a"
    texts = [text.get_text() for text in made.axes[1].get_legend().get_texts()]
    assert texts == ["y (1 of 2 runs without a value)"]
    plt.close(made)
