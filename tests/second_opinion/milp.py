"""A small mixed-integer program with exact numbers, solved by HiGHS and polished exactly.

Everything is stated in rational numbers. HiGHS works in floating point and is not believed: its
point is rounded to whole numbers, what is continuous is computed again from a basis, and each row
is checked, all in rational arithmetic. The value that comes back is therefore one that an exactly
feasible point has. That no point is better is HiGHS' word, up to `Optimum.slack`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import highspy
import numpy as np

UNSOUND_PRESOLVE_RULES = (1 << 12) | (1 << 13)
"""Rules of HiGHS 1.15's presolve that were seen to cut off integer optima."""
LARGEST = 10**4
"""Coefficients up to here are passed on as whole numbers: HiGHS is unsound with larger ones."""
TOLERANCES = (1e-9, 1e-7)
"""HiGHS' tolerances of feasibility, one after the other: at the first it was seen to cut off optima
(it calls relaxations infeasible that are not), at the second rounding to break rows more often."""
TRIALS = 40
"""How often a point that is feasible within rounding only may be cut off."""
DIGITS = 60
"""Significant digits of utilities that are no rational numbers."""


class NotPolishedError(Exception):
    """HiGHS' point is not exactly feasible, or it found neither a point nor their absence."""


def read(path: str | Path) -> dict[str, Any]:
    """Read an instance file; a number is the decimal that is written."""
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=Fraction)


def utility(data: Mapping[str, Any], x: int) -> Fraction:
    """Value of a utility at `x`, right to `DIGITS` digits (exactly, if it is linear)."""
    if data["kind"] == "linear":
        return Fraction(data["slope"]) * x + Fraction(data["intercept"])
    with localcontext() as context:
        context.prec = DIGITS
        if data["kind"] == "power":
            base = _decimal(data["scale"]) / x
            return Fraction(base ** _decimal(data["exponent"]))
        exponent = _decimal(data["decay"]) * (x - _decimal(data["target"]))
        return Fraction(_decimal(data["priority"]) / (1 + exponent.exp()))


def _decimal(number: Any) -> Decimal:
    number = Fraction(number)
    return Decimal(number.numerator) / Decimal(number.denominator)


def exact(number: Any) -> Number:
    """Return a whole number as an int, which is faster, and any other as a Fraction."""
    if isinstance(number, int):
        return int(number)
    fraction = Fraction(number)
    return fraction.numerator if fraction.denominator == 1 else fraction


def ceil_div(a: Any, b: Any) -> int:
    """Return a / b, rounded up."""
    return math.ceil(Fraction(a) / Fraction(b))


Number = Fraction | int
Row = tuple[dict[int, Number], Number | None, Number | None]
"""Coefficients by variable, least and largest activity."""


@dataclass(frozen=True)
class Optimum:
    """An optimum, or that there is no feasible point (`value` is None).

    Parameters
    ----------
    value : Fraction or None
        Objective of `point`, exactly.
    slack : Fraction
        By how much the optimum may be better than `value`; 0 if no better value is possible.
    point : list of Fraction
        An exactly feasible point.
    """

    value: Fraction | None
    slack: Fraction = Fraction(0)
    point: list[Number] = field(default_factory=list, repr=False)


class Milp:
    """Variables, rows and a linear objective, all of them rational.

    `unsure` is what HiGHS is not trusted with of an objective whose largest cost is 2^14.
    """

    def __init__(self, sense: str, unsure: Number = Fraction(1, 10**5)) -> None:
        self.sense, self.unsure = sense, unsure
        self.lower: list[Number] = []
        self.upper: list[Number | None] = []
        self.cost: list[Number] = []
        self.integer: list[bool] = []
        self.rows: list[Row] = []

    def variable(
        self, upper: Any = None, cost: Any = 0, integer: bool = True, lower: Any = 0
    ) -> int:
        """Add a variable and return its index."""
        self.lower.append(exact(lower))
        self.upper.append(None if upper is None else exact(upper))
        self.cost.append(exact(cost))
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, terms: Any, *, at_most: Any = None, at_least: Any = None) -> None:
        """Add ``at_least <= sum of coefficient x variable <= at_most``; `terms` are pairs."""
        row: dict[int, Number] = {}
        for column, coefficient in terms:
            row[column] = row.get(column, 0) + exact(coefficient)
        row = {column: value for column, value in row.items() if value}
        bounds = [None if bound is None else exact(bound) for bound in (at_least, at_most)]
        self.rows.append((row, bounds[0], bounds[1]))

    def equal(self, terms: Any, value: Any = 0) -> None:
        """Add ``sum of coefficient x variable = value``."""
        self.row(terms, at_least=value, at_most=value)

    def optimum(self) -> Optimum:
        """Solve and polish at each of the tolerances; the best exactly feasible point counts.

        Raises
        ------
        NotPolishedError
            If at one of them neither an exactly feasible point nor infeasibility comes out, and at
            no other a point.
        """
        asked = len(self.cost)
        found, failed = Optimum(None), None
        for tolerance in TOLERANCES:
            try:
                other = self._optimum_at(tolerance, asked)
            except NotPolishedError as error:
                failed = error
                continue
            if found.value is None or (other.value is not None and self._better(other, found)):
                found = other
        if found.value is None and failed is not None:
            raise failed
        return found

    def _better(self, one: Optimum, other: Optimum) -> bool:
        return one.value < other.value if self.sense == "min" else one.value > other.value

    def _optimum_at(self, tolerance: float, asked: int) -> Optimum:
        """Solve and polish at one tolerance; `asked` variables are those of the problem."""
        if any(not row and _outside(0, low, high) for row, low, high in self.rows):
            return Optimum(None)
        if not self.cost:
            return Optimum(Fraction(0))
        for _ in range(TRIALS):
            highs, scale = self._highs(tolerance)
            highs.run()
            status = highs.getModelStatus()
            if status == highspy.HighsModelStatus.kInfeasible:
                return Optimum(None)
            if status != highspy.HighsModelStatus.kOptimal:
                raise NotPolishedError(str(status))
            point: list[Number] = [round(x) for x in highs.getSolution().col_value]
            broken = next((row for row in self.rows if self._breaks(point, row)), None)
            if broken is not None:
                self._cut_off(point, broken[0])
                continue
            if not all(self.integer):
                fixed = {j: point[j] for j, whole in enumerate(self.integer) if whole}
                point = _continuous_part(self, fixed)
            self.check(point)
            value = Fraction(sum(c * x for c, x in zip(self.cost, point, strict=True)))
            bound = Fraction(float(highs.getInfo().mip_dual_bound)) / scale
            return Optimum(value, self._slack(value, bound, scale), point[:asked])
        raise NotPolishedError("feasible within rounding only")

    def _breaks(self, point: list[Number], row: Row) -> bool:
        """Whether a point breaks a row over whole numbers."""
        terms, low, high = row
        if not all(self.integer[j] for j in terms):
            return False
        return _outside(sum((a * point[j] for j, a in terms.items()), 0), low, high)

    def _cut_off(self, point: list[Number], terms: dict[int, Number]) -> None:
        """Cut off every point that goes at least as far in a broken row as this one.

        Of the variables that stand on the wrong side of their far end one must step back.
        """
        activity = sum((a * point[j] for j, a in terms.items()), 0)
        too_high = any(
            row is terms and high is not None and activity > high for row, _, high in self.rows
        )
        steps = []
        for j, a in terms.items():
            up = (a > 0) == too_high
            low, high = self.lower[j], self.upper[j]
            assert high is not None, "whole numbers have bounds"
            if point[j] == (low if up else high):
                continue  # it cannot step back
            far = self.variable(1)  # 0 only if x steps back
            if up:
                self.row([(j, 1), (far, point[j] - 1 - high)], at_most=point[j] - 1)
            else:
                self.row([(j, 1), (far, point[j] + 1 - low)], at_least=point[j] + 1)
            steps.append((far, 1))
        self.row(steps, at_most=len(steps) - 1)

    def _slack(self, value: Fraction, bound: Fraction, scale: Fraction) -> Fraction:
        slack = abs(value - bound) + self.unsure / scale
        if all(self.integer[j] for j, c in enumerate(self.cost) if c):
            step = reduce(_gcd, self.cost, 0)
            if slack < step:  # values are multiples of the step: none lies in between
                return Fraction(0)
        return slack

    def _highs(self, tolerance: float) -> tuple[highspy.Highs, Fraction]:
        largest = max((abs(c) for c in self.cost), default=Fraction(0)) or Fraction(1)
        scale = Fraction(2) ** (14 - math.ceil(math.log2(largest)))  # largest cost about 2^14
        highs = highspy.Highs()
        for name, setting in {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",  # it was seen to call feasible programs infeasible
            "presolve_rule_off": UNSOUND_PRESOLVE_RULES,  # in the programs of its heuristics
            "mip_rel_gap": 0.0,
            "mip_abs_gap": 0.0,
            "mip_feasibility_tolerance": tolerance,
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "time_limit": 120.0,
        }.items():
            if highs.setOptionValue(name, setting) != highspy.HighsStatus.kOk:
                raise NotPolishedError(f"HiGHS refuses {name} = {setting}")
        rows = [self._scaled(*row) for row in self.rows]
        starts = np.cumsum([0, *(len(row) for row, _, _ in rows)])
        infinity = highspy.kHighsInf
        sign = 1 if self.sense == "min" else -1
        highs.passModel(
            len(self.cost), len(rows), int(starts[-1]), 2, sign, 0.0,
            np.array([float(c * scale) for c in self.cost]),
            np.array([float(x) for x in self.lower]),
            np.array([infinity if x is None else float(x) for x in self.upper]),
            np.array([-infinity if low is None else float(low) for _, low, _ in rows]),
            np.array([infinity if high is None else float(high) for _, _, high in rows]),
            starts.astype(np.int32),
            np.array([j for row, _, _ in rows for j in row], dtype=np.int32),
            np.array([float(a) for row, _, _ in rows for a in row.values()]),
            np.array(self.integer, dtype=np.int32),
        )  # fmt: skip
        return highs, scale

    def _scaled(self, row: dict[int, Number], low: Any, high: Any) -> Row:
        """Return a row over whole numbers with whole coefficients without a common divisor.

        If they are too large for that, as any other row: scaled to a largest one of about 1.
        """
        if not row:
            return row, low, high
        if all(self.integer[j] for j in row):
            step = reduce(_gcd, row.values(), 0)
            if step != 1:
                row = {j: exact(Fraction(a, step)) for j, a in row.items()}
            low = None if low is None else math.ceil(Fraction(low, step))
            high = None if high is None else math.floor(Fraction(high, step))
        largest = max(abs(a) for a in row.values())
        if largest <= LARGEST and all(self.integer[j] for j in row):
            return row, low, high
        scale = Fraction(2) ** -round(math.log2(largest))
        return (
            {j: a * scale for j, a in row.items()},
            None if low is None else low * scale,
            None if high is None else high * scale,
        )

    def in_large_units(self) -> Milp:
        """Return the same program with its right sides scaled up, where tolerances are small."""
        sides = [x for _, *bounds in self.rows for x in bounds] + self.lower + self.upper
        largest = max((abs(x) for x in sides if x), default=Fraction(1))
        factor = Fraction(10**6) / largest
        scaled = Milp(self.sense)
        for j, cost in enumerate(self.cost):
            high = self.upper[j]
            scaled.variable(
                None if high is None else high * factor, cost, False, self.lower[j] * factor
            )
        for row, *bounds in self.rows:
            low, high = (None if x is None else x * factor for x in bounds)
            scaled.rows.append((row, low, high))
        return scaled

    def check(self, point: list[Number]) -> None:
        """Raise NotPolishedError unless `point` obeys every row and bound exactly."""
        for j, x in enumerate(point):
            if _outside(x, self.lower[j], self.upper[j]):
                raise NotPolishedError(f"variable {j}: {x}")
        for number, (row, low, high) in enumerate(self.rows):
            activity = sum((a * point[j] for j, a in row.items()), 0)
            if _outside(activity, low, high):
                raise NotPolishedError(f"row {number}: {low} <= {activity} <= {high}")


def _outside(x: Number, low: Number | None, high: Number | None) -> bool:
    return (low is not None and x < low) or (high is not None and x > high)


def _gcd(a: Number, b: Number) -> Number:
    """Return the largest number of which both are whole multiples."""
    if isinstance(a, int) and isinstance(b, int):
        return math.gcd(a, b)
    return Fraction(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator),
        a.denominator * b.denominator,
    )


def _continuous_part(program: Milp, fixed: dict[int, Number]) -> list[Number]:
    """Solve for the continuous variables exactly, the whole ones being fixed.

    HiGHS names an optimal basis; the point and the reduced costs of that basis are computed in
    rational arithmetic.
    """
    point = dict(fixed)
    for columns, rows in _components(program, fixed):
        part, position = Milp(program.sense), {j: i for i, j in enumerate(columns)}
        for j in columns:
            part.variable(program.upper[j], program.cost[j], False, program.lower[j])
        for row, low, high in rows:
            constant = sum((a * fixed[j] for j, a in row.items() if j in fixed), 0)
            terms = {position[j]: a for j, a in row.items() if j not in fixed}
            low = None if low is None else low - constant
            high = None if high is None else high - constant
            part.rows.append((terms, low, high))
        highs, _ = part.in_large_units()._highs(TOLERANCES[0])
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise NotPolishedError(f"continuous part: {highs.getModelStatus()}")
        solution = _basic_point(part, highs.getBasis())
        point.update(zip(columns, solution, strict=True))
    return [point[j] for j in range(len(program.cost))]


def _components(program: Milp, fixed: dict[int, Number]) -> list[tuple[list[int], list[Any]]]:
    """Return the sets of continuous variables that rows tie together, each with its rows."""
    root = {j: j for j in range(len(program.cost)) if j not in fixed}

    def find(j: int) -> int:
        while root[j] != j:
            j = root[j]
        return j

    own: list[tuple[int, Any]] = []
    for row in program.rows:
        free = [j for j in row[0] if j not in fixed]
        if free:
            first = find(free[0])
            for j in free[1:]:
                root[find(j)] = first
            own.append((free[0], row))
    parts: dict[int, tuple[list[int], list[Any]]] = {}
    for j in root:
        parts.setdefault(find(j), ([], []))[0].append(j)
    for j, row in own:
        parts[find(j)][1].append(row)
    return list(parts.values())


def _basic_point(part: Milp, basis: Any) -> list[Number]:
    """Compute the point of a basis of ``A x - s = 0`` and check that its reduced costs are right.

    Columns 0..n-1 are the variables, column n + i the activity s of row i.
    """
    n, m = len(part.cost), len(part.rows)
    status = [*basis.col_status, *basis.row_status]
    low = [*part.lower, *(row[1] for row in part.rows)]
    high = [*part.upper, *(row[2] for row in part.rows)]
    cost = [*part.cost, *[0] * m]
    value: list[Number] = [0] * (n + m)
    basic = []
    for j, where in enumerate(status):
        if where == highspy.HighsBasisStatus.kBasic:
            basic.append(j)
        elif where == highspy.HighsBasisStatus.kLower and low[j] is not None:
            value[j] = low[j]  # type: ignore[assignment]
        elif where == highspy.HighsBasisStatus.kUpper and high[j] is not None:
            value[j] = high[j]  # type: ignore[assignment]
        elif low[j] is not None or high[j] is not None:
            raise NotPolishedError("a variable that is not basic stands at no bound")
    if len(basic) != m:
        raise NotPolishedError("no basis")

    def entry(i: int, j: int) -> Fraction:
        if j < n:
            return part.rows[i][0].get(j, 0)
        return Fraction(-1 if j - n == i else 0)

    matrix = [[entry(i, j) for j in basic] for i in range(m)]
    right = [-sum((entry(i, j) * value[j] for j in range(n + m) if value[j]), 0)
             for i in range(m)]  # fmt: skip
    for j, x in zip(basic, _solve(matrix, right), strict=True):
        value[j] = x
    dual = _solve([list(column) for column in zip(*matrix, strict=True)], [cost[j] for j in basic])
    sign = 1 if part.sense == "min" else -1
    for j in range(n + m):
        reduced = sign * (cost[j] - sum((dual[i] * entry(i, j) for i in range(m)), 0))
        if low[j] == high[j] or not reduced:
            continue
        if value[j] != (low[j] if reduced > 0 else high[j]):
            raise NotPolishedError("the basis is not optimal")
    return value[:n]


def _solve(matrix: list[list[Number]], right: list[Number]) -> list[Number]:
    """Solve a square system by Gaussian elimination."""
    rows = [[*map(Fraction, row), Fraction(b)] for row, b in zip(matrix, right, strict=True)]
    size = len(rows)
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            raise NotPolishedError("the basis is singular")
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(size):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[size] for row in rows]
