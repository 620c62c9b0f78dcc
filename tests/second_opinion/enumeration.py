"""The optimum of a small integer program by enumeration in whole numbers, without any solver.

It settles what `milp.py` leaves to HiGHS' word: that no point is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .milp import Milp, Number, Optimum

MOST_NODES = 20_000

Domain = tuple[list[int], list[int]]
Row = tuple[dict[int, int], int]
"""Whole coefficients by variable, and the most that they may add up to."""


class TooLargeError(Exception):
    """More than `MOST_NODES` partial points were looked at."""


@dataclass
class Enumeration:
    """A search through all points of whole numbers, cut where a row says that none is left below.

    `rows` are those of the program, `cost` is minimised; `best` is the least that was found.
    """

    program: Milp
    rows: list[Row] = field(default_factory=list)
    best: int | None = None
    nodes: int = 0

    def __post_init__(self) -> None:
        for terms, low, high in self.program.rows:
            for sign, side in ((1, high), (-1, low)):
                if side is not None:
                    self.rows.append(_whole({j: sign * a for j, a in terms.items()}, sign * side))
        self.sign = sign = 1 if self.program.sense == "min" else -1
        costs = {j: sign * c for j, c in enumerate(self.program.cost) if c}
        self.unit = math.lcm(*(Fraction(c).denominator for c in costs.values()))
        self.cost = {j: int(c * self.unit) for j, c in costs.items()}
        self.of_variable: dict[int, list[int]] = {}
        for number, (terms, _) in enumerate(self.rows):
            for j in terms:
                self.of_variable.setdefault(j, []).append(number)

    def optimum(self) -> Fraction | None:
        """The value of the best point; None if there is no point at all."""
        lower, upper = [int(x) for x in self.program.lower], [int(x) for x in self.program.upper]
        self._visit((lower, upper), range(len(self.rows)))
        return None if self.best is None else self.sign * Fraction(self.best, self.unit)

    def _visit(self, domain: Domain, rows: Any) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise TooLargeError
        if not self._tighten(domain, rows):
            return
        lower, upper = domain
        open_ = [j for j in range(len(lower)) if lower[j] < upper[j]]
        if not open_:
            self.best = sum(c * lower[j] for j, c in self.cost.items())
            return
        costly = [j for j in open_ if j in self.cost]
        j = min(costly or open_, key=lambda j: (-abs(self.cost.get(j, 0)), upper[j] - lower[j]))
        values = range(lower[j], upper[j] + 1)
        for value in values if self.cost.get(j, -1) > 0 else reversed(values):
            child = lower.copy(), upper.copy()
            child[0][j] = child[1][j] = value
            self._visit(child, self.of_variable.get(j, ()))

    def _tighten(self, domain: Domain, rows: Any) -> bool:
        """Narrow the domain until no row narrows it further; False if nothing is left."""
        lower, upper = domain
        waiting = dict.fromkeys([*rows, -1])  # -1: better than the best point
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            if number >= 0:
                terms, most = self.rows[number]
            elif self.best is None:
                continue
            else:
                terms, most = self.cost, self.best - 1
            left = most - sum(a * (lower[j] if a > 0 else upper[j]) for j, a in terms.items())
            if left < 0:
                return False
            for j, a in terms.items():
                if abs(a) * (upper[j] - lower[j]) > left:
                    if a > 0:
                        upper[j] = lower[j] + left // a
                    else:
                        lower[j] = upper[j] - left // -a
                    waiting |= dict.fromkeys(self.of_variable.get(j, ()))
                    if j in self.cost:
                        waiting[-1] = None
        return True


def agrees(program: Milp, optimum: Optimum) -> bool | None:
    """Whether no point beats an optimum by more than its slack; None if it cannot be enumerated."""
    if not all(program.integer):
        return None
    try:
        value = Enumeration(program).optimum()
    except TooLargeError:
        return None
    if value is None or optimum.value is None:
        return value is optimum.value
    better = value - optimum.value if program.sense == "max" else optimum.value - value
    return 0 <= better <= optimum.slack


def _whole(terms: dict[int, Number], side: Number) -> Row:
    """The same row over whole numbers, its side rounded to what whole numbers can reach."""
    unit = math.lcm(*(Fraction(a).denominator for a in terms.values()))
    row = {j: int(a * unit) for j, a in terms.items()}
    step = math.gcd(*row.values()) or 1
    return {j: a // step for j, a in row.items()}, math.floor(Fraction(side) * unit / step)
