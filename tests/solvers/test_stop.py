"""`Stop`: solves of HiGHS end where they are told to, and only those."""

from __future__ import annotations

from threading import Event
from typing import Any

import highspy
import numpy as np
import pytest

from hindsched.solvers.door.highs import Stop

OPTIMAL, INTERRUPTED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInterrupt)
WAYS: dict[str, tuple[dict[str, Any], bool]] = {
    "simplex": ({"solver": "simplex", "presolve": "off"}, False),
    "interior point": ({"solver": "ipx", "presolve": "off"}, False),
    "branching": ({}, True),
}


class Told(Event):
    """An event that says that it is set once it was asked so often."""

    def __init__(self, calls: float) -> None:
        super().__init__()
        self.left = calls

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def knapsacks(options: dict[str, Any], whole: bool) -> highspy.Highs:
    """Thirty columns in twelve rows, which no algorithm solves at once."""
    draw = np.random.default_rng(5)
    use, worth = draw.integers(1, 40, (12, 30)), draw.integers(5, 40, 30)
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, **options}.items():
        highs.setOptionValue(name, value)
    kind = highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous
    columns = [highs.addVariable(0, 3, -float(value), type=kind) for value in worth]
    for row in use:
        total = sum(int(entry) * column for entry, column in zip(row, columns, strict=True))
        highs.addConstr(total <= int(row.sum()))
    return highs


@pytest.mark.parametrize("way", WAYS)
def test_a_solve_ends_where_it_is_told_and_the_next_one_goes_on(way: str) -> None:
    options, whole = WAYS[way]
    highs = knapsacks(options, whole)
    highs.run()
    best = highs.getInfo().objective_function_value
    told = Told(0)
    Stop(told).listen(highs)
    highs.clearSolver()
    highs.run()
    assert highs.getModelStatus() == INTERRUPTED
    told.left = float("inf")
    highs.run()
    assert highs.getModelStatus() == OPTIMAL
    assert highs.getInfo().objective_function_value == pytest.approx(best)


def test_a_deadline_ends_a_solve_and_is_forgotten_by_the_next() -> None:
    highs = knapsacks(*WAYS["simplex"])
    stop = Stop(Event())
    stop.listen(highs)
    for seconds, status in ((-1.0, INTERRUPTED), (None, OPTIMAL), (0.0, INTERRUPTED)):
        highs.clearSolver()
        stop.after(seconds)
        highs.run()
        assert highs.getModelStatus() == status
