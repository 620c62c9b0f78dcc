"""One sign convention for duals, whatever the solver.

A row's dual is the **shadow price**: the derivative of the optimal objective, in the model's own
sense, with respect to the row's right side. A reduced cost is the same for the active bound of a
variable.

=============  ============  ==============
row            maximising    minimising
=============  ============  ==============
``body <= b``  dual >= 0     dual <= 0
``body >= b``  dual <= 0     dual >= 0
``body == b``  any           any
=============  ============  ==============

HiGHS gives exactly this for a minimisation; the bridge minimises the negated objective of a
maximisation, whose duals are negated here. CVXPY gives the multiplier of the Lagrangian, which for
an inequality is never negative whatever the sense: `shadow_prices_of_multipliers` turns them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hindsched.arrays import Floats


class ShadowPrices(Mapping[Any, float]):
    """Shadow prices by component: it is looked up as the object that it is.

    Parameters
    ----------
    sign : int
        1 if the model minimises, -1 if it maximises and its negation was minimised.
    components : sequence
        Constraint (or variable) of each entry; one that occurs twice (a range) gets the sum, since
        at most one of its sides is active.
    duals : ndarray
        Derivatives of the minimised objective.
    """

    def __init__(self, sign: int, components: Sequence[object], duals: Floats) -> None:
        self._sign, self._components, self._duals = sign, components, duals
        self._by_id: dict[int, float] | None = None

    @property
    def _prices(self) -> dict[int, float]:
        if self._by_id is None:
            found: dict[int, float] = {}
            duals = (self._sign * self._duals).tolist()
            for component, dual in zip(self._components, duals, strict=True):
                key = id(component)
                found[key] = found[key] + dual if key in found else dual
            self._by_id = found
        return self._by_id

    def __getitem__(self, component: object) -> float:
        return self._prices[id(component)]

    def __iter__(self) -> Iterator[Any]:
        seen: set[int] = set()
        for component in self._components:
            if id(component) not in seen:
                seen.add(id(component))
                yield component

    def __len__(self) -> int:
        return len(self._prices)


def shadow_prices_of_multipliers(sense: str, kind: str, multipliers: Floats) -> Floats:
    """Turn CVXPY's multipliers of one constraint into shadow prices.

    Parameters
    ----------
    sense : {"max", "min"}
        Sense of the problem.
    kind : {"<=", ">=", "=="}
        How the constraint stands with its constant on the right. CVXPY itself keeps every
        inequality as ``left <= right``; one whose left side alone is constant is a ``>=``.
    multipliers : ndarray
        CVXPY's ``dual_value``: never negative for an inequality, whatever the sense.

    Notes
    -----
    CVXPY's Lagrangian of ``min f`` is ``f + y (left - right)``, so the derivative of the minimum
    with respect to the right side is -y; for ``max f`` it minimises -f, which gives +y.
    """
    if kind not in ("<=", ">=", "=="):
        raise ValueError(f"unknown kind of constraint: {kind}")
    sign = 1.0 if (sense == "max") != (kind == ">=") else -1.0
    return np.asarray(sign * np.asarray(multipliers, dtype=float))
