"""Schedules at scale that a family makes from prices, one dive after the other.

A family that knows a better way to a first schedule than insertion names it: ``DIVE`` of its module
``dive``. A dive is done in pieces, so that others take turns with it, and is given up where what is
left of the time will not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Protocol

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import family_module, has_module
from hindsched.solutions.base import Solution
from hindsched.solvers.pricing.base import BlockOracle
from hindsched.solvers.work import now

SHARE_OF_PIECE = 0.3
"""Share of the time left that one piece of a dive may take."""
SHARE_OF_NEXT = 0.8
"""A further dive begins where the last one took less than this share of the time left."""


class Dive(Protocol):
    """What makes one schedule, piece by piece."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""

    def seconds_to_go(self) -> float:
        """Estimate of what the rest takes; 0 as long as there is none."""

    def step(self, seconds: float) -> None:
        """Do one piece, in at most so many seconds."""

    def solution(self) -> Solution | None:
        """The schedule, once the dive is over; None if it failed."""


MakeDive = Callable[[BlockOracle, Floats, float, int, Event], Dive]
"""``make(oracle, prices, objective, number, interrupted)``; the number tells dives apart."""


def dive_of(family: str) -> MakeDive | None:
    """How a family dives, if it does."""
    if not has_module("solvers.methods", family, "dive"):
        return None
    found: MakeDive = family_module("solvers.methods", family, "dive").DIVE
    return found


class Dives:
    """Dives one after the other, while the time left is enough for them.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle in the family's default layout.
    numbers : iterator of int
        Which dives.
    interrupted : Event
        Set by Ctrl-C: ends a piece.
    """

    def __init__(self, oracle: BlockOracle, numbers: Iterator[int], interrupted: Event) -> None:
        self._make = dive_of(oracle.instance.family)
        self._oracle, self._numbers, self._interrupted = oracle, numbers, interrupted
        self._dive: Dive | None = None
        self._seconds = self._longest = 0.0
        self.is_over = self._make is None

    def work(
        self,
        prices: Floats,
        objective: float,
        seconds_left: Callable[[], float],
        stop: Callable[[], bool],
    ) -> Solution | None:
        """Go on until `stop` says so or a dive is over; its solution, if it has one.

        Parameters
        ----------
        prices, objective
            Of the bound and of the best solution, where a new dive begins.
        seconds_left : callable
            What is left of the time for everything.
        stop : callable
            Asked before every piece.

        Raises
        ------
        SolveFailed
            If the family's own checker finds a constraint broken: an error in its dive.
        """
        assert self._make is not None
        while not self.is_over and not stop():
            left = seconds_left()
            if self._dive is None:
                self.is_over = self._longest > SHARE_OF_NEXT * left
                if self.is_over:
                    break
                number = next(self._numbers)
                self._dive = self._make(self._oracle, prices, objective, number, self._interrupted)
                self._seconds = 0.0
            if self._dive.seconds_to_go() > left:
                self.is_over = True
                break
            begin = now()
            self._dive.step(SHARE_OF_PIECE * left)
            self._seconds += now() - begin
            if self._dive.is_over:
                self._longest = max(self._longest, self._seconds)
                found, self._dive = self._dive.solution(), None
                self.is_over = found is None
                if found is not None and (broken := found.violations()):
                    raise SolveFailed(f"a dive broke {broken[0]}")
                return found
        return None
