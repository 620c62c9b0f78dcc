"""The dual (19), (20) of the oasis family's schedule program (14)-(18).

=========================  ==========================================  ======================
paper                      meaning                                     here
=========================  ==========================================  ======================
``mu_i``                   payoff of a job                             ``mu[i]``
``p_h^r(t)``               price of all that a worker server has       ``p[h, r, t]``
``q_k^r(t)``               price of all that a PS server has           ``q[k, r, t]``
``l`` in ``L_i``           a schedule of a job                         ``eq_20[l]``
=========================  ==========================================  ======================

(20) has a row for every schedule of every job. The program begins without any; rows are added as
best responses break them (row generation), and `OasisDual.violations` checks all of them at once
from the best responses' payoffs. Any feasible point bounds the optimum from above (weak duality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.base import DualProgram, Prices
from hindsched.models.declared import Symbol, symbols
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation


@dataclass(kw_only=True, eq=False, repr=False)
class OasisDual(DualProgram):
    """(19) with the rows (20) of the schedules known so far."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = symbols(
        "job: mu; worker server, resource, slot: p; PS server, resource, slot: q; schedule: eq_20",
        "utility: mu; utility a server's whole capacity: p q; share of the schedule: eq_20",
    )

    instance: OasisInstance
    grows: bool = True

    def name_of(self, index: str, place: int) -> str | None:
        instance = self.instance
        if index == "resource":
            return instance.resources[place]
        if index == "worker server":
            return instance.worker_servers[place].name
        return instance.ps_servers[place].name if index == "PS server" else None

    def add_row(self, job: int, worth: float, use: Prices) -> None:
        """Add the row of (20) of a schedule that is worth so much and uses so much of the rows."""
        m, instance = self.model, self.instance
        paid = [m.mu[job]]
        for price, used, capacity in (
            (m.p, use["worker_capacity"], instance.worker_capacity),
            (m.q, use["ps_capacity"], instance.ps_capacity),
        ):
            for server, r, t in np.argwhere(used > 0).tolist():
                share = float(used[server, r, t] / capacity[server, r])
                paid.append(share * price[server, r, t])
        m.eq_20[len(m.eq_20)] = total(paid) >= worth

    def payoffs(self) -> Floats:
        """Mu at the variables' values."""
        return np.array([max(0.0, mu.value or 0.0) for mu in self.model.mu.values()], dtype=float)

    def prices(self) -> dict[str, Floats]:
        """``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T), per unit of the file."""
        found, horizon = dict[str, Floats](), self.instance.horizon
        for name, prices, capacity in (
            ("worker_capacity", self.model.p, self.instance.worker_capacity),
            ("ps_capacity", self.model.q, self.instance.ps_capacity),
        ):
            found[name] = np.zeros((*capacity.shape, horizon))
            for (server, r, t), price in prices.items():
                found[name][server, r, t] = max(0.0, price.value or 0.0) / capacity[server, r]
        return found

    def violations(self, best: Sequence[float | None] | None = None) -> list[Violation]:
        """Rows of (20), of all schedules, that the present point breaks, and signs."""
        if best is None:
            raise InputError("best", best, "must be given: (20) has a row for every schedule")
        broken, jobs = super().violations(), self.instance.jobs
        for job, payoff, most in zip(jobs, self.payoffs(), best, strict=True):
            if most is not None and most - payoff > FEASIBILITY_TOLERANCE * max(1.0, abs(most)):
                broken.append(Violation("(20)", f"job {job.name}", float(most - payoff)))
        return broken


def build_dual(instance: OasisInstance, formulation: str) -> OasisDual:
    """Build (19), without a row of (20).

    With the rows of all schedules of all jobs the optimum is that of the linear relaxation of (14);
    with fewer it is a lower bound on it.
    """
    m = pyo.ConcreteModel(name=f"dual of {instance.name}")
    m.mu = pyo.Var(
        range(len(instance.jobs)), domain=pyo.NonNegativeReals, doc="(19) payoff of a job"
    )
    m.p = pyo.Var(
        _priced(instance.worker_capacity, instance.horizon), domain=pyo.NonNegativeReals,
        doc="(19) price of a worker server's resource",
    )  # fmt: skip
    m.q = pyo.Var(
        _priced(instance.ps_capacity, instance.horizon), domain=pyo.NonNegativeReals,
        doc="(19) price of a PS server's resource",
    )  # fmt: skip
    m.eq_19 = pyo.Objective(
        expr=total(m.mu.values()) + total(m.p.values()) + total(m.q.values()),
        sense=pyo.minimize, doc="(19) payoffs and the worth of all capacity",
    )  # fmt: skip
    m.eq_20 = pyo.Constraint(
        pyo.NonNegativeIntegers, doc="(20) no schedule earns more than the job's payoff"
    )
    return OasisDual(
        instance=instance,
        formulation=formulation,
        model=m,
        whose="dual (19) of (14), the choice of schedules,",
    )


def _priced(capacity: Floats, horizon: int) -> list[tuple[int, int, int]]:
    """(server, resource, slot from 0) with any capacity."""
    return [(h, r, t) for h, r in np.argwhere(capacity > 0).tolist() for t in range(horizon)]
