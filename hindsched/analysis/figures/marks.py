"""The paper's own values in a drawing, in grey: only what its text or tables state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

GREY = "0.55"


@dataclass(frozen=True)
class Level:
    """A value on the vertical axis that the paper states for all of a figure."""

    value: float


@dataclass(frozen=True)
class Points:
    """Values that the paper states at places of the horizontal axis, in one panel."""

    panel: int
    values: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RankedBars:
    """Values of horizontal bars by the bars' names, in one panel."""

    values: tuple[tuple[str, float], ...]
    panel: int = 0


@dataclass(frozen=True)
class GroupedBars:
    """Values of grouped bars by the group's and the series' name."""

    values: tuple[tuple[str, str, float], ...]


Mark = Level | Points | RankedBars | GroupedBars


def draw_marks(figure: Any, marks: Sequence[Mark]) -> None:
    """Add marks to a matplotlib figure; a bar that was not run has no mark."""
    for mark in marks:
        if isinstance(mark, Level):
            for axes in figure.axes:
                axes.axhline(mark.value, color=GREY, linewidth=1.0, linestyle=":", zorder=0)
        elif isinstance(mark, Points):
            x, y = zip(*mark.values, strict=True)
            figure.axes[mark.panel].plot(x, y, "D", color=GREY, markersize=4, zorder=5)
        elif isinstance(mark, RankedBars):
            _mark_ranked(figure.axes[mark.panel], dict(mark.values))
        else:
            _mark_grouped(figure.axes[0], mark)


def _mark_ranked(axes: Any, values: dict[str, float]) -> None:
    """Bars are named by the ticks; what follows a name in brackets is a note."""
    panels = axes.get_shared_y_axes().get_siblings(axes)  # of which one only shows the names
    labels = max((panel.get_yticklabels() for panel in panels), key=len)
    for place, label in zip(axes.get_yticks(), labels, strict=True):
        name = label.get_text().split(" (")[0]
        if name in values:
            axes.plot([values[name]], [place], "D", color=GREY, markersize=4, zorder=5)


def _mark_grouped(axes: Any, mark: GroupedBars) -> None:
    groups = [label.get_text() for label in axes.get_xticklabels()]
    bars = {
        str(container.get_label()): list(container)
        for container in axes.containers
        if hasattr(container, "patches")
    }
    for group, series, value in mark.values:
        if group in groups and series in bars:
            bar = bars[series][groups.index(group)]
            x = bar.get_x() + bar.get_width() / 2
            axes.plot([x], [value], "D", color=GREY, markersize=4, zorder=5)
