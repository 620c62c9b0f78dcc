"""Baselines for families whose offline problem forbids what they do: to pause, resize or move."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from hindsched.online.base import Factory
from hindsched.online.baselines.baseline import Optimus
from hindsched.online.baselines.fair_rounds import Gavel, Themis
from hindsched.online.baselines.ranked import LeastAttained, ShortestRemaining
from hindsched.online.baselines.sia import Sia
from hindsched.online.protocol import OnlineAlgorithm

Algorithm = TypeVar("Algorithm", bound=OnlineAlgorithm)


def relaxing(baseline: type[Algorithm]) -> type[Algorithm]:
    """The same class under the same name, that says that it relaxes constraints."""
    attributes = {"__doc__": baseline.__doc__, "__module__": baseline.__module__}
    return type(baseline.__name__, (baseline,), {"relaxes_constraints": True, **attributes})


def relaxing_baselines(*, rigid: bool) -> dict[str, Factory]:
    """Those that every such family has; `rigid` jobs keep their number of workers unless set."""
    shortest, least = relaxing(ShortestRemaining), relaxing(LeastAttained)
    return {
        "shortest-remaining": partial(shortest, elastic=False) if rigid else shortest,
        "least-attained": partial(least, elastic=False) if rigid else least,
        "optimus": relaxing(Optimus),
        "gavel": relaxing(Gavel),
        "themis": relaxing(Themis),
        "sia": relaxing(Sia),
    }
