"""Windows of a schedule that are dived into anew, one after the other, as long as that gains.

A dive decides what comes late knowing little of what servers will waste until then, and breaks
promises. Once it is over the slots around a broken one can be decided anew, with the rest as it
stands: that program is small, and it knows who runs behind the window.

Windows overlap and sweep over the horizon, each sweep with another margin and moved by half a step;
where they gain nothing more, windows of other lengths may. Where several processes do so, each
begins elsewhere and has margins of its own; and what one gained in a window is tried in the better
schedule that another tells of.
"""

from __future__ import annotations

from itertools import count
from threading import Event
from typing import cast

from hindsched.arrays import Floats
from hindsched.solutions.base import Solution
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.families.oasis.dive import Dive
from hindsched.solvers.families.oasis.packing_inequalities import PackingInequalities
from hindsched.solvers.families.oasis.progress import Window, is_long, with_slots
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.oracles.base import BlockOracle

LENGTHS = (20, 40, 12, 28)
"""Slots of a window, from one to the next half of them. After a sweep that gained nothing those of
the next are of the next length, after one that did of the first."""
SWEEPS = 4
"""Sweeps without any gain after which they end."""


class Windows:
    """The windows of an instance, and which of them comes next.

    Parameters
    ----------
    oracle : OasisOracle
        In the layout of groups.
    number, of : int
        Which of those who try windows at the same time this is, and how many they are.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(self, oracle: BlockOracle, number: int, of: int, interrupted: Event) -> None:
        self._oracle, self._interrupted = cast(OasisOracle, oracle), interrupted
        self._inequalities = PackingInequalities(self._oracle, interrupted)
        self._margins, self._is_moved, self._length = count(number, of), False, LENGTHS[0]
        self._margin = next(self._margins)
        self._idle = -1  # sweeps without a gain, below 0 in one that has gained
        step = self._length // 2
        self._first = 1 + step * (number * oracle.instance.horizon // (of * step))
        self._dive: Dive | None = None
        self._gained: list[Window] = []

    @property
    def are_none(self) -> bool:
        """Whether there are none: where several whole dives fit in the time."""
        return not is_long(self._oracle)

    def next(self, prices: Floats, solution: Solution) -> Dive | None:
        """A dive into the next window of a schedule; None where none is left to try.

        Parameters
        ----------
        prices : ndarray
            Prices of a bound.
        solution : OasisSolution
            The best that is known.
        """
        horizon = self._oracle.instance.horizon
        if self.are_none:
            return None
        best = self._joined(cast(OasisSolution, solution))
        if self._first > horizon - self._length // 4:
            self._begin_sweep()
        if self._idle >= SWEEPS:
            return None
        window = Window(best, self._first, min(self._first + self._length - 1, horizon))
        self._first += self._length // 2
        self._dive = Dive(
            self._oracle, prices, 0.0, self._margin, self._interrupted, window, self._inequalities
        )
        return self._dive

    def _begin_sweep(self) -> None:
        self._margin, self._is_moved = next(self._margins), not self._is_moved
        self._idle += 1
        self._length = LENGTHS[self._idle % len(LENGTHS)]
        self._first = 1 + self._is_moved * (self._length // 4)

    def _joined(self, solution: OasisSolution) -> OasisSolution:
        """The best schedule, with what was gained here where another process found it."""
        best, objective = solution, solution.objective()
        if self._dive is not None and self._dive.window is not None:
            window, found = self._dive.window, cast(OasisSolution | None, self._dive.solution())
            gained = found is not None and found.objective() > window.solution.objective()
            is_new = objective > window.solution.objective()
            if gained or is_new:
                self._idle = -1
            if found is not None and gained:
                self._gained.append(window._replace(solution=found))
            if found is not None and found.objective() >= objective:
                return found
        for window in self._gained:
            mixed = with_slots(self._oracle, best, window.placed())
            if mixed.objective() > objective:
                best, objective = mixed, mixed.objective()
        self._gained = []
        return best


WINDOWS = Windows
"""What makes schedules better that are known."""
