"""The dual (19), (20) of the oasis family's schedule program (14)-(18).

=========================  ==========================================  ==============
paper                      here                                        shape
=========================  ==========================================  ==============
``mu_i``                   `DualPoint.payoffs`                         (I,)
``p_h^r(t)``               `DualPoint.worker_prices`                   (H, R, T)
``q_k^r(t)``               `DualPoint.ps_prices`                       (K, R, T)
``l`` in ``L_i``           `Schedule`
=========================  ==========================================  ==============

(20) has a row for every schedule of every job. `build_dual` takes the rows that are given, to
which rows are added as a best response violates them (row generation); `DualPoint.violations`
checks all of them at once from the best responses' payoffs. Any feasible point bounds the optimum
from above (weak duality).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation
from hindsched.solutions.oasis.solution import OasisSolution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Schedule:
    """A schedule l of a job.

    Parameters
    ----------
    job : int
        Position of the job.
    utility : float
        ``f(t_l - a)``.
    worker_use, ps_use : ndarray, shape (H, R, T), (K, R, T)
        What it uses of the capacities.
    """

    job: int
    utility: float
    worker_use: Array
    ps_use: Array


def schedules_of(solution: OasisSolution) -> list[Schedule]:
    """The schedules of the jobs that a solution completes."""
    instance = solution.instance
    return [
        Schedule(
            index,
            solution.value(job.name),
            np.einsum("th,r->hrt", solution.workers[job.name], instance.worker_demand[index]),
            np.einsum("tk,r->krt", solution.ps[job.name], instance.ps_demand[index]),
        )
        for index, job in enumerate(instance.jobs)
        if solution.completion(job.name) is not None
    ]


@dataclass(frozen=True)
class DualPoint:
    """A point of the dual.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    payoffs : ndarray, shape (I,)
        mu.
    worker_prices, ps_prices : ndarray, shape (H, R, T), (K, R, T)
        p and q, per unit of the file.
    """

    instance: OasisInstance
    payoffs: Array
    worker_prices: Array
    ps_prices: Array

    def objective(self) -> float:
        """(19): payoffs plus prices times capacities."""
        workers = np.einsum("hrt,hr->", self.worker_prices, self.instance.worker_capacity)
        ps = np.einsum("krt,kr->", self.ps_prices, self.instance.ps_capacity)
        return float(self.payoffs.sum() + workers + ps)

    def payoff_of(self, schedule: Schedule) -> float:
        """Right side of (20): utility minus the cost of the resources used."""
        cost = (self.worker_prices * schedule.worker_use).sum()
        cost += (self.ps_prices * schedule.ps_use).sum()
        return float(schedule.utility - cost)

    def violations(self, best_payoffs: Sequence[float | None]) -> list[Violation]:
        """Check the dual point against **all** schedules.

        Parameters
        ----------
        best_payoffs : sequence of float or None
            For each job the largest right side of (20) at these prices, from an exact best response
            at full capacity; None if the job has no schedule.

        Returns
        -------
        list of Violation
            ``(20)`` by job, and negative payoffs or prices as ``(19)``.
        """
        found = []
        for job, payoff, best in zip(self.instance.jobs, self.payoffs, best_payoffs, strict=True):
            if best is not None and best - payoff > FEASIBILITY_TOLERANCE * max(1.0, abs(best)):
                found.append(Violation("(20)", f"job {job.name}", float(best - payoff)))
        for name, values in (
            ("payoff", self.payoffs),
            ("worker price", self.worker_prices),
            ("PS price", self.ps_prices),
        ):
            worst = float(values.min(initial=0.0))
            if worst < -FEASIBILITY_TOLERANCE:
                found.append(Violation("(19)", f"smallest {name}", -worst))
        return found


def build_dual(instance: OasisInstance, schedules: Sequence[Schedule]) -> pyo.ConcreteModel:
    """Build (19) with the rows (20) of the schedules given.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    schedules : sequence of Schedule
        Rows of (20). With all schedules of all jobs the optimum is that of the linear relaxation
        of (14); with fewer it is a lower bound on it.

    Returns
    -------
    ConcreteModel
        Variables ``mu[i]``, ``p[h, r, t]``, ``q[k, r, t]`` (only those that a row mentions; the
        others are 0 at an optimum), objective ``eq_19``, rows ``eq_20[l]``. Prices are scaled by
        capacity inside; read them with `dual_point`.
    """
    model = pyo.ConcreteModel()
    model.schedules = list(schedules)
    model.mu = pyo.Var(range(len(instance.jobs)), domain=pyo.NonNegativeReals)
    costs: list[list[object]] = [[] for _ in model.schedules]
    capacity_terms = []
    for name, uses, capacity in (
        ("p", [schedule.worker_use for schedule in schedules], instance.worker_capacity),
        ("q", [schedule.ps_use for schedule in schedules], instance.ps_capacity),
    ):
        used = np.zeros((*capacity.shape, instance.horizon), dtype=bool)
        for use in uses:
            used |= use > 0
        index = [tuple(int(i) for i in key) for key in np.argwhere(used)]
        prices = pyo.Var(index, domain=pyo.NonNegativeReals)
        setattr(model, name, prices)
        capacity_terms += [prices[key] for key in index]
        for terms, use in zip(costs, uses, strict=True):
            for key in np.argwhere(use > 0):
                h, r, t = (int(i) for i in key)
                terms.append(float(use[h, r, t] / capacity[h, r]) * prices[h, r, t])
    model.eq_19 = pyo.Objective(
        expr=pyo.quicksum(model.mu.values()) + pyo.quicksum(capacity_terms), sense=pyo.minimize
    )
    model.eq_20 = pyo.Constraint(
        range(len(model.schedules)),
        rule=lambda m, row: (
            m.mu[m.schedules[row].job] + pyo.quicksum(costs[row]) >= m.schedules[row].utility
        ),
    )
    return model


def dual_point(model: pyo.ConcreteModel, instance: OasisInstance) -> DualPoint:
    """Read the point at the variables' values, prices per unit of the file."""
    payoffs = np.array([max(0.0, model.mu[i].value or 0.0) for i in model.mu], dtype=float)
    arrays = []
    for prices, capacity in (
        (model.p, instance.worker_capacity),
        (model.q, instance.ps_capacity),
    ):
        array = np.zeros((*capacity.shape, instance.horizon))
        for (h, r, t), price in prices.items():
            array[h, r, t] = max(0.0, price.value or 0.0) / capacity[h, r]
        arrays.append(array)
    return DualPoint(instance, payoffs, arrays[0], arrays[1])
