"""What a paper's figure is: an experiment that yields a tidy table, and a drawing of that table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hindsched.analysis.figures.marks import Mark, draw_marks
from hindsched.analysis.figures.scale import FULL_SEEDS as FULL_SEEDS
from hindsched.analysis.figures.scale import QUICK_SEEDS as QUICK_SEEDS
from hindsched.analysis.figures.scale import FigureScale as FigureScale
from hindsched.analysis.figures.scale import TraceInput as TraceInput
from hindsched.errors import InputError
from hindsched.instances.base import check_family, family_module, has_module

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture


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
        ``run(scale, on_row)`` -> tidy pandas frame, one row per (setting, algorithm, seed);
        ``on_row(text)`` is called after each finished run, for progress.
    draw : callable
        ``draw(frame)`` -> matplotlib figure; draws only what the frame holds.
    traced : bool
        Whether the paper runs it on a trace, so that ``--from-trace`` has a meaning.
    marks : tuple of Mark
        Values that the paper's text states, drawn in grey.
    """

    number: str
    title: str
    claim: str
    run: Callable[[FigureScale, Callable[[str], None]], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Picture]
    traced: bool = False
    marks: tuple[Mark, ...] = ()

    def picture(self, frame: pd.DataFrame) -> Picture:
        """Draw the table, and the paper's own values as grey marks."""
        made = self.draw(frame)
        draw_marks(made, self.marks)
        return made


def figures(family: str) -> dict[str, Figure]:
    """Figures of a family's paper by number; none for a family that has no paper of its own."""
    check_family(family)
    if not has_module("analysis.figures", family, "figures"):
        return {}
    found: dict[str, Figure] = family_module("analysis.figures", family, "figures").FIGURES
    return found


def with_marks(
    found: dict[str, Figure], marks: dict[str, tuple[Mark, ...]], traced: tuple[str, ...] = ()
) -> dict[str, Figure]:
    """Add the paper's values to the figures, and say which of them the paper runs on a trace."""
    return {
        number: replace(figure, marks=marks.get(number, ()), traced=number in traced)
        for number, figure in found.items()
    }


def figure(family: str, number: str) -> Figure:
    """Find one figure; `InputError` for a number that the family does not have."""
    known = figures(family)
    if number not in known:
        has = f"has the figures {', '.join(known)}" if known else "has no figures"
        raise InputError("number", number, f"{family} {has}")
    return known[number]
