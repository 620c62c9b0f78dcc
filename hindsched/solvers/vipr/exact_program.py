"""A compiled program in rational numbers, and bounds on it that follow from any duals.

The program is ``min cost.x`` over rows and bounds on x; a number is the shortest decimal of its
double, as a file of the program shows it. Duals come from a solver in floating point and are not
believed: whatever is missing of the costs is paid at the bounds of the variables (Neumaier and
Shcherbina, *Safe bounds in linear and mixed-integer linear programming*, 2004), exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hindsched.solvers.door.standard_form import LinearProgram

Terms = Mapping[int, Fraction]
"""Coefficients by column."""


@dataclass(frozen=True)
class Constraint:
    """``terms.x sense side``; the sense is ``G``, ``L`` or ``E``."""

    name: str
    sense: str
    side: Fraction
    terms: Terms

    def holds(self, point: Sequence[Fraction]) -> bool:
        """Whether a point obeys it, exactly."""
        excess = sum((a * point[j] for j, a in self.terms.items()), -self.side)
        return {"G": excess >= 0, "L": excess <= 0, "E": excess == 0}[self.sense]


@dataclass(frozen=True)
class Proof:
    """That an objective is at least `bound`: weights of constraints, by their index or key."""

    bound: Fraction
    weights: Mapping[Any, Fraction]


Ends = dict[int, tuple[Fraction, Any]]
"""Finite end of a column's range and the index of the constraint that says so, by column; that of
an assumption is no constraint of the program and has a key of its own."""


class ExactProgram:
    """A program in rational numbers; its constraints begin with the columns' bounds.

    Parameters
    ----------
    program : LinearProgram
        The compiled program. A constant in its objective becomes a column that is fixed at 1.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from hindsched.solvers.door.standard_form import compile_program
    >>> model = pyo.ConcreteModel()
    >>> model.x = pyo.Var(bounds=(0, None))
    >>> model.row = pyo.Constraint(expr=3 * model.x >= 1)
    >>> model.cost = pyo.Objective(expr=model.x)
    >>> ExactProgram(compile_program(model)).prove([0.3333]).bound
    Fraction(3333, 10000)
    """

    def __init__(self, program: LinearProgram) -> None:
        self.names = _words([column.name for column in program.columns])
        self.integer = program.integer.tolist()
        self.sign = program.sign
        cost = [exact(value) for value in program.cost]
        bounds = [*zip(program.lower.tolist(), program.upper.tolist(), strict=True)]
        if program.offset:
            self.names.append("one")
            self.integer.append(False)
            cost.append(exact(program.offset))
            bounds.append((1.0, 1.0))
        self.cost = {j: value for j, value in enumerate(cost) if value}
        self.constraints: list[Constraint] = []
        self.lower: Ends = {}
        self.upper: Ends = {}
        for j, ends in enumerate(bounds):
            for end, sense, known in zip(ends, "GL", (self.lower, self.upper), strict=True):
                if math.isfinite(end):
                    known[j] = exact(end), len(self.constraints)
                    bound = Constraint(f"b{sense}{j}", sense, exact(end), {j: Fraction(1)})
                    self.constraints.append(bound)
        self.num_bounds = len(self.constraints)
        matrix = program.matrix.tocsr()
        self.rows: list[dict[str, int]] = []
        """Index of each row's constraints by sense."""
        for i, ends in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
            span = slice(matrix.indptr[i], matrix.indptr[i + 1])
            values = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
            terms = {j: exact(value) for j, value in values if value}
            senses = "E" if ends[0] == ends[1] else "GL"
            own: dict[str, int] = {}
            for end, sense in zip(ends, senses, strict=False):
                if math.isfinite(end):
                    own[sense] = len(self.constraints)
                    self.constraints.append(Constraint(f"r{sense}{i}", sense, exact(end), terms))
            self.rows.append(own)

    def value(self, point: Sequence[Fraction]) -> Fraction:
        """The minimised objective of a point."""
        return sum((c * point[j] for j, c in self.cost.items()), Fraction())

    def polished(self, point: Sequence[float]) -> list[Fraction] | None:
        """Rationals near a solver's point that obey every constraint, or None."""
        for size in (10**3, 10**6, 10**9, 10**15):
            near = [Fraction(value).limit_denominator(size) for value in point]
            near += [Fraction(1)] * (len(self.names) - len(near))
            rounded = zip(near, self.integer, strict=True)
            found = [Fraction(round(value)) if whole else value for value, whole in rounded]
            if all(constraint.holds(found) for constraint in self.constraints):
                return found
        return None

    def prove(
        self, duals: Any, lower: Ends | None = None, upper: Ends | None = None, factor: int = 1
    ) -> Proof | None:
        """Bound on the objective (`factor` 0: on nothing, where above 0 proves infeasibility).

        Parameters
        ----------
        duals : sequence of float
            Of the rows.
        lower, upper : dict, optional
            Ends of the columns' ranges; those of the program by default.

        Returns
        -------
        Proof or None
            None if costs are left on columns without an end to pay them.
        """
        lower = self.lower if lower is None else lower
        upper = self.upper if upper is None else upper
        weights: dict[Any, Fraction] = {}
        rest = {j: factor * c for j, c in self.cost.items()}

        def add(index: int, weight: Fraction) -> None:
            weights[index] = weights.get(index, Fraction()) + weight
            for j, a in self.constraints[index].terms.items():
                rest[j] = rest.get(j, Fraction()) - weight * a

        for own, dual in zip(self.rows, np.asarray(duals, dtype=float).tolist(), strict=True):
            index = own.get("E", own.get("G" if dual > 0 else "L"))
            if dual and index is not None:
                add(index, exact(dual))
        for j in list(rest):
            if rest[j] and j not in (lower if rest[j] > 0 else upper):
                index, weight = self._remedy(j, rest[j], lower, upper)
                if index is None:
                    return None
                add(index, weight)
        bound = sum((w * self.constraints[i].side for i, w in weights.items()), Fraction())
        for j, d in rest.items():
            if d:
                if j not in (lower if d > 0 else upper):
                    return None
                end, index = (lower if d > 0 else upper)[j]
                bound += d * end
                weights[index] = weights.get(index, Fraction()) + d
        return Proof(bound, {index: weight for index, weight in weights.items() if weight})

    def _remedy(self, j: int, d: Fraction, lower: Ends, upper: Ends) -> tuple[Any, Fraction]:
        """A row that takes a cost off a column without an end, and harms no other such column."""
        for own in self.rows:
            for sense, index in own.items():
                terms = self.constraints[index].terms
                if j in terms:
                    weight = d / terms[j]
                    allowed = {"E": True, "G": weight > 0, "L": weight < 0}[sense]
                    others = (k for k in terms if k != j)
                    if allowed and all(
                        k in (upper if weight * terms[k] > 0 else lower) for k in others
                    ):
                        return index, weight
        return None, Fraction()


def exact(number: Any) -> Fraction:
    """The shortest decimal of a double."""
    return Fraction(repr(float(number)))


def _words(names: Sequence[str]) -> list[str]:
    """Names without spaces, each once."""
    return [f"x{j}_{''.join(name.split())}" for j, name in enumerate(names)]
