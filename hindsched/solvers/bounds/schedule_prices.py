"""Prices of what is left of the capacities over whole schedules of a few jobs, and plans of them.

The restricted master (`master`) chooses among the schedules of each job that the pricing oracle has
found, so its size does not depend on how many windows, types and placements a job may choose from:
at the papers' sizes those are billions. With whole columns it is a plan (`best_schedules`), and any
prices prove by how much none is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.solvers.bounds.master import Column, Master
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program, within_gap
from hindsched.solvers.door.work import now
from hindsched.solvers.oracles.base import PlacingOracle, Response

LEFT_OUT = 10.0
"""What a job that must run costs where it does not, in the largest cost of a schedule."""


@dataclass(frozen=True)
class Plan:
    """The best schedules found together."""

    responses: list[Response | None]  # by job; None for one that stays out
    objective: float  # what the plan earns or costs
    bound: float  # what no plan on what is left can beat
    prices: Floats  # the prices that prove the bound, (rows.size,)


def schedule_prices(
    oracle: PlacingOracle, residual: Floats, *, iterations: int | None = None
) -> Floats | None:
    """Duals of the linking rows, one a server, when the oracle's jobs share what is left.

    Best responses keep within `residual`. Never negative, all 0 where the best schedules fit
    together; None if a master did not end within so many simplex iterations.
    """
    known = _Known(oracle, residual, iterations)
    prices = np.zeros(oracle.rows.size)
    while known.look(prices):
        duals = known.duals()
        if duals is None:
            return None
        prices = duals
        if not prices.any():
            break  # the best schedules at price 0 are all there
    return prices


def best_schedules(
    oracle: PlacingOracle, residual: Floats, start: Sequence[Response | None], *, most_rounds: int,
    options: SolveOptions,
) -> Plan:  # fmt: skip
    """The best plan of the schedules that prices find in so many rounds, and a bound on all plans.

    `start` fits in `residual`: the plan is none worse. The options say at which gap to stop, and
    limit the nodes of the last program and the time of all of it.
    """
    began, sign = now(), 1 if oracle.sense == "max" else -1

    def left() -> float | None:
        limit = options.time_limit
        return None if limit is None else max(0.0, limit - (now() - began))

    known = _Known(oracle, residual)
    for block, response in enumerate(start):
        if response is not None:
            known.add(block, response)
    value = math.fsum(response.objective for response in start if response is not None)
    prices = np.zeros(oracle.rows.size)
    plan = Plan(list(start), value, sign * math.inf, prices)
    for _ in range(most_rounds):
        more = known.look(prices)
        if sign * (known.bound - plan.bound) < 0:
            plan = replace(plan, bound=known.bound, prices=prices)
        if not more or within_gap(plan.objective, plan.bound, options.gap) or left() == 0.0:
            break
        duals = known.duals(left())
        if duals is None:
            break
        prices = duals
    if within_gap(plan.objective, plan.bound, options.gap) or left() == 0.0:
        return plan
    chosen = known.chosen(options.with_time(left()))
    if chosen is not None:
        value = math.fsum(response.objective for response in chosen if response is not None)
        if sign * (value - plan.objective) > 0:
            plan = replace(plan, responses=chosen, objective=value)
    return plan


class _Known:
    """Schedules found so far, the master over them, and the bound of the last prices."""

    def __init__(
        self, oracle: PlacingOracle, residual: Floats, iterations: int | None = None
    ) -> None:
        self.oracle, self.residual = oracle, residual
        self.sign = 1 if oracle.sense == "max" else -1
        self.bound = self.sign * math.inf
        self._master = Master(oracle, 0.0, residual, iterations)
        self._use = np.zeros(oracle.rows.size)  # of all of them together

    def add(self, block: int, response: Response) -> bool:
        """Take a schedule; whether it is new."""
        new = self._master.add(Column.of(block, response))
        if new:
            np.add.at(self._use, response.rows, response.amounts)
        return new

    def look(self, prices: Floats) -> bool:
        """Take every job's best schedule at prices; whether one of them is new."""
        oracle, new = self.oracle, 0
        terms = (self.sign * prices * self.residual).tolist()
        respond = oracle.best_insertion if oracle.optional else oracle.best_response
        for block in range(oracle.num_decided):
            response = respond(block, prices, self.residual)
            if response is not None and response.plan is not None:
                new += self.add(block, response)
            terms.append(0.0 if response is None else response.value)
        self.bound = oracle.round_outward(terms)
        return new > 0

    def duals(self, seconds: float | None = None) -> Floats | None:
        """Prices of all rows, 0 where all schedules fit; None if a limit ended the master."""
        short = self._use > self.residual
        self._master.set_capacity(np.where(short, self.residual, math.inf))
        objectives = [each.response.objective for each in self._master.columns]
        self._master.set_penalty(LEFT_OUT * max(map(abs, objectives)))
        solved = self._master.solve(seconds)
        return None if solved is None else solved[1]

    def chosen(self, options: SolveOptions) -> list[Response | None] | None:
        """The best of the schedules found that fit together; None if the solver found none."""
        columns, optional = self._master.columns, self.oracle.optional
        if not columns:
            return None
        of_job: dict[int, list[int]] = {}
        of_row: dict[int, list[tuple[int, float]]] = {}
        for s, column in enumerate(columns):
            of_job.setdefault(column.block, []).append(s)
            for row, amount in zip(column.rows.tolist(), column.amounts.tolist(), strict=True):
                of_row.setdefault(row, []).append((s, amount))
        left = np.maximum(self.residual, 0.0).tolist()
        short = np.flatnonzero(self._use > self.residual).tolist()

        m = pyo.ConcreteModel(name="schedules")
        m.x = pyo.Var(range(len(columns)), domain=pyo.Binary, doc="(ours) a schedule is taken")
        m.fits = pyo.Constraint(
            short, doc="(ours) what is left of a server",
            rule=lambda m, row: total(a * m.x[s] for s, a in of_row[row]) <= left[row],
        )  # fmt: skip
        m.once = pyo.Constraint(
            list(of_job), doc="(ours) a job runs once",
            rule=lambda m, j: (0 if optional else 1, total(m.x[s] for s in of_job[j]), 1),
        )  # fmt: skip
        m.objective = pyo.Objective(
            expr=total(each.response.objective * m.x[s] for s, each in enumerate(columns)),
            sense=pyo.maximize if self.sign > 0 else pyo.minimize,
        )
        if not solve_program(m, options).has_point:
            return None
        plan: list[Response | None] = [None] * self.oracle.num_decided
        for s, column in enumerate(columns):
            if m.x[s].value > 0.5:
                plan[column.block] = column.response
        return plan
