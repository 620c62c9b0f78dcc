"""Duals of what is left of the capacities, over whole schedules of a few jobs, and plans of them.

The linear program chooses among schedules of each job (Dantzig and Wolfe),

    max sum f_s x_s,  sum_s A_s x_s <= residual,  sum_{s of j} x_s <= 1   ("= 1": jobs must run)

and the pricing oracle finds the schedules that it lacks, so its size does not depend on how many
windows, types and placements a job may choose from: at the papers' sizes those are billions. With
x whole it is a plan (`best_schedules`), and any prices prove by how much none is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.solvers.bounds.master import Column, Master
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program, within_gap
from hindsched.solvers.door.work import now
from hindsched.solvers.oracles.base import BlockOracle, Response

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
    oracle: BlockOracle,
    residual: Floats,
    most_rounds: int = 20,
    options: SolveOptions | None = None,
) -> Floats | None:  # fmt: skip
    """Duals of the linking rows when the oracle's jobs share what is left.

    Parameters
    ----------
    oracle : BlockOracle
        With one row a server; its best responses keep within `residual`.
    residual : ndarray, shape (rows.size,)
        What is left of the capacities.
    most_rounds : int
        Times that schedules are looked for; the program then has those found by then.
    options : SolveOptions, optional
        How each linear program is solved.

    Returns
    -------
    ndarray, shape (rows.size,), or None
        Never negative; all 0 where the best schedules fit together. None if the solver gave none.
    """
    known = _Known(oracle, residual)
    prices = np.zeros(oracle.rows.size)
    for _ in range(most_rounds):
        if not known.look(prices):
            break
        duals = known.duals(options)
        if duals is None:
            return None
        prices = duals
        if not prices.any():
            break  # the best schedules at price 0 are all there
    return prices


def best_schedules(
    oracle: BlockOracle,
    residual: Floats,
    start: Sequence[Response | None],
    *,
    most_rounds: int,
    options: SolveOptions,
) -> Plan:
    """The best plan of the schedules that prices find, and a bound on all plans.

    Parameters
    ----------
    oracle, residual, most_rounds
        As in `schedule_prices`.
    start : sequence of (Response or None)
        A plan that fits in `residual`: the result is none worse.
    options : SolveOptions
        The gap at which to stop, nodes of the last program, and a time limit for all of it.
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
    prices, master = np.zeros(oracle.rows.size), None
    found = Plan(list(start), value, sign * math.inf, prices)
    for _ in range(most_rounds):
        more = known.look(prices)
        if sign * (known.bound - found.bound) < 0:
            found = replace(found, bound=known.bound, prices=prices)
        if not more or within_gap(found.objective, found.bound, options.gap) or left() == 0.0:
            break
        if master is None:
            cost = LEFT_OUT * max(abs(column.objective) for column in known.columns)
            master = Master(oracle, cost, Event(), residual)
        master.add(known.columns)
        solved = master.solve(left())
        if solved is None:
            break
        prices = solved[1]
    if within_gap(found.objective, found.bound, options.gap) or left() == 0.0:
        return found
    chosen = known.chosen(options.with_time(left()))
    if chosen is not None:
        value = math.fsum(response.objective for response in chosen if response is not None)
        if sign * (value - found.objective) > 0:
            found = replace(found, responses=chosen, objective=value)
    return found


class _Known:
    """Schedules found so far, each a column of the program, and the bound of the last prices."""

    def __init__(self, oracle: BlockOracle, residual: Floats) -> None:
        self.oracle, self.residual = oracle, residual
        self.sign = 1 if oracle.sense == "max" else -1
        self.bound = self.sign * math.inf
        self._of: dict[tuple[int, bytes], tuple[Column, Response]] = {}

    def add(self, block: int, response: Response) -> None:
        """Take a schedule, once."""
        column = Column.of(block, response)
        self._of.setdefault((block, column.key), (column, response))

    @property
    def columns(self) -> list[Column]:
        """The schedules as columns, in the order in which they were found."""
        return [column for column, _ in self._of.values()]

    def look(self, prices: Floats) -> bool:
        """Take every job's best schedule at prices; whether one of them is new."""
        oracle, before = self.oracle, len(self._of)
        terms = (self.sign * prices * self.residual).tolist()
        respond = oracle.best_insertion if oracle.optional else oracle.best_response
        for block in range(oracle.num_decided):
            found = respond(block, prices, self.residual)
            if found is not None and found.plan is not None:
                self.add(block, found)
            terms.append(0.0 if found is None else found.value)
        self.bound = oracle.round_outward(terms)
        return len(self._of) > before

    def duals(self, options: SolveOptions | None) -> Floats | None:
        """Prices of all linking rows; None if the solver gave none."""
        prices = np.zeros(self.oracle.rows.size)
        m = self._program(pyo.NonNegativeReals)
        if not len(m.fits):
            return prices
        result = solve_program(m, options, want_duals=True, small=True)
        if result.duals is None:
            return None
        for row, constraint in m.fits.items():
            prices[row] = max(0.0, self.sign * result.duals.get(constraint, 0.0))
        return prices

    def chosen(self, options: SolveOptions) -> list[Response | None] | None:
        """The best of the schedules found that fit together; None if the solver found none."""
        if not self._of:
            return None
        m = self._program(pyo.Binary)
        if not self.oracle.optional:
            m.out.fix(0.0)
        if not solve_program(m, options).has_point:
            return None
        plan: list[Response | None] = [None] * self.oracle.num_decided
        for s, (column, response) in enumerate(self._of.values()):
            if m.x[s].value > 0.5:
                plan[column.block] = response
        return plan

    def _program(self, domain: object) -> pyo.ConcreteModel:
        oracle, residual, columns = self.oracle, self.residual, self.columns
        jobs: dict[int, list[int]] = {}
        for s, column in enumerate(columns):
            jobs.setdefault(column.block, []).append(s)
        use = sp.csr_array(
            (
                np.concatenate([column.amounts for column in columns]),
                np.concatenate([column.rows for column in columns]),
                np.cumsum([0, *(column.rows.size for column in columns)]),
            ),
            shape=(len(columns), oracle.rows.size),
        )
        short = np.flatnonzero(use.sum(axis=0) > residual)
        # of rows with the same users, only the one with the least room can bind
        short = short[np.argsort(residual[short], kind="stable")]
        users: dict[int, list[tuple[int, float]]] = {}
        seen: set[tuple[tuple[int, float], ...]] = set()
        by_row = use.tocsc()[:, short].sorted_indices()
        for row, first, stop in zip(short, by_row.indptr, by_row.indptr[1:], strict=False):
            found = zip(by_row.indices[first:stop], by_row.data[first:stop], strict=True)
            own = tuple((int(s), float(amount)) for s, amount in found)
            if own not in seen:
                seen.add(own)
                users[int(row)] = list(own)

        m = pyo.ConcreteModel(name="schedules")
        m.x = pyo.Var(range(len(columns)), domain=domain, doc="(ours) a schedule is taken")
        m.out = pyo.Var(list(jobs), domain=domain, doc="(ours) a job does not run")
        left = [max(0.0, float(each)) for each in residual]
        m.fits = pyo.Constraint(
            list(users), doc="(ours) what is left of a server",
            rule=lambda m, row: total(a * m.x[s] for s, a in users[row]) <= left[row],
        )  # fmt: skip
        m.once = pyo.Constraint(
            list(jobs), doc="(ours) a job runs once",
            rule=lambda m, j: total(m.x[s] for s in jobs[j]) + m.out[j] == 1,
        )  # fmt: skip
        cost = 0.0 if oracle.optional else LEFT_OUT * max(abs(each.objective) for each in columns)
        worth = total(column.objective * m.x[s] for s, column in enumerate(columns))
        m.objective = pyo.Objective(
            expr=worth - self.sign * cost * total(m.out.values()),
            sense=pyo.maximize if self.sign > 0 else pyo.minimize,
        )
        return m
