"""Searches for schedules that go on beside a bound, guided by its prices: a family's or for all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import family_module, has_module
from hindsched.solutions.base import Solution
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.search.neighbourhood import NeighbourhoodSearch


class Search(Protocol):
    """What `NeighbourhoodSearch` and the families' own searches have."""

    oracle: BlockOracle
    random: np.random.Generator
    iterations: int
    objective: float | None

    @property
    def is_complete(self) -> bool:
        """Whether there are schedules for all blocks that need one."""

    def set_prices(self, prices: Floats) -> None:
        """Follow other dual prices from now on."""

    def construct(self, stop: Callable[[], bool] = ...) -> None:
        """Insert all jobs anew."""

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Try neighbourhoods until `stop` says so; return whether the best became better."""

    def adopt(self, solution: Solution) -> bool:
        """Take a feasible solution as the best if it is."""

    def solution(self) -> Solution | None:
        """The best schedules as a checked solution."""


def search_of(
    oracle: BlockOracle,
    prices: Floats,
    *,
    seed: int = 0,
    start: Solution | None = None,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> Search:
    """The search of an oracle's family, with one linking row a server; see `NeighbourhoodSearch`.

    A family's ``solvers/families/FAMILY/search.py`` says None where its own search cannot be used.
    """
    family, found = oracle.instance.family, None
    if has_module("solvers.families", family, "search"):
        own = family_module("solvers.families", family, "search")
        found = own.search_of(oracle, prices, seed=seed, start=start, seconds_left=seconds_left)
    return found or NeighbourhoodSearch(oracle, prices, seed=seed, start=start)
