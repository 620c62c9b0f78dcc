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
which rows are added as best responses break them (row generation); `DualPoint.violations` checks
all of them at once from the best responses' payoffs. Any feasible point bounds the optimum from
above (weak duality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.base import Best, DualProgram, Prices
from hindsched.models.declared import Symbol
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation
from hindsched.solutions.oasis.solution import OasisSolution


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
    worker_use: Floats
    ps_use: Floats


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
    payoffs: Floats
    worker_prices: Floats
    ps_prices: Floats

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


@dataclass(kw_only=True, eq=False, repr=False)
class OasisDual(DualProgram):
    """(19) with the rows (20) of the schedules known so far.

    Prices are scaled by capacity inside; `prices` and `point` give them per unit of the file.

    Parameters
    ----------
    schedules : list of Schedule
        The schedules that have a row.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        "mu": Symbol("job", "utility"),
        "p": Symbol("worker server, resource, slot", "utility a server's whole capacity"),
        "q": Symbol("PS server, resource, slot", "utility a server's whole capacity"),
        "eq_20": Symbol("schedule", "share of the schedule"),
    }

    instance: OasisInstance
    schedules: list[Schedule] = field(default_factory=lambda: list[Schedule]())
    grows: bool = True

    @property
    def title(self) -> str:
        """The program whose dual it is, and the instance."""
        return f"oasis: dual of (14), the choice of schedules, of {self.instance.name}"

    def name_of(self, index: str, place: int) -> str | None:
        """Name of a server or a resource by its position; None for another index."""
        if index == "resource":
            return self.instance.resources[place]
        if index == "worker server":
            return self.instance.worker_servers[place].name
        return self.instance.ps_servers[place].name if index == "PS server" else None

    def add(self, schedule: Schedule) -> None:
        """Add a schedule's row of (20)."""
        model, instance = self.model, self.instance
        paid = []
        for prices, use, capacity in (
            (model.p, schedule.worker_use, instance.worker_capacity),
            (model.q, schedule.ps_use, instance.ps_capacity),
        ):
            for key in np.argwhere(use > 0).tolist():
                server, r, t = key
                paid.append(float(use[server, r, t] / capacity[server, r]) * prices[server, r, t])
        model.eq_20[len(self.schedules)] = (
            model.mu[schedule.job] + pyo.quicksum(paid) >= schedule.utility
        )
        self.schedules.append(schedule)

    def add_row(self, job: int, worth: float, use: Prices) -> None:
        """Add the row of a schedule that a best response found."""
        self.add(Schedule(job, worth, use["worker_capacity"], use["ps_capacity"]))

    def point(self) -> DualPoint:
        """The point at the variables' values, prices per unit of the file."""
        arrays = []
        for prices, capacity in (
            (self.model.p, self.instance.worker_capacity),
            (self.model.q, self.instance.ps_capacity),
        ):
            array = np.zeros((*capacity.shape, self.instance.horizon))
            for (server, r, t), price in prices.items():
                array[server, r, t] = max(0.0, price.value or 0.0) / capacity[server, r]
            arrays.append(array)
        return DualPoint(self.instance, self.payoffs(), arrays[0], arrays[1])

    def payoffs(self) -> Floats:
        """Mu at the variables' values."""
        return np.array([max(0.0, mu.value or 0.0) for mu in self.model.mu.values()], dtype=float)

    def prices(self) -> dict[str, Floats]:
        """``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T)."""
        point = self.point()
        return {"worker_capacity": point.worker_prices, "ps_capacity": point.ps_prices}

    def violations(self, best: Best | None = None) -> list[Violation]:
        """Rows of (20), of all schedules, that the present point breaks, and (19)'s signs."""
        if best is None:
            raise InputError("best", best, "must be given: (20) has a row for every schedule")
        return self.point().violations(best(self.prices()))


def build_dual(
    instance: OasisInstance,
    formulation: str | None = None,
    schedules: Sequence[Schedule] = (),
) -> OasisDual:
    """Build (19) with the rows (20) of the schedules given.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    formulation : str, optional
        The family has one.
    schedules : sequence of Schedule
        Rows of (20). With all schedules of all jobs the optimum is that of the linear relaxation
        of (14); with fewer it is a lower bound on it.

    Returns
    -------
    OasisDual
        Variables ``mu[i]``, ``p[h, r, t]``, ``q[k, r, t]`` where there is capacity, objective
        ``eq_19``, rows ``eq_20[l]``.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("oasis", jobs=2, horizon=6)).schedules
    []
    """
    model = pyo.ConcreteModel(name=f"dual of {instance.name}")
    model.mu = pyo.Var(
        range(len(instance.jobs)), domain=pyo.NonNegativeReals, doc="(19) payoff of a job"
    )
    model.p = pyo.Var(
        _cells(instance.worker_capacity, instance.horizon),
        domain=pyo.NonNegativeReals,
        doc="(19) price of a worker server's resource",
    )
    model.q = pyo.Var(
        _cells(instance.ps_capacity, instance.horizon),
        domain=pyo.NonNegativeReals,
        doc="(19) price of a PS server's resource",
    )
    prices = pyo.quicksum(model.p.values()) + pyo.quicksum(model.q.values())
    model.eq_19 = pyo.Objective(
        expr=pyo.quicksum(model.mu.values()) + prices,
        sense=pyo.minimize,
        doc="(19) payoffs and the worth of all capacity",
    )
    model.eq_20 = pyo.Constraint(
        pyo.NonNegativeIntegers, doc="(20) no schedule earns more than the job's payoff"
    )
    dual = OasisDual(
        instance=instance, formulation=instance.check_formulation(formulation), model=model
    )
    for schedule in schedules:
        dual.add(schedule)
    return dual


def _cells(capacity: Floats, horizon: int) -> list[tuple[int, int, int]]:
    """(server, resource, slot from 0) with any capacity."""
    return [(h, r, t) for h, r in np.argwhere(capacity > 0).tolist() for t in range(horizon)]
