"""Ratio chart: the interval of each algorithm's competitive ratio on each instance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hindsched.analysis.plots.style import GREY, colour, common_look, marker, new_axes
from hindsched.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOG_BEYOND, LOG_LEFT = 8.0, 0.92
LOG_TICKS = [digit * 10.0**power for power in range(9) for digit in (1, 2, 5)]


@common_look
def plot_ratios(
    comparison: Any,
    ax: Axes | None = None,
    *,
    family: str | None = None,
) -> Axes:
    """Draw a line from lower to upper end per algorithm and instance; 1 is perfect.

    Parameters
    ----------
    comparison : Comparison, InstanceComparison or DataFrame
        What `compare` or `ratio` returned, or the frame of runs that it became.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None for a new figure.
    family : str, optional
        Only this family.

    Examples
    --------
    >>> import hindsched as hs
    >>> found = hs.ratio(hs.generate("oasis", seed=2), ["oasis"], time_limit=1, progress=False)
    >>> [label.get_text() for label in hs.plot.ratios(found).get_yticklabels()]
    ['oasis']
    """
    frame = comparison if hasattr(comparison, "groupby") else comparison.to_frame()
    frame = frame if family is None or not len(frame) else frame[frame["family"] == family]
    names = list(dict.fromkeys(frame["algorithm"])) if len(frame) else []
    if not names:
        raise InputError("family", family, "must have been compared")
    if ax is None:
        ax = new_axes(7.2, max(2.2, 1.1 + 0.42 * len(names)))
    groups = list(frame.groupby("instance", sort=False))
    legend = 1 < len(groups) <= 8
    offsets = np.linspace(-0.3, 0.3, len(groups)) if len(groups) > 1 else np.zeros(1)
    largest, drawn = 1.0, set()
    for index, ((instance, own), offset) in enumerate(zip(groups, offsets, strict=True)):
        label = str(instance) if legend else None
        for row in own.itertuples():
            known = [end for end in (row.ratio_lower, row.ratio_upper) if is_finite(end)]
            if not known:
                continue
            place = names.index(row.algorithm) + float(offset)
            _draw(ax, known, place, index if legend else 0, label)
            label = None
            drawn.add(row.algorithm)
            largest = max(largest, *known)
    ax.axvline(1.0, color="black", lw=0.8, zorder=1)
    if largest > LOG_BEYOND:
        ax.set_xscale("log")
        ax.set_xlim(LOG_LEFT, largest * 1.1)
        ax.set_xticks([tick for tick in LOG_TICKS if tick <= largest * 1.1])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    for place, name in enumerate(names):
        if name not in drawn:
            ax.text(
                0.15, place, "no finite ratio", color=GREY, va="center", fontsize=8,
                transform=ax.get_yaxis_transform(),
            )  # fmt: skip
    for border in range(1, len(names)):
        ax.axhline(border - 0.5, color="#D5D5D5", lw=0.6, zorder=0)
    ax.grid(False, axis="y")
    ax.set_xlabel("competitive ratio (1 is perfect; open ring: no upper end known)")
    title = family or ", ".join(dict.fromkeys(frame["family"]))
    ax.set_title(f"{title}: {groups[0][0] if len(groups) == 1 else f'{len(groups)} instances'}")
    if legend and ax.get_legend_handles_labels()[0]:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def is_finite(end: object) -> bool:
    """Whether an end of an interval is there and finite; frames have NaN for None."""
    return isinstance(end, int | float) and math.isfinite(end)


def _draw(ax: Axes, known: list[float], place: float, index: int, label: str | None) -> None:
    face = colour(index) if len(known) == 2 else "white"
    ax.plot(
        known,
        [place] * len(known),
        color=colour(index),
        marker=marker(index),
        mfc=face,
        ms=4,
        lw=1.6,
        label=label,
        zorder=2,
    )
