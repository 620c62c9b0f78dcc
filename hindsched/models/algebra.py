"""What Pyomo's objects are called in annotations, as it says no types; domains; sums of use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import pyomo.environ as pyo

Model: TypeAlias = Any  # a model, or a block of one: its attributes are what rules put there
Expr: TypeAlias = Any  # what a rule returns: an expression, a relation, a variable or a number
ModelComponent: TypeAlias = Any  # a variable, constraint or objective, or an element of one


Notation: TypeAlias = Mapping[str, tuple[str, str]]
"""By symbol of a paper, for LaTeX: its name here, which of a variable is its component, and what it
is."""


def set_equations(model: Model, equations: Mapping[str, str], notation: Notation) -> None:
    """Give rules the mathematics that they are shown by, and the model its symbols."""
    for rule in model.component_objects((pyo.Objective, pyo.Constraint)):
        if rule.local_name in equations:
            rule.doc = f"{rule.doc} ${equations[rule.local_name]}$"
    model.notation = notation


def integer_domain(relax: bool) -> Any:
    """Domain of what is counted."""
    return pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers


def binary_domain(relax: bool) -> Any:
    """Domain of what is or is not."""
    return pyo.UnitInterval if relax else pyo.Binary


Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Values by key, both in order; none where a key is missing."""
    groups: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


RowKey: TypeAlias = tuple[int, int, int]  # server, resource, slot
Use: TypeAlias = tuple[Expr, int, Iterable[int], Iterable[float]]
"""A variable, the server and the slots in which it uses something, amounts by resource of one."""


def use_by_cell(uses: Iterable[Use]) -> dict[RowKey, list[Expr]]:
    """What is used of every (server, resource, slot), sorted: the left sides of capacities."""
    used: dict[RowKey, list[Expr]] = defaultdict(list)
    for variable, server, slots, amounts in uses:
        for r, amount in enumerate(amounts):
            if amount > 0:
                taken = float(amount) * variable
                for t in slots:
                    used[server, r, t].append(taken)
    return dict(sorted(used.items()))
