"""mlbroker's figures: all of the paper's are there, and the small ones run and draw."""

import matplotlib as mpl
import pandas as pd
import pytest

from hindsched.analysis.figures.base import FigureScale, figures
from hindsched.analysis.figures.mlbroker.drawing import (
    SMALLEST_EXCESS,
    excess_lines,
    fractional_lines,
)

mpl.use("Agg")
QUICK = FigureScale(quick=True, seeds=1)


def test_every_figure_and_table_of_the_paper():
    numbers = {str(number) for number in range(5, 18)} | {"table-4", "table-5", "ablation"}
    assert set(figures("mlbroker")) == numbers
    assert all(figure.claim for figure in figures("mlbroker").values())


def test_a_cost_at_its_bound_is_drawn_on_the_logarithmic_axis():
    """And ticks say per cent as plain numbers, at the values that were run."""
    rows = [
        {"slots": slots, "algorithm": name, "seed": 0, "ratio": ratio}
        for slots in (10, 50)
        for name, ratio in (("central", 1.01), ("mlbroker-tight", 1.0))
    ]
    axes = excess_lines("slots", "slots")(pd.DataFrame(rows)).axes[0]
    drawn = sorted({round(float(y), 6) for line in axes.lines for y in line.get_ydata()})
    assert drawn[0] == SMALLEST_EXCESS
    assert drawn[-1] == pytest.approx(1)
    assert axes.get_xticks().tolist() == [10, 50]
    assert axes.yaxis.get_major_formatter()(0.001) == "0.001"


def test_figure_5_does_not_magnify_rounding():
    rows = [
        {"centers": n, "epsilon": 0.1, "case": "chord", "seed": 0, "ratio": 1 + 1e-7 * n}
        for n in (3, 5)
    ]
    axes = fractional_lines(pd.DataFrame(rows)).axes[0]
    assert axes.get_ylim()[1] >= 1.01
    assert axes.get_title("left") == "chord"


@pytest.mark.parametrize("number", ["15", "table-4", "table-5", "5", "6", "11"])
def test_runs_and_draws(number):
    figure = figures("mlbroker")[number]
    news = []
    table = figure.run(QUICK, news.append)
    assert len(table) > 1
    assert not table.drop(columns=["seed"]).select_dtypes("number").isna().any().any()
    assert figure.draw(table).axes
    if number == "15":
        total = table.set_index("algorithm")["total"]
        assert total["mlbroker-tight"] < total["central"] < total["mlbroker"]
        assert len(news) == len(table)
