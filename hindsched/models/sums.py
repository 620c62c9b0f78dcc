"""Sums over the elements of variables, for many rows at once.

A rule states one row at a time. Where thousands of rows add up the same few variables, the same is
said by arrays: row ``row[i]`` gets ``factor[i] * variable[element[i]]``. In Pyomo it becomes the
constraint that a rule would have made, on the recorder it stays arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from pyomo.core.expr.numeric_expr import LinearExpression

from hindsched.arrays import Bools, Floats, Ints
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Domain, Expr, Variable
from hindsched.models.linear import Linear, Part

Kind = Literal["<=", ">=", "=="]
COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}
PARTS = 3
"""A capacity is known by server, resource and slot."""


class Duals(Protocol):
    """Shadow prices of a solved program."""

    def get(self, component: Any, default: float) -> float:
        """Of one row."""

    def of(self, component: Any) -> Floats:
        """Of an indexed constraint's rows, in its order; 0 for one that the solver did not see."""


class Terms(NamedTuple):
    """Coefficients of one variable's elements in rows; arrays of one length.

    Parameters
    ----------
    variable : Var
        An indexed variable, of Pyomo or recorded.
    row : ndarray of int
        Positions of the rows.
    element : ndarray of int
        Positions of the elements in the variable's own order.
    factor : ndarray
        The coefficients.
    """

    variable: Any
    row: Ints
    element: Ints
    factor: Floats


class Uses(NamedTuple):
    """What a variable's elements use of capacities; arrays of one length.

    Parameters
    ----------
    variable : Var
        The variable.
    key : ndarray of int, shape (uses, PARTS)
        Which capacity: server, resource, slot.
    element : ndarray of int
        Position of the element that uses it.
    amount : ndarray
        What one unit of the element uses.
    """

    variable: Any
    key: Ints
    element: Ints
    amount: Floats


def gather(uses: Sequence[Uses]) -> tuple[Ints, list[Terms]]:
    """Capacities that are used at all, sorted, shape (rows, PARTS), and the terms of their rows."""
    keys = (
        np.concatenate([use.key for use in uses]) if uses else np.zeros((0, PARTS), dtype=np.int64)
    )
    kept, row = distinct(keys)
    ends = np.cumsum([len(use.element) for use in uses])[:-1]
    parts = np.split(row, ends) if uses else []
    return kept, [
        Terms(use.variable, part, use.element, use.amount)
        for use, part in zip(uses, parts, strict=True)
    ]


def distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Each key once, sorted, and where every key stands among them.

    >>> kept, place = distinct(np.array([[2, 1], [0, 5], [2, 1]]))
    >>> kept.tolist(), place.tolist()
    ([[0, 5], [2, 1]], [1, 0, 1])
    """
    sizes = (keys.max(axis=0, initial=0) + 1).tolist()
    codes = keys[:, 0]
    for part, size in enumerate(sizes[1:], 1):
        codes = codes * size + keys[:, part]
    order = codes.argsort(kind="stable")
    ordered = codes[order]
    new = np.ones(len(keys), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return keys[order[new]], place


def ragged(sizes: Ints) -> tuple[Ints, Ints]:
    """Number and place of every entry in groups of the given sizes, one group after the other.

    >>> ragged(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def restrict(terms: Sequence[Terms], kept: Bools) -> list[Terms]:
    """The terms of some of the rows, which are counted anew."""
    number = np.cumsum(kept) - 1
    found = []
    for variable, row, element, factor in terms:
        own = kept[row]
        found.append(Terms(variable, number[row[own]], element[own], factor[own]))
    return found


def tuples(keys: Ints) -> list[Any]:
    """Keys as Pyomo takes them: those of one part are numbers."""
    return keys.tolist() if keys.ndim == 1 else list(map(tuple, keys.tolist()))


def variable(
    keys: Sequence[Any] | Ints, domain: Domain, doc: str, upper: Floats | None = None
) -> Variable:
    """A variable over `keys`.

    Parameters
    ----------
    keys : sequence, or ndarray of int of shape (elements, parts)
        Index of each element.
    domain : set
        Its domain.
    doc : str
        The variable's sentence.
    upper : ndarray, optional
        Upper bound of each element; the lower ones are 0 then.
    """
    if pyo.is_recording():
        return pyo.Var(keys, domain=domain, bounds=None if upper is None else (0.0, upper))
    keys = tuples(keys) if isinstance(keys, np.ndarray) else list(keys)
    if upper is None:
        return pyo.Var(keys, domain=domain, doc=doc)
    most = dict(zip(keys, upper.tolist(), strict=True))

    def bounds(_: Any, *key: Any) -> tuple[float, float]:
        return 0, most[key if len(key) > 1 else key[0]]

    return pyo.Var(keys, domain=domain, bounds=bounds, doc=doc)


def sum_rows(
    keys: Sequence[Any] | Ints,
    terms: Sequence[Terms],
    kind: Kind,
    side: Floats | float,
    doc: str,
) -> Any:
    """The constraint ``sum of terms <= side``, ``>=`` or ``==``, over `keys`.

    Parameters
    ----------
    keys : sequence, or ndarray of int of shape (rows, parts)
        Index of each row.
    terms : sequence of Terms
        What is added up.
    kind : {"<=", ">=", "=="}
        How the sums stand to the side.
    side : ndarray or float
        Right side, by row or of all.
    doc : str
        The constraint's sentence.
    """
    if pyo.is_recording():
        return pyo.SumRows(keys, terms, kind, side, doc)
    sides = side if isinstance(side, np.ndarray) else np.full(len(keys), float(side))
    keys = tuples(keys) if isinstance(keys, np.ndarray) else keys
    bodies = dict(zip(keys, expressions(len(keys), terms), strict=True))
    right = dict(zip(keys, sides.tolist(), strict=True))

    def rule(_: Any, *key: Any) -> Any:
        index = key if len(key) > 1 else key[0]
        return COMPARE[kind](bodies[index], right[index])

    return pyo.Constraint(list(keys), rule=rule, doc=doc)


def expressions(count: int, terms: Sequence[Terms]) -> list[Any]:
    """The sums themselves, by row."""
    factors: list[list[float]] = [[] for _ in range(count)]
    elements: list[list[Any]] = [[] for _ in range(count)]
    for variable, rows, element, factor in terms:
        known = list(variable.values())
        for row, which, amount in zip(
            rows.tolist(), element.tolist(), factor.tolist(), strict=True
        ):
            factors[row].append(amount)
            elements[row].append(known[which])
    make = _linear if pyo.is_recording() else _expression
    return [make(own, of) for own, of in zip(factors, elements, strict=True)]


def weighted(variable: Any, factors: Floats | None = None, which: Ints | None = None) -> Any:
    """``sum of factors[i] * variable[which[i]]``; of all in order, plain without factors."""
    if pyo.is_recording():
        element = np.arange(len(variable)) if which is None else which
        part = Part(variable, element, np.ones(len(element)) if factors is None else factors)
        return Linear([], [], 0.0, (part,))
    elements = list(variable.values())
    if which is not None:
        elements = [elements[place] for place in which.tolist()]
    own = [1.0] * len(elements) if factors is None else factors.tolist()
    return _expression(own, elements)


def consecutive(variable: Variable, keys: Sequence[Any], first: int) -> Expr:
    """Sum of elements that stand one after the other, from position `first` on."""
    if pyo.is_recording():
        return weighted(variable, which=np.arange(first, first + len(keys)))
    return pyo.quicksum(variable[key] for key in keys)


def _linear(factors: list[float], elements: list[Any]) -> Any:
    return Linear(elements, factors, 0.0)


def _expression(factors: list[float], elements: list[Any]) -> Any:
    return LinearExpression(constant=0.0, linear_coefs=factors, linear_vars=elements)


def row_prices(
    component: Any, duals: Duals, sign: int = 1, parts: int = PARTS
) -> tuple[tuple[Ints, ...], Floats]:
    """Prices of an indexed constraint whose rows are capacities: never negative.

    Parameters
    ----------
    component : Constraint
        Its keys are those of capacities.
    duals : Duals
        Shadow prices.
    sign : {1, -1}
        1 where more capacity raises the objective, -1 where it lowers it.
    parts : int
        How many parts a key has.

    Returns
    -------
    keys : tuple of ndarray
        Each part of the keys, by row.
    prices : ndarray
        By row.
    """
    keys = component.keys()
    if not isinstance(keys, np.ndarray):
        keys = np.array(list(keys), dtype=np.int64).reshape(-1, parts)
    return tuple(keys.T), np.maximum(0.0, sign * duals.of(component))
