"""Drawings of Astraea's figures: lines and bars a scheme, and what only this paper has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hindsched.analysis.figures.drawing import draw_bars, draw_lines
from hindsched.analysis.plots.style import MARKERS, colour, common_look

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

Draw = Callable[[pd.DataFrame], "Picture"]


def drawn_lines(
    title: str, x: str, y: str, by: str = "scheme", *, x_label: str | None = None, **labels: Any
) -> Draw:
    """Prepare `draw_lines` with the paper's name before the title and `x` as its own label."""

    def draw(frame: pd.DataFrame) -> Picture:
        label = x if x_label is None else x_label
        return draw_lines(frame, x, y, by, title=f"Astraea, {title}", x_label=label, **labels)

    return draw


def drawn_bars(
    title: str, x: str, y: str, by: str = "scheme", *, x_label: str | None = None, **labels: Any
) -> Draw:
    """Prepare `draw_bars` likewise.

    Where `x` is no column, all rows are one group of this name.
    """

    def draw(frame: pd.DataFrame) -> Picture:
        label = x if x_label is None else x_label
        grouped = frame if x in frame else frame.assign(**{x: x})
        return draw_bars(grouped, x, y, by, title=f"Astraea, {title}", x_label=label, **labels)

    return draw


@common_look
def draw_12(frame: pd.DataFrame) -> Picture:
    """One point an admitted job, and the line on which revenue equals cost."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.6, 3.4))
    for index, phase in enumerate(dict.fromkeys(frame["phase"])):
        own = frame[frame["phase"] == phase]
        axes.scatter(own["cost"], own["ideal_revenue"], s=14, label=phase,
                     color=colour(index), marker=MARKERS[index])  # fmt: skip
    most = float(np.nanmax(frame[["cost", "ideal_revenue"]].to_numpy()))
    axes.plot([0, most], [0, most], color="black", linewidth=0.8, label="revenue = cost")
    axes.set_xlabel("resource cost at posted prices")
    axes.set_ylabel("ideal revenue")
    axes.legend()
    figure.suptitle("Astraea, Fig. 12: ideal revenue and cost", fontsize=10, x=0.01, ha="left")
    return figure


@common_look
def draw_13(frame: pd.DataFrame) -> Picture:
    """Mean use over the seeds, a step a slot; a slot past a run's end counts as idle.

    The legend gives the mean makespan.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 3.4))
    for index, (scheme, own) in enumerate(frame.groupby("scheme", sort=False)):
        mean = own.groupby("slot")["utilisation"].sum() / own["seed"].nunique()
        makespan = own.groupby("seed")["makespan"].first().mean()
        axes.step(mean.index, mean, where="mid", label=f"{scheme} ({makespan:.0f})",
                  color=colour(index), linewidth=1.1)  # fmt: skip
    axes.set_xscale("log")  # intervals double
    axes.set_xlabel("slot")
    axes.set_ylabel("share of workers in use")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="scheme (makespan)")
    figure.suptitle("Astraea, Fig. 13: utilisation", fontsize=10, x=0.01, ha="left")
    return figure


@common_look
def draw_table_2(frame: pd.DataFrame) -> Picture:
    """Both columns of the table against the number of tenants: mean, least and most."""
    import matplotlib.pyplot as plt

    columns = (("revenue_per_job", "revenue a job"), ("variance", "variance of fairness ratios"))
    figure, both = plt.subplots(1, 2, figsize=(7.2, 3.0))
    for axes, (column, label) in zip(both, columns, strict=True):
        stats = frame.groupby("tenants")[column].agg(["mean", "min", "max"])
        spread = [stats["mean"] - stats["min"], stats["max"] - stats["mean"]]
        axes.errorbar(stats.index, stats["mean"], yerr=spread, color=colour(0), marker="o",
                      markersize=4, linewidth=1.3, capsize=2)  # fmt: skip
        axes.set_xlabel("tenants")
        axes.set_ylabel(label)
        axes.set_xticks(stats.index)
        axes.set_ylim(0, 1.1 * stats["max"].max())
    figure.suptitle("Astraea, Table 2: the number of tenants", fontsize=10, x=0.01, ha="left")
    return figure
