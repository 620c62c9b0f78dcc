"""A CVXPY problem with the same face as the Pyomo programs: what its parts say, labelled numbers.

The formulations that are convex are CVXPY problems with Parameters. A `ConvexProgram` has such a
problem and its variables and constraints by name, each with a sentence, as a `Declared` has them
from Pyomo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.models.declared import Component, Face, IndexValue

if TYPE_CHECKING:
    import pandas as pd


class ConvexPart(NamedTuple):
    """A variable, a constraint or the objective, with all its copies."""

    kind: str  # ``variable``, ``constraint`` or ``objective``
    doc: str  # its sentence, which begins with the paper's number
    indices: tuple[str, ...]  # those by which its copies differ: ``("slot", "job")``
    copies: dict[tuple[IndexValue, ...], cp.Variable | cp.Constraint]  # by their values


@dataclass(kw_only=True, eq=False, repr=False)
class ConvexProgram(Face):
    """A CVXPY problem that belongs to an instance and can say what it is.

    Parameters
    ----------
    problem : cvxpy.Problem
        The problem; every number of the instance in it is the value of a Parameter.
    parts : mapping
        Its variables, constraints and objective by name.

    Examples
    --------
    >>> import hindsched as hs
    >>> model = hs.model(hs.generate("mlbroker", preset="small"))
    >>> model.slot(2).program.problem.is_dpp()
    True
    """

    problem: cp.Problem
    parts: Mapping[str, ConvexPart]

    @property
    def cvxpy(self) -> cp.Problem:
        """The CVXPY problem, to be read, or taken apart for a problem of one's own."""
        return self.problem

    def set(self, *given: Any, **values: Any) -> None:
        """Set the Parameters of a program that has settings."""
        raise InputError("set", self.title, "must be a program with settings")

    def components(self, *kinds: str) -> list[Component]:
        """The components by name: objective, constraints, variables."""
        found = []
        for kind in kinds or ("objective", "constraint", "variable"):
            for name, part in self.parts.items():
                if part.kind == kind:
                    size = sum(copy.size for copy in part.copies.values()) or 1
                    own = self._own_indices(name) if part.copies else ()
                    names, unit = (*part.indices, *own), self.symbol(name).unit
                    found.append(Component(name, kind, part.doc, names, unit, size))
        return found

    def table(
        self, name: str, value_of: Callable[[cp.Variable | cp.Constraint], Floats | None],
        unit: str | None = None,
    ) -> pd.Series[float]:  # fmt: skip
        """Numbers by the array of each copy, None to leave it out, labelled; unit in the name."""
        part = self.parts.get(name)
        if part is None or not part.copies:
            raise InputError("component", name, "must be a variable or constraint of the program")
        numbers: dict[tuple[IndexValue, ...], float] = {}
        for prefix, copy in part.copies.items():
            array = value_of(copy)
            if array is not None:
                for index, value in np.ndenumerate(np.asarray(array).reshape(copy.shape)):
                    numbers[*prefix, *index] = float(value)
        indices = (*part.indices, *self._own_indices(name))
        unit = self.symbol(name).unit if unit is None else unit
        return self._labelled(name, unit, indices, numbers)

    def _own_indices(self, name: str) -> tuple[str, ...]:
        return tuple(each.strip() for each in self.symbol(name).indices.split(",") if each.strip())
