"""Figures of the papers in quick mode: tables, drawings, settings, schemes and traces."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from hindsched.analysis.figures.base import (
    FigureScale,
    Plot,
    TraceInput,
    draw_table,
    figure,
    figures,
    means_of,
    series_looks,
)
from hindsched.errors import InputError
from hindsched.instances.traces.table import load_trace

NUMBERS = {
    "astraea": {"4a", "4b", "4c", "4d", *map(str, range(5, 14)), "table-2"},
    "batchsched": set(map(str, range(2, 13))),
    "mlbroker": {*map(str, range(5, 18)), "table-4", "table-5"},
}
KEYS = {
    ("astraea", "4a"): ["jobs", "scheme"],
    ("astraea", "7"): ["tenant", "scheme"],
    ("astraea", "11"): ["jobs", "percent"],
    ("mlbroker", "15"): ["algorithm"],
    ("mlbroker", "table-4"): [],
    ("mlbroker", "table-5"): [],
    ("mlbroker", "5"): [],
    ("mlbroker", "11"): [],
}
"""Quick figures, and the columns that tell their rows apart."""


@pytest.fixture(autouse=True)
def headless():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def run(family, number, **settings):
    scale = FigureScale(quick=True, seeds=1, settings=settings)
    return figure(family, number).run(scale, lambda text: None)


@pytest.mark.parametrize("family", NUMBERS)
def test_every_number_of_the_paper_is_there(family):
    assert set(figures(family)) == NUMBERS[family]


@pytest.mark.parametrize(("family", "number"), KEYS)
def test_every_cell_of_the_experiment_is_there_and_drawn(family, number):
    table = run(family, number)
    assert len(table) > 1
    if KEYS[family, number]:
        assert not table.duplicated([*KEYS[family, number], "seed"]).any()
    assert figure(family, number).picture(table).axes


# Drawings


def rows(scheme, values, feasible=True):
    return [
        {"jobs": x, "algorithm": scheme, "seed": 0, "objective": y, "in_feasible_set": feasible,
         "capacity_fraction": 0.05}
        for x, y in values.items()
    ]  # fmt: skip


def test_what_is_outside_the_feasible_set_is_starred():
    table = pd.DataFrame(rows("fifo", {1: 3.0, 2: 4.0}) + rows("drf", {1: 2.0, 2: 3.0}, False))
    axes = figure("batchsched", "2").picture(table).axes[0]
    legend = axes.get_legend()
    names = ["fifo", "drf *", "the paper: 0.7 x fifo", "the paper: 0.7 x drf"]
    assert [text.get_text() for text in legend.get_texts()] == names
    assert "outside the feasible set" in legend.get_title().get_text()
    axes.figure.draw_without_rendering()
    assert not any("$" in label.get_text() for label in axes.get_yticklabels(which="both"))


@pytest.mark.parametrize("kind", ["lines", "bars", "points"])
def test_every_kind_of_drawing_says_where_runs_are_left_out(kind):
    frame = pd.DataFrame({"a": [1, 2, 1, 2], "b": [1.0, 2.0, None, 4.0], "c": list("xxyy")})
    frame["seed"] = 0
    made = draw_table(frame, Plot("a", "b", "c", kind, panels="c"), title="A title", levels=(1.5,))
    assert len(made.axes) == 2
    assert made.axes[0].get_xlabel() == "a"
    texts = [text.get_text() for text in made.axes[1].get_legend().get_texts()]
    assert set(texts) == {"x", "y (1 of 2 rows without a value)", "the paper's text"}
    assert sum(line.get_linestyle() == ":" for line in made.axes[0].lines) == 1


def test_what_the_text_says_of_a_rival_is_a_dotted_line_in_its_colour():
    table = pd.DataFrame(rows("batchsched", {1: 9.0, 2: 9.0}) + rows("fifo", {1: 10.0, 2: 20.0}))
    lines = {
        line.get_label(): line for line in figure("batchsched", "2").picture(table).axes[0].lines
    }
    stated = lines["the paper: 0.7 x fifo"]
    assert list(stated.get_ydata()) == [7.0, 14.0]
    assert (stated.get_linestyle(), stated.get_color()) == (":", lines["fifo"].get_color())


def test_a_picture_says_below_the_full_title_what_was_run():
    table = pd.DataFrame({"jobs": [6], "scheme": "oasis", "seed": 0, "utility": 1.0})
    below = figure("oasis", "3").picture(table, FigureScale()).get_suptitle().split("\n", 1)[1]
    assert below == "5 seeds, means with their 95 % intervals"


@pytest.mark.parametrize(
    ("family", "number", "settings", "said"),
    [
        ("oasis", "3", {"jobs": [6], "horizon": 9}, "horizon 9; max duration 6; servers 6"),
        ("mlbroker", "5", {"datacenters": 3, "case": "chord"}, "horizon 5; jobs 8; life slots"),
    ],
)
def test_a_picture_says_what_quick_made_smaller(family, number, settings, said):
    scale = FigureScale(quick=True, seeds=1, settings=settings)
    table = figure(family, number).run(scale, lambda text: None)
    below = figure(family, number).picture(table, scale).get_suptitle().split("\n", 1)[1]
    assert below.startswith(f"quick: 1 seed; {said}")


@pytest.mark.parametrize(("level", "drawn"), [(3.0, True), (90.0, False), (-90.0, False)])
def test_a_level_far_from_the_curves_is_named_and_leaves_them_their_axis(level, drawn):
    frame = pd.DataFrame({"a": [1, 2, 1, 2], "b": [1.0, 2.0] * 2, "c": list("xxyy"), "seed": 0})
    axes = draw_table(frame, Plot("a", "b", "c", panels="c"), levels=(level,)).axes
    texts = [text.get_text() for text in axes[1].get_legend().get_texts()]
    far = f"the paper's text: {level:g}, far {'above' if level > 0 else 'below'}"
    assert texts[-1] == ("the paper's text" if drawn else far)
    assert all(each.get_ylim()[0] > 0.5 and each.get_ylim()[1] < 4 for each in axes)


def test_submissions_stand_above_the_shares_in_use_and_makespans_in_the_legend():
    table = pd.DataFrame({"slot": [1, 2] * 2, "scheme": ["edgecloud"] * 4, "seed": [0, 0, 1, 1],
                          "submissions": [3, 0, 1, 2], "busy_share": 0.5,
                          "makespan": [40, 40, 60, 60]})  # fmt: skip
    above, below = figure("edgecloud", "11").picture(table).axes
    assert [bar.get_height() for bar in above.patches] == [2.0, 1.0]
    assert below.get_legend().get_texts()[0].get_text() == "edgecloud, makespan 50"


def test_a_legend_names_settings_in_words():
    name = "priority [1, 10], max_duration 2, lower_floor 0.1"
    table = pd.DataFrame({"servers": [6], "setting": name, "seed": 0, "ratio_upper": 1.2})
    legend = figure("oasis", "5").picture(table).axes[0].get_legend().get_texts()
    assert legend[0].get_text() == "priority [1, 10], max duration 2, floor of L 0.1"


@pytest.mark.parametrize(
    ("family", "number", "ours"), [("oasis", "6", 100.0), ("astraea", "11", 1.0)]
)
def test_what_is_earned_beside_the_exact_estimate_is_of_it_or_per_cent_as_the_axis_says(
    family, number, ours
):
    table = run(family, number, jobs=[6])
    exact = table[table.filter(like="percent").iloc[:, 0] == 100]
    label = figure(family, number).picture(table).axes[0].get_ylabel()
    assert exact["relative"].dropna().eq(ours).all()
    assert label == "earned / with the exact estimate" + " (%)" * (ours == 100.0)


def test_ticks_of_a_long_logarithmic_axis_leave_room_for_their_labels():
    table = pd.DataFrame({"density_scale": [1.0, 1e8], "algorithm": "batchsched-exact",
                          "seed": 0, "objective": 1.0})  # fmt: skip
    axes = figure("batchsched", "4").picture(table).axes[0]
    axes.figure.draw_without_rendering()
    shown = [label.get_window_extent() for label in axes.get_xticklabels()]
    inside = [box for box in shown if 0 < box.x0 < axes.bbox.x1]
    assert len(inside) > 2
    assert all(left.x1 + left.height < right.x0 for left, right in pairwise(inside))


def test_settings_of_an_algorithm_differ_in_dashes_and_others_in_colour():
    looks = series_looks(["srtf drawn", "srtf half", *"abcdefghi"])
    assert [dash for _, dash in looks[:2]] == ["-", "--"]
    assert len(set(looks)) == len(looks) - 1  # "c" stands where srtf's colour does


def test_settings_of_an_algorithm_differ_in_hatches_of_their_bars():
    names = ["oasis", "oasis, L-floor 0.1", "fifo"]
    table = pd.DataFrame({"scheme": names, "seed": 0, "utility": [1.0, 2.0, 3.0]})
    bars = figure("oasis", "8").picture(table).axes[0].patches
    assert [bool(bar.get_hatch()) for bar in bars] == [False, True, False]


def test_intervals_are_those_of_means_over_seeds():
    """By hand: 1, 2 and 3 have mean 2 and half width 4.303 / sqrt(3); jobs of a seed count once."""
    frame = pd.DataFrame({"x": 1, "by": "a", "seed": [0, 0, 1, 2], "y": [0.0, 2.0, 2.0, 3.0]})
    mean, half = means_of(frame, Plot("x", "y", "by"))
    assert mean.loc[1, "a"] == 2.0
    assert half.loc[1, "a"] == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert means_of(frame.query("seed == 1"), Plot("x", "y", "by"))[1].loc[1, "a"] == 0.0


# Settings, schemes and traces


def test_a_setting_of_the_axis_gives_its_values_and_any_other_changes_the_instances():
    assert set(run("astraea", "4a", jobs=[5, 7])["jobs"]) == {5, 7}
    scale = FigureScale(quick=True, settings={"servers": 9})
    made = scale.instance("astraea", "paper", 0, {"jobs": 4}, servers=10, tenants=3)
    assert (len(made.servers), len(made.jobs)) == (9, 4)


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


def test_a_case_that_a_figure_lacks_is_refused():
    with pytest.raises(InputError, match=r"set\.case: nope: must be one of priority \[1, 10\]"):
        run("oasis", "5", case=["nope"])


def test_only_the_schemes_asked_for_are_run():
    scale = FigureScale(quick=True, seeds=1, schemes=("fifo",))
    table = figure("oasis", "3").run(scale, lambda text: None)
    assert set(table["scheme"]) == {"fifo"}
    with pytest.raises(InputError, match="schemes: nope: must be one of oasis, "):
        FigureScale(schemes=("nope",)).chosen(["oasis", "fifo"])


@pytest.mark.parametrize(("family", "number"), [("astraea", "4a"), ("edgecloud", "7")])
def test_a_figure_from_a_trace(family, number, tmp_path):
    """Hourly jobs of two virtual clusters."""
    text = ["timestamp,duration,num_gpus,gpu_time,cluster"]
    for hour in range(96):
        part = ("6214e9", "7f04ca")[hour % 2]
        text.append(f"2017-09-{4 + hour // 24:02} {hour % 24:02}:00:00,7200,2,14400,{part}")
    path = tmp_path / "philly.csv"
    path.write_text("\n".join(text))
    trace = TraceInput(load_trace(path, "philly"), str(path))
    scale = FigureScale(quick=True, seeds=2, settings={"jobs": [4]}, trace=trace)
    assert set(figure(family, number).run(scale, lambda text: None)["seed"]) == {0, 1}
    plain = FigureScale(quick=True, seeds=2, trace=trace)
    made = plain.instance(family, "paper", 0, {"jobs": 4}, servers=6)
    assert len(made.jobs) == 4
    assert "philly.csv" in str(made.provenance)
    with pytest.raises(InputError, match=r"from-trace: .*has no tenants, which this figure varies"):
        plain.instance("astraea", "paper", 0, {"tenants": 3})


def test_a_job_of_astraea_pays_nothing_where_its_utility_is_negative():
    """With the printed times jobs end late; what tenants end with adds up to the total."""
    settings = {"minibatch_scale": 1.0, "servers": 4, "horizon": 2000}
    totals = run("astraea", "4a", jobs=[12], **settings).set_index("scheme")
    assert (totals["revenue"] >= totals["signed"]).all()
    assert totals.loc["batchsche", "revenue"] > max(totals.loc["batchsche", "signed"], 0)
    by_tenant = run("astraea", "7", jobs=12, **settings).groupby("scheme")["revenue"].sum()
    assert by_tenant.to_dict() == pytest.approx(totals["revenue"].to_dict())
