"""A CVXPY problem with the same face as the Pyomo programs: what its parts say, labelled numbers.

A `ConvexProgram` has a problem and its variables and constraints by name, each with a sentence, as
a `Declared` has them from Pyomo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.models.declared import Component, Face, IndexValue

if TYPE_CHECKING:
    import pandas as pd


class ConvexPart(NamedTuple):
    """A variable, a constraint or the objective."""

    kind: str  # ``variable``, ``constraint`` or ``objective``
    doc: str  # its sentence, which begins with the paper's number
    item: cp.Variable | cp.Constraint | None
    keys: Sequence[tuple[IndexValue, ...]]  # indices of its entries, in numpy's order


@dataclass(kw_only=True, eq=False, repr=False)
class ConvexProgram(Face):
    """A CVXPY problem that belongs to an instance and can say what it is."""

    problem: cp.Problem = field(init=False)
    parts: dict[str, ConvexPart] = field(init=False)  # variables, constraints, objective by name

    @property
    def cvxpy(self) -> cp.Problem:
        """The CVXPY problem, to be read, or taken apart for a problem of one's own."""
        return self.problem

    def set(self, *given: Any, **values: Any) -> None:
        """State a program that has settings anew."""
        raise InputError("set", self.title, "must be a program with settings")

    def components(self, *kinds: str) -> list[Component]:
        """The components by name: objective, constraints, variables."""
        return [
            Component(name, kind, part.doc, self._indices(name), self.symbol(name).unit,
                      1 if part.item is None else part.item.size)
            for kind in kinds or ("objective", "constraint", "variable")
            for name, part in self.parts.items() if part.kind == kind
        ]  # fmt: skip

    def table(
        self, name: str, value_of: Callable[[cp.Variable | cp.Constraint], Floats | None],
        unit: str | None = None,
    ) -> pd.Series[float]:  # fmt: skip
        """Numbers by the array of a part, labelled; unit in the name."""
        part = self.parts.get(name)
        if part is None or part.item is None:
            raise InputError("component", name, "must be a variable or constraint of the program")
        array = value_of(part.item)
        values = [] if array is None else np.ravel(array).tolist()
        numbers = dict(zip(part.keys, values, strict=array is not None))
        unit = self.symbol(name).unit if unit is None else unit
        return self._labelled(name, unit, self._indices(name), numbers)

    def _indices(self, name: str) -> tuple[str, ...]:
        return tuple(filter(None, self.symbol(name).indices.split(", ")))
