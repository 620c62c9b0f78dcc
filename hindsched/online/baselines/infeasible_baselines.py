"""Rivals of several families where one of them forbids offline what they do."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from hindsched.online.baselines.fair_rounds import Gavel, Themis
from hindsched.online.baselines.optimus import Optimus
from hindsched.online.baselines.priority_baselines import LeastAttained, ShortestRemaining
from hindsched.online.baselines.sia import Sia
from hindsched.online.protocol import OnlineAlgorithm
from hindsched.online.registry import Factory

Rival = TypeVar("Rival", bound=OnlineAlgorithm)


def outside(rival: type[Rival]) -> type[Rival]:
    """The rival for a family whose offline problem forbids to pause, resize or move a job.

    Parameters
    ----------
    rival : type
        The rival's class.

    Returns
    -------
    type
        The same under the same name, outside the feasible set.
    """
    body = {"feasible_set": False, "__doc__": rival.__doc__, "__module__": rival.__module__}
    return type(rival.__name__, (rival,), body)


def outside_rivals(*, rigid: bool) -> dict[str, Factory]:
    """Those that every such family has, by name.

    Parameters
    ----------
    rigid : bool
        Whether a job keeps its number of workers, unless a setting says otherwise.
    """
    shortest, least = outside(ShortestRemaining), outside(LeastAttained)
    return {
        "shortest-remaining": partial(shortest, elastic=False) if rigid else shortest,
        "least-attained": partial(least, elastic=False) if rigid else least,
        "optimus": outside(Optimus),
        "gavel": outside(Gavel),
        "themis": outside(Themis),
        "sia": outside(Sia),
    }
