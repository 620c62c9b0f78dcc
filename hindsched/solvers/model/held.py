"""What a user holds of a program whatever it is written in, and whether its Pyomo model changed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.models.base import OfflineProgram
from hindsched.models.declared import Declared, Face
from hindsched.solvers.door.standard_form import (
    LinearProgram,
    TriviallyInfeasibleError,
    compile_program,
)

AnyProgram = TypeVar("AnyProgram", bound=Face)
AnyDeclared = TypeVar("AnyDeclared", bound=Declared)


class Held(Generic[AnyProgram]):
    """What all models share: they have a declarative program and print what it says.

    Parameters
    ----------
    program : Face
        The declarative program.
    """

    def __init__(self, program: AnyProgram) -> None:
        self.program = program

    @property
    def instance(self) -> Instance:
        """What the model is about."""
        return self.program.instance

    def to_dict(self) -> JsonObject:
        """Equations and sizes as JSON data."""
        return self.program.to_dict()

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return repr(self.program)

    def _repr_html_(self) -> str:
        return self.program._repr_html_()


class HeldPyomo(Held[AnyDeclared]):
    """A model whose program is a Pyomo model: it is given away, and written to a file."""

    @property
    def pyomo(self) -> pyo.ConcreteModel:
        """The Pyomo model: read it, change it, give it to any solver."""
        return self.program.pyomo

    def to_latex(self) -> str:
        """One row of each rule as mathematics, with its sentence and the paper's number."""
        return self.program.to_latex()

    def write(self, path: str | Path) -> None:
        """Write an MPS or LP file with readable names; the path's ending says which."""
        self.program.write(path)


def what_changed(program: OfflineProgram) -> str | None:
    """What differs between a program's Pyomo model and one that is built anew, in one line.

    None if nothing does. Nothing is compared where the Pyomo model was never handed out.
    """
    if not program.was_handed_out:
        return None
    present, built = (_compiled(each) for each in (program, program.again()))
    if present is None or built is None:
        return None if present is built else "whether its constants can hold at all"
    found = []
    for kind in ("rows", "columns"):
        now, before = (
            Counter(item.parent_component().local_name for item in getattr(each, kind))
            for each in (present, built)
        )
        for name in sorted(now.keys() | before.keys()):
            if now[name] != before[name]:
                found.append(f"{name} has {now[name]} {kind} instead of {before[name]}")
    return ", ".join(found) or _other_numbers(present, built)


def _compiled(program: OfflineProgram) -> LinearProgram | None:
    try:
        return compile_program(program.model)
    except TriviallyInfeasibleError:
        return None


def _other_numbers(one: LinearProgram, other: LinearProgram) -> str | None:
    """Name the arrays of two programs with components of equal sizes that differ."""

    def differ(*names: str) -> bool:
        return not all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)

    differs = {
        "the objective": differ("sign", "offset", "cost"),
        "coefficients": bool(sp.csc_array(one.matrix - other.matrix).count_nonzero()),
        "right sides": differ("row_lower", "row_upper"),
        "bounds": differ("lower", "upper"),
        "domains": differ("integer"),
    }
    return ", ".join(name for name, different in differs.items() if different) or None
