"""The optimum of a small integer program by enumeration in whole numbers, without any solver.

It settles what `milp.py` leaves to HiGHS' word: that no point is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .milp import Milp, Number, Optimum

MOST_NODES = 5_000

Domain = tuple[list[int], list[int]]
Row = tuple[dict[int, int], int]
"""Whole coefficients by variable, and the most that they may add up to."""


class TooLargeError(Exception):
    """More than `MOST_NODES` partial points were looked at."""


@dataclass
class Enumeration:
    """A search through all points of whole numbers, cut where a row says that none is left below.

    `rows` are those of the program, `cost` is minimised; points below `best` are looked for, any if
    it is None.
    """

    program: Milp
    best: int | None = None
    rows: list[Row] = field(default_factory=list)
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
        self.choices = self._choices()
        self.alone = {*self.cost}.difference(*(columns for columns, _ in self.choices))

    def _choices(self) -> list[tuple[list[int], bool]]:
        """Variables of which one at most is 1, no variable twice; whether one must be."""
        chosen: list[tuple[list[int], bool]] = []
        free = {j for j, low in enumerate(self.program.lower) if low == 0}
        for terms, most in sorted(self.rows, key=lambda row: -len(row[0])):
            if most == 1 and free.issuperset(terms) and {*terms.values()} == {1}:
                free.difference_update(terms)
                chosen.append(([*terms], (dict.fromkeys(terms, -1), -1) in self.rows))
        return chosen

    def point_below(self, best: Fraction | None) -> bool:
        """Whether any point costs less than `best`, in the sense of the program."""
        self.best = None if best is None else math.ceil(self.sign * best * self.unit)
        lower, upper = [int(x) for x in self.program.lower], [int(x) for x in self.program.upper]
        return self._visit((lower, upper), range(len(self.rows)))

    def _visit(self, domain: Domain, rows: Any) -> bool:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise TooLargeError
        if not self._tighten(domain, rows):
            return False
        lower, upper = domain
        open_ = [j for j in range(len(lower)) if lower[j] < upper[j]]
        if not open_:
            return True
        costly = [j for j in open_ if j in self.cost]
        j = min(costly or open_, key=lambda j: (-abs(self.cost.get(j, 0)), upper[j] - lower[j]))
        values = range(lower[j], upper[j] + 1)
        for value in values if self.cost.get(j, -1) > 0 else reversed(values):
            child = lower.copy(), upper.copy()
            child[0][j] = child[1][j] = value
            if self._visit(child, self.of_variable.get(j, ())):
                return True
        return False

    def _tighten(self, domain: Domain, rows: Any) -> bool:
        """Narrow the domain until no row narrows it further; False if nothing is left."""
        lower, upper = domain
        waiting = dict.fromkeys([*rows, -1])  # -1: below the best
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            if number >= 0:
                terms, left = self.rows[number]
            elif self.best is None:
                continue
            else:
                terms, left = {j: self.cost[j] for j in self.alone}, self.best - 1
                least = [self._least(own, domain, needed) for own, needed in self.choices]
                left -= sum(least)
            left -= sum(a * (lower[j] if a > 0 else upper[j]) for j, a in terms.items())
            if left < 0:
                return False
            narrowed = []
            for j, a in terms.items():
                if abs(a) * (upper[j] - lower[j]) > left:
                    if a > 0:
                        upper[j] = lower[j] + left // a
                    else:
                        lower[j] = upper[j] - left // -a
                    narrowed.append(j)
            if number < 0:
                for (own, _), low in zip(self.choices, least, strict=True):
                    for j in own:
                        if lower[j] < upper[j] and self.cost.get(j, 0) - low > left:
                            upper[j] = 0
                            narrowed.append(j)
            for j in narrowed:
                waiting |= dict.fromkeys(self.of_variable.get(j, ()))
                if j in self.cost:
                    waiting[-1] = None
        return True

    def _least(self, columns: list[int], domain: Domain, needed: bool) -> int:
        """What a choice costs at least."""
        lower, upper = domain
        costs = [self.cost.get(j, 0) for j in columns if upper[j]]
        if not needed and not any(lower[j] for j in columns):
            costs.append(0)
        return min(costs, default=0)


def agrees(program: Milp, optimum: Optimum) -> bool | None:
    """Whether no point beats an optimum by more than its slack; None if it cannot be enumerated."""
    if not all(program.integer):
        return None
    best = optimum.value
    if best is not None:
        best -= optimum.slack if program.sense == "min" else -optimum.slack
    try:
        return not Enumeration(program).point_below(best)
    except TooLargeError:
        return None


def _whole(terms: dict[int, Number], side: Number) -> Row:
    """The same row over whole numbers, its side rounded to what whole numbers can reach."""
    unit = math.lcm(*(Fraction(a).denominator for a in terms.values()))
    row = {j: int(a * unit) for j, a in terms.items()}
    step = math.gcd(*row.values()) or 1
    return {j: a // step for j, a in row.items()}, math.floor(Fraction(side) * unit / step)
