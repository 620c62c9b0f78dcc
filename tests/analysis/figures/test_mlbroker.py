"""mlbroker's figures: all of the paper's are there, and the small ones run and draw."""

import matplotlib as mpl
import pytest

from hindsched.analysis.figures.base import FigureScale, figures

mpl.use("Agg")
QUICK = FigureScale(quick=True, seeds=1)


def test_every_figure_and_table_of_the_paper():
    numbers = {str(number) for number in range(5, 18)} | {"table-4", "table-5", "ablation"}
    assert set(figures("mlbroker")) == numbers
    assert all(figure.claim for figure in figures("mlbroker").values())


@pytest.mark.parametrize("number", ["15", "table-4", "table-5", "5", "6", "11"])
def test_runs_and_draws(number):
    figure = figures("mlbroker")[number]
    news = []
    table = figure.run(QUICK, news.append)
    assert len(table) > 1
    assert not table.drop(columns=["seed"]).select_dtypes("number").isna().any().any()
    assert figure.picture(table).axes
    if number == "15":
        total = table.set_index("algorithm")["total"]
        assert total["mlbroker-tight"] < total["central"] < total["mlbroker"]
        assert len(news) == len(table)
