"""How a figure's table is drawn: lines, bars or points, with the spread over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindsched.analysis.plots.style import GREY, MARKERS, colour, common_look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Plot:
    """A drawing of a table; its columns are the labels.

    Parameters
    ----------
    x, y : str
        Columns.
    by : str
        Column: a line, bar or colour a value.
    kind : {"lines", "bars", "points"}
        Lines and bars show means with whiskers from least to most; points every row.
    panels : str, optional
        A column: one panel a value, side by side.
    log_x, log_y : bool
        Logarithmic axes.
    percent : bool
        Draw by how many per cent `y` is above 1, for ratios of costs.
    """

    x: str
    y: str
    by: str = "scheme"
    kind: str = "lines"
    panels: str | None = None
    log_x: bool = False
    log_y: bool = False
    percent: bool = False


@common_look
def draw(
    frame: pd.DataFrame, plot: Plot, *, title: str = "", levels: Sequence[float] = ()
) -> Picture:
    """Draw a table.

    Parameters
    ----------
    frame : DataFrame
        Rows with the plot's columns; rows where `y` is missing are counted in the legend. Series
        for which ``in_feasible_set`` is False anywhere are dashed and starred.
    plot : Plot
        How.
    title : str
        Heading.
    levels : sequence of float
        Values that the paper's text states, as dotted lines.
    """
    import matplotlib.pyplot as plt

    frame = frame if plot.x in frame else frame.assign(**{plot.x: ""})
    y = plot.y
    if plot.percent:
        y = f"{plot.y}: % above 1"
        frame = frame.assign(**{y: 100 * (frame[plot.y].astype(float) - 1)})
    values = [None] if plot.panels is None else list(dict.fromkeys(frame[plot.panels]))
    size = (1.8 + 4.2 * len(values), 3.4)
    figure, grid = plt.subplots(1, len(values), figsize=size, sharey=True, squeeze=False)
    series = list(dict.fromkeys(frame[plot.by]))
    outside: set[Any] = set()
    if "in_feasible_set" in frame:
        outside = set(frame.loc[~frame["in_feasible_set"].astype(bool), plot.by])
    groups = list(dict.fromkeys(frame[plot.x]))
    for axes, value in zip(grid[0], values, strict=True):
        part = frame if value is None else frame[frame[plot.panels] == value]
        for index, name in enumerate(series):
            own = part[part[plot.by] == name].dropna(subset=[y])
            if own.empty:
                continue
            label = str(name) + " *" * (name in outside) + _left_out(frame, plot.by, name, y)
            look = {"color": colour(index), "label": label}
            if plot.kind == "points":
                axes.scatter(own[plot.x], own[y], s=14, marker=MARKERS[index % 8], **look)
                continue
            stats = own.astype({y: float}).groupby(plot.x, sort=plot.kind == "lines")[y]
            mean, least, most = stats.mean(), stats.min(), stats.max()
            if plot.kind == "lines":
                axes.errorbar(
                    mean.index, mean, yerr=[mean - least, most - mean], capsize=2,
                    linestyle="--" if name in outside else "-", marker=MARKERS[index % 8],
                    markersize=4, linewidth=1.3, **look,
                )  # fmt: skip
            else:
                width = 0.8 / len(series)
                shift = (index - (len(series) - 1) / 2) * width
                place = [groups.index(group) + shift for group in mean.index]
                axes.bar(place, mean, width, yerr=[mean - least, most - mean], capsize=2, **look)
        for level in levels:
            axes.axhline(level, color=GREY, linewidth=1.0, linestyle=":", zorder=0)
        if plot.kind == "bars":
            axes.set_xticks(range(len(groups)), [str(group) for group in groups])
        axes.set_xscale("log" if plot.log_x else axes.get_xscale())
        axes.set_yscale("log" if plot.log_y else axes.get_yscale())
        axes.set_xlabel(plot.x.replace("_", " "))
        axes.set_title("" if value is None else f"{plot.panels} = {value}")
    grid[0][0].set_ylabel(y.replace("_", " "))
    heading = plot.by.replace("_", " ") + ("\n(* outside the feasible set)" if outside else "")
    grid[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=heading)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure


def _left_out(frame: pd.DataFrame, by: str, name: object, y: str) -> str:
    """What a legend says of runs without a value, which no mean is over; empty if all have one."""
    values = frame.loc[frame[by] == name, y]
    missing = int(values.isna().sum())
    return f" ({missing} of {len(values)} runs without a value)" if missing else ""
