"""What a paper's figure is: an experiment that yields a tidy table, and a drawing of that table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hindsched.analysis.figures.drawing import Plot, draw
from hindsched.analysis.figures.scale import FULL_SEEDS as FULL_SEEDS
from hindsched.analysis.figures.scale import QUICK_SEEDS as QUICK_SEEDS
from hindsched.analysis.figures.scale import FigureScale as FigureScale
from hindsched.analysis.figures.scale import TraceInput as TraceInput
from hindsched.errors import InputError
from hindsched.instances.base import check_family, family_module, has_module

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture

OnRow = Callable[[str], None]
"""Called after each finished run, for progress."""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper as an experiment.

    Parameters
    ----------
    number : str
        The paper's number, for example ``"3"`` or ``"4a"``.
    title : str
        What it shows.
    claim : str
        What the paper claims of it.
    run : callable
        ``run(scale, on_row)`` -> tidy pandas frame, one row per (setting, algorithm, seed).
    plot : Plot
        How the frame is drawn.
    traced : bool
        Whether the paper runs it on a trace, so that ``--from-trace`` has a meaning.
    levels : tuple of float
        Values that the paper's text states, drawn in grey.
    """

    number: str
    title: str
    claim: str
    run: Callable[[FigureScale, OnRow], pd.DataFrame]
    plot: Plot
    traced: bool = False
    levels: tuple[float, ...] = ()

    def picture(self, frame: pd.DataFrame) -> Picture:
        """Draw the table, and the paper's own values as grey lines."""
        return draw(frame, self.plot, title=self.title, levels=self.levels)


@cache
def figures(family: str) -> dict[str, Figure]:
    """Figures of a family's paper by number; none for a family that has no paper of its own."""
    check_family(family)
    if not has_module("analysis.figures", family, "figures"):
        return {}
    found: list[Figure] = family_module("analysis.figures", family, "figures").FIGURES
    return {figure.number: figure for figure in found}


def figure(family: str, number: str) -> Figure:
    """Find one figure; `InputError` for a number that the family does not have."""
    known = figures(family)
    if number not in known:
        has = f"has the figures {', '.join(known)}" if known else "has no figures"
        raise InputError("number", number, f"{family} {has}")
    return known[number]
