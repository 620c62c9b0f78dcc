"""Duals of programs over whole schedules: (19) of oasis, (9)/(18) of batchsched, (6) of astraea.

    least  sum over jobs j of payoff_j  +  sum of price x capacity
    payoff_j  +  sum of price x what the schedule uses  >=  its worth     for every schedule of j

Any prices with the payoffs of the best schedules are feasible, which is how certificates work: they
need no list of schedules. Any feasible point bounds the optimum from above (weak duality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.models.algebra import Expr
from hindsched.models.base import BrokenRow, DualProgram, Prices
from hindsched.solutions.base import FEASIBILITY_TOLERANCE


class Priced(NamedTuple):
    """Prices of a set of capacities, (servers, kinds) in each slot."""

    letter: str  # of the variables, by server, kind and slot, where there is any capacity
    what: str  # that they are the prices of
    capacity: Floats
    unit: Floats  # amounts that they are the prices of


@dataclass(kw_only=True, eq=False, repr=False)
class ScheduleDual(DualProgram):
    """A dual with one row a schedule; without a list of them it `grows` by best responses."""

    priced: Mapping[str, Priced]  # by the oracle's row sets
    slots: int  # last slot
    payoff: Expr
    rows: Expr
    grows: bool = False  # whether rows are added until no best response breaks one (`add_row`)

    def add_row(self, job: int, worth: float, use: Prices) -> None:
        """Add the row of a job's schedule, of that worth and use by row set."""
        paid = [self.payoff[job]]
        for name, (letter, _, _, unit) in self.priced.items():
            prices = self.model.component(letter)
            for server, k, t in np.argwhere(use[name] > 0).tolist():
                amount = use[name][server, k, t] / unit[server, k]
                paid.append(float(amount) * prices[server, k, t + 1])
        self.rows[job, len(self.rows)] = total(paid) >= worth

    def payoffs(self) -> Floats:
        """Payoffs at the variables' values."""
        return np.array(
            [max(0.0, variable.value or 0.0) for variable in self.payoff.values()], dtype=float
        )

    def prices(self) -> dict[str, Floats]:
        """By row set, (servers, kinds, slots), per unit of the file."""
        prices = dict[str, Floats]()
        for name, (letter, _, capacity, unit) in self.priced.items():
            prices[name] = np.zeros((*capacity.shape, self.slots))
            for (server, k, t), variable in self.model.component(letter).items():
                prices[name][server, k, t - 1] = max(0.0, variable.value or 0.0) / unit[server, k]
        return prices

    def violations(self, best: Sequence[float | None] | None = None) -> list[BrokenRow]:
        """Rows of all schedules that the present point breaks, and signs."""
        broken, jobs = super().violations(), self.instance.jobs
        if not self.grows:
            return broken
        if best is None:
            raise InputError("best", best, "must be given: there is a row for every schedule")
        number, _, _ = self.rows.doc.partition(")")
        for job, payoff, most in zip(jobs, self.payoffs(), best, strict=True):
            if most is not None and most - payoff > FEASIBILITY_TOLERANCE * max(1.0, abs(most)):
                broken.append(BrokenRow(f"{number})", f"job {job.name}", float(most - payoff)))
        return broken


def schedule_dual(
    kind: type[ScheduleDual], instance: Any, number: str, row: str, payoff: str,
    priced: Mapping[str, Priced], slots: int, **facts: Any,
) -> Any:  # fmt: skip
    """A dual of a `kind` without a row; `number` is the paper's of the dual, `row` of its rows."""
    m = pyo.ConcreteModel(name=f"dual of {instance.name}")
    jobs, worth = range(len(instance.jobs)), list[Expr]()
    payoffs = pyo.Var(jobs, domain=pyo.NonNegativeReals, doc=f"({number}) payoff of a job")
    m.add_component(payoff, payoffs)
    for letter, what, capacity, unit in priced.values():
        cells = [
            (server, k, t)
            for server, k in np.argwhere(capacity > 0).tolist() for t in range(1, slots + 1)
        ]  # fmt: skip
        prices = pyo.Var(cells, domain=pyo.NonNegativeReals, doc=f"({number}) price of {what}")
        m.add_component(letter, prices)
        worth += [float(capacity[h, k] / unit[h, k]) * p for (h, k, _), p in prices.items()]
    objective = pyo.Objective(
        expr=total(payoffs.values()) + total(worth),
        sense=pyo.minimize, doc=f"({number}) payoffs and the worth of all capacity",
    )  # fmt: skip
    m.add_component(f"eq_{number}", objective)
    rows = pyo.Constraint(
        jobs, pyo.NonNegativeIntegers, doc=f"({row}) no schedule earns more than the job's payoff"
    )
    m.add_component(f"eq_{row}", rows)
    return kind(
        instance=instance, model=m, priced=priced, slots=slots, payoff=payoffs, rows=rows, **facts
    )
