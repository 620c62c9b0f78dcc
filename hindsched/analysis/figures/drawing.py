"""Drawings that several figures share: a line or a bar a scheme, with the spread over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindsched.analysis.plots.style import MARKERS, colour, common_look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture


@common_look
def draw_lines(
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    panels: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    feasible: str | None = None,
) -> Picture:
    """Mean of `y` over the seeds as a line against `x` a value of `by`, bars from least to most.

    Parameters
    ----------
    frame : DataFrame
        Tidy rows with the columns named; rows where `y` is missing are left out.
    x, y, by : str
        Columns.
    x_label, y_label, title : str
        Texts with units.
    panels : str, optional
        A column: one panel a value, side by side.
    log_x, log_y : bool
        Logarithmic axes.
    feasible : str, optional
        A column: series for which it is False anywhere are dashed and starred, as being outside
        the problem's feasible set.

    Returns
    -------
    matplotlib Figure
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter, ScalarFormatter

    values = [None] if panels is None else list(dict.fromkeys(frame[panels]))
    figure, grid = plt.subplots(
        1, len(values), figsize=(1.6 + 4.0 * len(values), 3.4), sharey=True, squeeze=False
    )
    series = list(dict.fromkeys(frame[by]))
    outside = set() if feasible is None else set(frame.loc[~frame[feasible].astype(bool), by])
    for axes, value in zip(grid[0], values, strict=True):
        part = frame if value is None else frame[frame[panels] == value]
        for index, name in enumerate(series):
            own = part[part[by] == name].dropna(subset=[y])
            if own.empty:
                continue
            stats = own.groupby(x, sort=True)[y].agg(["mean", "min", "max"])
            spread = [stats["mean"] - stats["min"], stats["max"] - stats["mean"]]
            wide = max(0.0, 1.0 - 0.5 * index)  # the first lines stay visible under later ones
            axes.errorbar(
                stats.index, stats["mean"], yerr=spread, color=colour(index), capsize=2,
                label=str(name) + " *" * (name in outside) + left_out(frame, by, name, y),
                linestyle="--" if name in outside else "-", linewidth=1.3 + wide,
                marker=MARKERS[index % len(MARKERS)], markersize=4 + 2 * wide,
            )  # fmt: skip
        axes.set_xlabel(x_label)
        if value is not None:
            axes.set_title(f"{panels} = {value}")
        if log_x:
            axes.set_xscale("log")
        if log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(ScalarFormatter())
            # Labels between the decades only where the axis spans hardly more than one.
            axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    grid[0][0].set_ylabel(y_label)
    heading = by.replace("_", " ")
    if outside:
        heading += "\n(* outside the feasible set)"
    grid[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=heading)
    if title:
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure


def left_out(frame: pd.DataFrame, by: str, name: object, y: str) -> str:
    """What a legend says of runs without a value, which no mean is over; empty if all have one."""
    values = frame.loc[frame[by] == name, y]
    missing = int(values.isna().sum())
    return f" ({missing} of {len(values)} runs without a value)" if missing else ""


@common_look
def draw_bars(
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    panels: str | None = None,
) -> Picture:
    """Mean of `y` over the seeds as grouped bars, one group a value of `x`, a bar a value of `by`.

    The whiskers run from the least to the most; a value of the column `panels` has a panel of its
    own. Returns the matplotlib figure.
    """
    import matplotlib.pyplot as plt
    import numpy as np

    groups, series = list(dict.fromkeys(frame[x])), list(dict.fromkeys(frame[by]))
    values = [None] if panels is None else list(dict.fromkeys(frame[panels]))
    wide = 2.4 + 0.28 * len(groups) * (len(series) + 1) * len(values)
    figure, grid = plt.subplots(1, len(values), figsize=(wide, 3.4), squeeze=False)
    width = 0.8 / len(series)
    for axes, value in zip(grid[0], values, strict=True):
        part = frame if value is None else frame[frame[panels] == value]
        for index, name in enumerate(series):
            own = part[part[by] == name].groupby(x)[y].agg(["mean", "min", "max"]).reindex(groups)
            place = np.arange(len(groups)) + (index - (len(series) - 1) / 2) * width
            spread = np.nan_to_num([own["mean"] - own["min"], own["max"] - own["mean"]])
            axes.bar(place, own["mean"], width, color=colour(index),
                     label=str(name) + left_out(frame, by, name, y),
                     yerr=spread, error_kw={"linewidth": 0.8}, capsize=2)  # fmt: skip
        axes.set_xticks(range(len(groups)), [str(group) for group in groups])
        axes.set_xlabel(x_label)
        if value is not None:
            axes.set_title(f"{panels} = {value}")
        elif title:
            axes.set_title(title)
    grid[0][0].set_ylabel(y_label)
    if len(series) > 1:
        grid[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    if title and panels is not None:
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure
