"""Toy programs with known answers, in plain Pyomo: ski rental, and the farmer's problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo

from hindsched.analysis.foresight.search import PolicySearch, Strategy
from hindsched.models.futures import Decisions, extensive_form
from hindsched.solvers.door.options import SolveOptions


def search_of(
    models: Sequence[Any], decisions: Sequence[Decisions], probabilities: Sequence[float]
) -> PolicySearch:
    """The same search that families have, over any Pyomo models."""
    model, values = extensive_form(models, decisions, probabilities)

    def read() -> Strategy:
        return Strategy(tuple(float(pyo.value(value)) for value in values))

    return PolicySearch(model, values, read, SolveOptions(threads=1))


def ski_rental(buy: int, seasons: int) -> tuple[list[Any], list[Decisions]]:
    """Skis cost 1 a day or `buy` for good; scenario s ends after day s + 1."""
    models, decisions = list[Any](), list[Decisions]()
    for last in range(1, seasons + 1):
        m = pyo.ConcreteModel()
        days = range(1, last + 1)
        m.buy = pyo.Var(days, domain=pyo.Binary)
        m.skis = pyo.Constraint(expr=pyo.quicksum(m.buy.values()) <= 1)
        m.rent = pyo.Expression(
            days, rule=lambda m, t: 1 - pyo.quicksum(m.buy[s] for s in m.buy if s <= t)
        )
        m.cost = pyo.Objective(
            expr=pyo.quicksum(m.rent.values()) + buy * pyo.quicksum(m.buy.values())
        )
        models.append(m)
        decisions.append(
            {(tuple(range(day - 1, seasons)), f"day {day}"): m.buy[day] for day in days}
        )
    return models, decisions


def farmer() -> tuple[list[Any], list[Decisions]]:
    """Birge and Louveaux: wheat, corn and beets on 500 acres, three yields; profit."""
    models, decisions = list[Any](), list[Decisions]()
    for yields in (0.8, 1.0, 1.2):
        m = pyo.ConcreteModel()
        crops = ("wheat", "corn", "beets")
        m.acres = pyo.Var(crops, domain=pyo.NonNegativeReals)
        m.sold = pyo.Var((*crops, "more beets"), domain=pyo.NonNegativeReals)
        m.bought = pyo.Var(("wheat", "corn"), domain=pyo.NonNegativeReals)
        m.land = pyo.Constraint(expr=pyo.quicksum(m.acres.values()) <= 500)
        m.wheat = pyo.Constraint(
            expr=2.5 * yields * m.acres["wheat"] + m.bought["wheat"] - m.sold["wheat"] >= 200
        )
        m.corn = pyo.Constraint(
            expr=3 * yields * m.acres["corn"] + m.bought["corn"] - m.sold["corn"] >= 240
        )
        m.beets = pyo.Constraint(
            expr=m.sold["beets"] + m.sold["more beets"] <= 20 * yields * m.acres["beets"]
        )
        m.quota = pyo.Constraint(expr=m.sold["beets"] <= 6000)
        m.profit = pyo.Objective(
            expr=170 * m.sold["wheat"] + 150 * m.sold["corn"] + 36 * m.sold["beets"]
            + 10 * m.sold["more beets"] - 238 * m.bought["wheat"] - 210 * m.bought["corn"]
            - 150 * m.acres["wheat"] - 230 * m.acres["corn"] - 260 * m.acres["beets"],
            sense=pyo.maximize,
        )  # fmt: skip
        models.append(m)
        decisions.append({((0, 1, 2), crop): m.acres[crop] for crop in crops})
    return models, decisions
