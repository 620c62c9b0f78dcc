"""The face of every model that a user holds, whatever its program is written in."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import pyomo.environ as pyo

from hindsched.instances.base import Instance
from hindsched.json_types import JsonObject
from hindsched.models.declared import Declared, Face

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
