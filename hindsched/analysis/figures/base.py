"""What a paper's figure is: an experiment that yields a tidy table, and a drawing of that table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindsched.errors import InputError
from hindsched.instances.base import family_module

if TYPE_CHECKING:
    import pandas as pd

QUICK_SEEDS, FULL_SEEDS = 1, 5


@dataclass(frozen=True)
class FigureScale:
    """How large to run an experiment.

    Parameters
    ----------
    quick : bool
        A small version of the same experiment that ends within about 20 seconds.
    seeds : int
        Number of seeds; the spread over them is shown.
    """

    quick: bool = False
    seeds: int = FULL_SEEDS

    def pick(self, full: Any, quick: Any) -> Any:
        """Choose between the full and the quick setting."""
        return quick if self.quick else full


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
    """

    number: str
    title: str
    claim: str
    run: Callable[[FigureScale, Callable[[str], None]], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Any]


def figures(family: str) -> dict[str, Figure]:
    """Figures of a family's paper by number."""
    found: dict[str, Figure] = family_module("analysis.figures", family, "figures").FIGURES
    return found


def figure(family: str, number: str) -> Figure:
    """Find one figure; `InputError` for a number that the family does not have."""
    known = figures(family)
    if number not in known:
        raise InputError("number", number, f"{family} has the figures {', '.join(known)}")
    return known[number]
