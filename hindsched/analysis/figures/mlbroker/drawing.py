"""How mlbroker's tables are drawn: lines with ticks at the values run, and ranked bars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hindsched.analysis.figures.drawing import draw_bars, draw_lines
from hindsched.analysis.plots.style import colour, common_look
from hindsched.instances.mlbroker.instance import COSTS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture

Draw = Callable[["pd.DataFrame"], Any]
EXCESS = "above the certified bound (%)"
SMALLEST_EXCESS = 0.001
"""Per cent: what a logarithmic axis shows for a cost that equals its bound."""


def lines(x: str, y: str, by: str, x_label: str, y_label: str, **more: Any) -> Draw:
    """Draw lines of `y` against `x`, with ticks at the values of `x` that were run."""

    def draw(frame: pd.DataFrame) -> Picture:
        figure = draw_lines(frame, x, y, by, x_label=x_label, y_label=y_label, **more)
        for axes in figure.axes:
            axes.set_xticks(sorted(frame[x].unique()))
        return figure

    return draw


def excess_lines(x: str, x_label: str) -> Draw:
    """Draw how far each algorithm is above the certified bound, in per cent, logarithmic."""
    draw_excess = lines(x, "excess", "algorithm", x_label, EXCESS, log_y=True)

    def draw(frame: pd.DataFrame) -> Picture:
        excess = (100 * (frame["ratio"] - 1)).clip(lower=SMALLEST_EXCESS)
        figure = draw_excess(frame.assign(excess=excess))
        for axes in figure.axes:
            axes.yaxis.set_major_formatter("{x:g}")
        return figure

    return draw


def fractional_lines(frame: pd.DataFrame) -> Picture:
    """Figure 5: the ratio's axis goes to 1.01 at least, so that nothing is drawn as something."""
    figure = lines(
        "centers", "ratio", "epsilon", "data centres", "A_fractional / P_f", panels="case"
    )(frame)
    for axes in figure.axes:
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set_ylim(min(0.9995, axes.get_ylim()[0]), max(1.01, axes.get_ylim()[1]))
        axes.set_title(axes.get_title("left").removeprefix("case = "), loc="left")
    return figure


def ranked(x: str, x_label: str) -> Draw:
    """Draw one bar an algorithm."""

    def draw(frame: pd.DataFrame) -> Picture:
        return draw_ranked(frame, x, x_label)

    return draw


def draw_measures(frame: pd.DataFrame) -> Picture:
    """Table 5: hours, and the share of the full price that was paid, side by side."""
    words = {"instance_hours": "instance-hours", "discount_rate": "paid / full price"}
    measures = frame.rename(columns=words).melt(
        id_vars=["algorithm", "seed"], value_vars=list(words.values()), var_name="measure"
    )
    return draw_ranked(measures, "value", "", "measure")


def draw_excess_bars(frame: pd.DataFrame) -> Picture:
    """The ablation: how far each variant is above the certified bound, a panel a setting."""
    excess = frame.assign(excess=100 * (frame["ratio"] - 1))
    return draw_ranked(excess, "excess", EXCESS, "setting")


def draw_parts(frame: pd.DataFrame) -> Picture:
    """Table 4: the total and the four costs, a bar an algorithm."""
    parts = frame.melt(
        id_vars=["algorithm", "seed"],
        value_vars=["total", *COSTS],
        var_name="cost",
        value_name="usd",
    )
    return draw_bars(parts, "cost", "usd", "algorithm", x_label="", y_label="cost (USD)")


@common_look
def draw_ranked(frame: pd.DataFrame, x: str, x_label: str, panels: str | None = None) -> Picture:
    """Mean of `x` over the seeds as a horizontal bar an algorithm, least to most as whiskers.

    Our algorithms have a colour of their own.

    Parameters
    ----------
    frame : DataFrame
        Rows with ``algorithm``, `x` and `panels`.
    x, x_label : str
        Column and its text with unit.
    panels : str, optional
        A column: one panel a value, side by side.
    """
    import matplotlib.pyplot as plt
    import numpy as np

    values = [None] if panels is None else list(dict.fromkeys(frame[panels]))
    names = list(dict.fromkeys(frame["algorithm"]))
    figure, grid = plt.subplots(
        1, len(values), figsize=(2.2 + 3.0 * len(values), 0.8 + 0.3 * len(names)), sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axes, value in zip(grid[0], values, strict=True):
        part = frame if value is None else frame[frame[panels] == value]
        stats = part.groupby("algorithm")[x].agg(["mean", "min", "max"]).reindex(names)
        spread = np.nan_to_num([stats["mean"] - stats["min"], stats["max"] - stats["mean"]])
        place = np.arange(len(names))
        ours = [0 if name.startswith("mlbroker-") else 1 for name in names]
        axes.barh(place, stats["mean"], 0.7, xerr=spread, color=[colour(c) for c in ours],
                  error_kw={"linewidth": 0.8}, capsize=2)  # fmt: skip
        for at, mean in zip(place, stats["mean"], strict=True):
            axes.annotate(f" {mean:.3g}", (mean, at), va="center", fontsize=7)
        own = [" (ours)" if name.startswith("mlbroker-") else "" for name in names]
        axes.set_yticks(place, [name + note for name, note in zip(names, own, strict=True)])
        axes.margins(x=0.16)
        axes.set_xlabel(x_label)
        if value is not None:
            axes.set_title(str(value))
    grid[0][0].invert_yaxis()
    return figure
