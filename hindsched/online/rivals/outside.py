"""A rival of several families where one of them forbids offline what it does."""

from __future__ import annotations

from typing import TypeVar

from hindsched.online.protocol import OnlineAlgorithm

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
