"""The search of oasis: dives through the slots, as many as the time is enough for, then the others.

A dive (`dive.py`) makes a whole schedule; neighbourhoods make the best of them better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import cast

from hindsched.arrays import Floats
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import Solution
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.work import now
from hindsched.solvers.families.oasis.dive import Dive
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.oracles.base import BlockOracle
from hindsched.solvers.search.base import Search
from hindsched.solvers.search.neighbourhood import NeighbourhoodSearch

LEAST_TO_DIVE = 1_000
"""Jobs x slots below which inserting jobs finds as good schedules as a dive, and sooner."""
SHARE_OF_PIECE = 0.3
"""Share of the time left that one piece of a dive may take."""
SHARE_OF_NEXT = 0.8
"""A further dive begins where the longest one took less than this share of the time left."""
SHARE_OF_POLISH = 0.1
"""How long neighbourhoods go on after a dive, relative to the dive."""


class DivingSearch(NeighbourhoodSearch):
    """A neighbourhood search that begins by dives.

    Parameters
    ----------
    oracle, prices, seed, start
        As for `NeighbourhoodSearch`; the seed also says which dives come first.
    seconds_left : callable
        What is left of the time for everything.
    """

    def __init__(
        self,
        oracle: BlockOracle,
        prices: Floats,
        *,
        seed: int = 0,
        start: Solution | None = None,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        super().__init__(oracle, prices, seed=seed, start=start)
        instance = cast(OasisInstance, oracle.instance)
        self._groups = OasisOracle(instance, oracle.formulation, "groups")
        self._left, self._numbers = seconds_left, count(seed)
        self._dive: Dive | None = None
        self._longest, self._begun, self._has_dived = 0.0, 0.0, False

    def improve(self, stop: Callable[[], bool]) -> bool:
        """Go on with dives, then try neighbourhoods; whether the best became better."""
        before = self.objective
        while not self._has_dived and not stop():
            self._work_on_dive()
        super().improve(stop)
        return self.objective != before

    def _work_on_dive(self) -> None:
        """Do a piece of a dive; once it is over, take its schedule and polish it."""
        left = self._left()
        if self._dive is None:
            if self._longest > SHARE_OF_NEXT * left:
                self._has_dived = True
                return
            with catch_interrupt() as interrupted:
                prices = self._groups.prices_of_servers(self._prices)
                number, least = next(self._numbers), self.objective or 0.0
                self._dive = Dive(self._groups, prices, least, number, interrupted)
            self._begun = now()
        dive = self._dive
        dive.step(SHARE_OF_PIECE * left)
        seconds = now() - self._begun
        if not dive.is_over and dive.seconds_to_go() <= left:
            return
        self._longest = max(self._longest, seconds + dive.seconds_to_go())
        self._dive, self._has_dived = None, dive.failed or not dive.is_over
        found = dive.solution()
        if found is not None and found.is_feasible() and self.adopt(found):
            end = now() + SHARE_OF_POLISH * seconds
            super().improve(lambda: now() >= end)


def search_of(
    oracle: BlockOracle,
    prices: Floats,
    *,
    seed: int = 0,
    start: Solution | None = None,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> Search | None:
    """Return a search that dives, where instances are large enough for that to pay."""
    if oracle.num_blocks * oracle.instance.horizon < LEAST_TO_DIVE:
        return None
    return DivingSearch(oracle, prices, seed=seed, start=start, seconds_left=seconds_left)
