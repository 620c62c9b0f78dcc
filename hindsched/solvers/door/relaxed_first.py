"""Mixed-integer programs with a start, whose linear relaxation is asked before HiGHS branches.

The relaxation takes milliseconds where the search for integer points takes a hundred of them before
its first node. With z its optimum, r its reduced costs and s what the start costs:

- s = z: the start is optimal;
- a whole optimum of the relaxation is one of the program;
- a point that is no worse than the start has ``|r_j| |x_j - bound_j| <= s - z``: integer columns
  are kept within that, and the search is left with what may still be better.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hindsched.arrays import Floats
from hindsched.solvers.door.answer import Answer, Progress
from hindsched.solvers.door.highs import HighsProgram
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.scaling import objective_factor
from hindsched.solvers.door.standard_form import INTEGER_TOLERANCE, LinearProgram
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.door.work import now

ROUNDING = 1e-6
"""Relative difference of two costs that counts as rounding, where 1 is the size of the solver's own
tolerances, in its own currency: a start that is so near the bound is optimal, and so much worse
points are kept."""


class RelaxedFirst:
    """A program inside HiGHS, solved from a start.

    Parameters
    ----------
    highs : HighsProgram
        With a mixed-integer program; bounds of its columns are narrowed.
    """

    def __init__(self, highs: HighsProgram) -> None:
        self._highs = highs
        self._program = highs.program

    def set_start(self, index: Any, values: Floats) -> None:
        """Give values to some or all columns."""
        self._index, self._values = index, values

    def solve(self, time_limit: float | None = None, on_progress: Progress | None = None) -> Answer:
        """Solve from the start; see `HighsProgram.solve`."""
        begun = now()
        answer = self._by_relaxation(time_limit)
        if answer is not None:
            return answer
        left = None if time_limit is None else max(0.0, time_limit - (now() - begun))
        self._highs.set_start(self._index, self._values)
        return self._highs.solve(left, on_progress)

    def _by_relaxation(self, time_limit: float | None) -> Answer | None:
        """What the relaxation alone answers, or None and narrower bounds."""
        program = self._program
        start = self._whole_start()
        if start is None:
            return None
        solver = HighsProgram(_relaxed(program), SolveOptions())
        solver.begin_small(True)
        relaxed = solver.solve(time_limit)
        point, bound, reduced = relaxed.point, relaxed.bound, relaxed.column_duals
        if relaxed.status is not Status.OPTIMAL or point is None or bound is None:
            return None
        room = float(program.cost @ start) + program.offset - bound
        slack = ROUNDING * max(1.0 / objective_factor(program.cost), abs(bound))
        if room <= slack:
            return self._answer(relaxed, start, "the start")
        whole = program.rounded(point)
        if program.residual(whole)[0] <= 1:
            return self._answer(relaxed, whole, "the relaxation's")
        if reduced is not None:
            self._highs.set_bounds(*_narrowed(program, reduced, room + slack, slack))
        return None

    def _whole_start(self) -> Floats | None:
        """The start, if it is a point of the program."""
        program = self._program
        if len(self._index) != len(program.columns):
            return None
        start = np.empty(len(self._index))
        start[self._index] = self._values
        start = program.rounded(start)
        return start if program.residual(start)[0] <= 1 else None

    @staticmethod
    def _answer(relaxed: Answer, point: Floats, which: str) -> Answer:
        details = {**relaxed.details, "nodes": 0, "point": which}
        return Answer(
            Status.OPTIMAL, StoppedBy.GAP, point=point, bound=relaxed.bound,
            backend=relaxed.backend, details=details,
        )  # fmt: skip


def _relaxed(program: LinearProgram) -> LinearProgram:
    return replace(program, integer=np.zeros_like(program.integer))


def _narrowed(
    program: LinearProgram, reduced: Floats, room: float, least: float
) -> tuple[Floats, Floats]:
    """Bounds of the columns that all points keep which cost at most `room` more than the bound.

    Reduced costs below `least` are rounding. Bounds of integers need not be whole.
    """
    lower, upper = program.lower.copy(), program.upper.copy()
    reach = room / np.maximum(np.abs(reduced), least) + INTEGER_TOLERANCE
    rises = program.integer & (reduced > least) & np.isfinite(lower)
    falls = program.integer & (reduced < -least) & np.isfinite(upper)
    upper[rises] = np.minimum(upper[rises], np.floor(lower[rises] + reach[rises]))
    lower[falls] = np.maximum(lower[falls], np.ceil(program.upper[falls] - reach[falls]))
    return lower, upper
