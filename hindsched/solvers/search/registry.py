"""Searches for schedules that go on beside a bound: a family's own, or the one for all families."""

from __future__ import annotations

import math
from collections.abc import Callable

from hindsched.arrays import Floats
from hindsched.instances.base import family_module, has_module
from hindsched.solutions.base import Solution
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.search.base import Search
from hindsched.solvers.search.neighbourhood import NeighbourhoodSearch


def search_of(
    oracle: BlockOracle,
    prices: Floats,
    *,
    seed: int = 0,
    start: Solution | None = None,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> Search:
    """The search of an oracle's family, with one linking row a server; see `NeighbourhoodSearch`.

    A family's ``solvers/methods/FAMILY/search.py`` says None where its own search cannot be used.
    """
    family, found = oracle.instance.family, None
    if has_module("solvers.families", family, "search"):
        own = family_module("solvers.families", family, "search")
        found = own.search_of(oracle, prices, seed=seed, start=start, seconds_left=seconds_left)
    return found or NeighbourhoodSearch(oracle, prices, seed=seed, start=start)
