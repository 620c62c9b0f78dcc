"""The figures of batchsched: all are there, and drawings say what is outside the feasible set."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from hindsched.analysis.figures.base import FigureScale
from hindsched.analysis.figures.base import figures as figures_of
from hindsched.analysis.figures.batchsched import figures
from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER
from hindsched.online.batchsched.algorithms import BatchschedExact, GreedyRtl

FOUND = figures_of("batchsched")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def rows(scheme, values, feasible=True, fraction=0.05):
    return [
        {
            "jobs": x,
            "algorithm": scheme,
            "seed": 0,
            "objective": y,
            "in_feasible_set": feasible,
            "capacity_fraction": fraction,
        }
        for x, y in values.items()
    ]


def test_every_number_of_the_paper_is_there():
    papers = [str(number) for number in range(2, 13)]
    assert list(FOUND) == [*papers, "theorem-5"]


def test_what_is_outside_the_feasible_set_is_starred_and_dashed():
    table = pd.DataFrame(rows("fifo", {1: 3.0, 2: 4.0}) + rows("drf", {1: 2.0, 2: 3.0}, False))
    figure = FOUND["2"].picture(table)
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["fifo", "drf *"]
    assert "outside the feasible set" in legend.get_title().get_text()
    styles = [item[0].get_linestyle() for item in figure.axes[0].containers]
    assert styles == ["-", "--"]


def test_the_printed_ratio_is_measured_on_small_instances():
    scale = FigureScale(quick=True, seeds=1, settings={"jobs": [2]})
    table = FOUND["theorem-5"].run(scale, lambda text: None)
    assert len(table) == 2 * len(figures.VARIANTS)
    assert (table["ratio_upper"] >= 1 - 1e-6).all()
    assert (table["ratio_upper"] <= table["theorem"]).all()


def test_one_round_accepts_no_more_than_everything():
    instance = generate("small", 1, jobs=6, architecture=PARAMETER_SERVER)
    everything = sum(job.weight for job in instance.jobs)
    for algorithm in (BatchschedExact(), GreedyRtl()):
        few, many = (figures.accepted_weight(instance, algorithm, tau) for tau in (4, 64))
        assert few <= many == everything


def test_a_mean_that_leaves_runs_out_says_so():
    table = pd.DataFrame(rows("fifo", {1: 3.0, 2: 4.0}) + rows("wspt", {1: 2.0, 2: float("nan")}))
    for draw in (FOUND["2"].picture, FOUND["9"].picture):
        given = table.assign(fixed_worker_type=table["jobs"], scheme=table["algorithm"])
        legend = draw(given).axes[0].get_legend()
        texts = [text.get_text() for text in legend.get_texts()]
        assert texts == ["fifo", "wspt (1 of 2 runs without a value)"]
