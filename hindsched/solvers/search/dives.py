"""Schedules at scale that a family makes from prices, one dive after the other.

A family that knows a better way to a first schedule than insertion names it: ``DIVE`` of its module
``dive``. A dive is done in pieces, so that others take turns with it, and is given up where what is
left of the time will not do. What dives make better, window by window, once there is a schedule is
``WINDOWS`` of its module ``windows``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Event
from typing import Protocol

from hindsched.arrays import Floats
from hindsched.errors import SolveFailed
from hindsched.instances.base import family_module, has_module
from hindsched.solutions.base import Solution
from hindsched.solvers.door.work import now
from hindsched.solvers.methods.base import better
from hindsched.solvers.oracles.base import BlockOracle

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


class Windows(Protocol):
    """Dives into windows of schedules."""

    @property
    def are_none(self) -> bool:
        """Whether the horizon has none."""

    def next(self, prices: Floats, solution: Solution) -> Dive | None:
        """A dive that makes a schedule better, if anything; None where none is left to try."""


MakeWindows = Callable[[BlockOracle, int, int, Event], Windows]
"""``make(oracle, number, of, interrupted)``: which of several at the same time."""


def dive_of(family: str) -> MakeDive | None:
    """How a family dives, if it does."""
    if not has_module("solvers.families", family, "dive"):
        return None
    found: MakeDive = family_module("solvers.families", family, "dive").DIVE
    return found


def windows_of(family: str) -> MakeWindows | None:
    """What makes a family's schedules better by dives, if anything does."""
    if not has_module("solvers.families", family, "windows"):
        return None
    found: MakeWindows = family_module("solvers.families", family, "windows").WINDOWS
    return found


class Dives:
    """Dives one after the other, while the time left is enough for them.

    The first, or where it would not end in time what is known, is followed by dives into windows
    of the best schedule, and once these gain nothing more by the next.

    Parameters
    ----------
    oracle : BlockOracle
        Oracle in the family's default layout.
    number, of : int
        Which of those who dive at the same time this is, and how many they are.
    interrupted : Event
        Set by Ctrl-C: ends a piece.

    Attributes
    ----------
    seconds : float
        What the dive that was worked on last has taken so far.
    """

    def __init__(self, oracle: BlockOracle, number: int, of: int, interrupted: Event) -> None:
        family = oracle.instance.family
        self._make = dive_of(family)
        self._oracle, self._numbers, self._interrupted = oracle, count(number, of), interrupted
        windows = windows_of(family)
        self._windows = None if windows is None else windows(oracle, number, of, interrupted)
        self._dive: Dive | None = None
        self._known: Solution | None = None
        self.seconds = self._longest = 0.0
        self._of_windows = self._has_dived = False
        self.is_over = self._make is None
        self.have_windows = self._windows is not None and not self._windows.are_none

    @property
    def is_diving(self) -> bool:
        """Whether a dive has begun that is not over."""
        return self._dive is not None

    def work(
        self,
        prices: Floats,
        objective: float,
        best: Callable[[], Solution | None],
        seconds_left: Callable[[], float],
        stop: Callable[[], bool],
    ) -> Solution | None:
        """Go on until `stop` says so or a dive is over; its solution, if it has one.

        Parameters
        ----------
        prices, objective
            Of the bound and of the best solution, where a new dive begins.
        best : callable
            The best solution.
        seconds_left : callable
            What is left of the time for everything.
        stop : callable
            Asked before every piece.

        Raises
        ------
        SolveFailed
            If the family's own checker finds a constraint broken: an error in its dive.
        """
        while not self.is_over and not stop():
            left = seconds_left()
            if self._dive is None:
                self._dive = self._next(prices, objective, best, left)
                self.seconds = 0.0
            if self._dive is None:
                self.is_over = True
                break
            if (to_go := self._dive.seconds_to_go()) > left:
                self._give_up(to_go)
                continue
            begin = now()
            self._dive.step(SHARE_OF_PIECE * left)
            self.seconds += now() - begin
            if self._dive.is_over:
                return self._finish(self._dive)
        return None

    def _next(
        self,
        prices: Floats,
        objective: float,
        best: Callable[[], Solution | None],
        seconds_left: float,
    ) -> Dive | None:
        """The next dive; None where none would end in time."""
        assert self._make is not None
        self._known = best() if self._has_dived and self._windows is not None else None
        if self._known is not None and self._windows is not None:
            found = self._windows.next(prices, self._known)
            self._of_windows = found is not None
            if found is not None:
                return found
        if self._longest > SHARE_OF_NEXT * seconds_left:
            return None
        number = next(self._numbers)
        return self._make(self._oracle, prices, objective, number, self._interrupted)

    def _give_up(self, to_go: float) -> None:
        """End a dive that would not end in time; windows of what is known may."""
        self.is_over = self._of_windows or self._windows is None
        if not self._of_windows:
            self._longest, self._has_dived = max(self._longest, self.seconds + to_go), True
        self._dive = None

    def _finish(self, dive: Dive) -> Solution | None:
        """What a dive that is over has found, if that is news."""
        self._dive = None
        if not self._of_windows:
            self._longest, self._has_dived = max(self._longest, self.seconds), True
        found = dive.solution()
        self.is_over = found is None and not self._of_windows
        if found is None or better(self._known, found) is self._known:
            return None
        if broken := found.violations():
            raise SolveFailed(f"a dive broke {broken[0]}")
        return found
