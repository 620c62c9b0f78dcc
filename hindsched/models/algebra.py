"""What Pyomo's objects are called in annotations, since Pyomo says no types, and two domains."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyomo.environ as pyo

Model: TypeAlias = Any
"""A model, or a block of one: its attributes are what rules put there."""
Expr: TypeAlias = Any
"""What a rule returns and a sum adds up: an expression, a relation, a variable or a number."""
ModelComponent: TypeAlias = Any
"""A variable, constraint or objective of a model, or an element of one."""


def whole(relax: bool) -> Any:
    """Domain of what is counted."""
    return pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers


def binary(relax: bool) -> Any:
    """Domain of what is or is not."""
    return pyo.UnitInterval if relax else pyo.Binary
