"""Figure 11 of the edge-cloud paper: submissions, utilisation over time and makespan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindsched.analysis.plots.style import colour, common_look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture


@common_look
def draw_utilisation(frame: pd.DataFrame) -> Picture:
    """Mean over the seeds: jobs submitted and busy edge workers by slot; makespans as bars.

    The bars' names and colours are the legend of the lines, too.

    Parameters
    ----------
    frame : DataFrame
        Rows with ``slot``, ``scheme``, ``seed``, ``submissions``, ``busy_share``, ``makespan``.

    Returns
    -------
    matplotlib Figure
    """
    import matplotlib.pyplot as plt

    figure, grid = plt.subplot_mosaic(
        [["jobs", "makespan"], ["busy", "makespan"]],
        figsize=(10, 4.6), height_ratios=[1, 3], width_ratios=[3, 1.4],
    )  # fmt: skip
    jobs, busy, makespan = grid["jobs"], grid["busy"], grid["makespan"]
    jobs.sharex(busy)
    submitted = frame.groupby("slot")["submissions"].mean()
    jobs.bar(submitted.index, submitted, width=1.0, color="0.6")
    jobs.set_ylabel("jobs submitted")
    jobs.tick_params(labelbottom=False)
    schemes = list(dict.fromkeys(frame["scheme"]))
    for index, name in enumerate(schemes):
        share = frame[frame["scheme"] == name].groupby("slot")["busy_share"].mean()
        style = "-" if index < 5 else "--"
        busy.plot(share.index, share, style, color=colour(index), linewidth=1.5)
    busy.set_xlabel("slot (h)")
    busy.set_ylabel("busy share of edge workers")
    busy.set_ylim(-0.02, 1.05)
    ends = frame.groupby(["scheme", "seed"])["makespan"].first().groupby("scheme")
    stats = ends.agg(["mean", "min", "max"]).reindex(schemes)
    spread = [stats["mean"] - stats["min"], stats["max"] - stats["mean"]]
    place = range(len(schemes))
    colours = [colour(index) for index in place]
    bars = makespan.barh(place, stats["mean"], xerr=spread, color=colours)
    makespan.bar_label(bars, fmt="%.0f", padding=3, fontsize=8)
    makespan.set_yticks(place, schemes)
    makespan.invert_yaxis()
    makespan.margins(x=0.15)
    makespan.set_xlabel("makespan (slots)")
    makespan.tick_params(axis="y", length=0)
    figure.suptitle(
        "Edge-cloud, Fig. 11: submissions, utilisation, makespan", fontsize=10, x=0.01, ha="left"
    )
    figure.tight_layout()
    return figure
