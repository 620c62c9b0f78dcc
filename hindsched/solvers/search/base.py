"""What searches for schedules have in common: they go on beside a bound, guided by its prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solvers.oracles.base import BlockOracle


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
