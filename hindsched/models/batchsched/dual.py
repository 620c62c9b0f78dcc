"""The duals (9)/(18) of the maximum weighted schedule problem, over explicit schedules.

(8)/(17) have one variable for every schedule of a job: here every mode, start and placement,
enumerated, so this is for small clusters.

================  ============================================================
``u[j]``          payoff of job j                                  (9a)/(18a)
``delta[h,r,t]``  price of resource r on server h in slot t
================  ============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.decimals import loosened
from hindsched.instances.modes import units
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Best, DualProgram
from hindsched.models.batchsched.symbols import BatchschedNames
from hindsched.models.declared import Symbol
from hindsched.models.slots import refuse_in_pieces
from hindsched.solutions.base import Violation
from hindsched.solutions.window_placing import hosts, num_ps


def schedules(
    instance: BatchschedInstance, job: BatchschedJob, last: int
) -> Iterator[tuple[int, int, Floats]]:
    """(start, duration, use by server and resource) of every schedule l of Gamma_j up to `last`."""
    room = units(instance.server_capacity, instance.worker_demand)
    free = loosened(instance.server_capacity, instance.server_capacity)
    for m, p, q, count, length in modes(instance, job).tuples():
        if length > last:
            continue
        worker = instance.worker_demand[m]
        if q or instance.has_ps:
            places = hosts(instance, free, m, p, q, count)
        else:
            places = [(-1, 0)]
        for n, g in places:
            beside = np.minimum(room[:, m], count - g)
            if n >= 0:
                beside[n] = 0
            for split in _splits(beside.tolist(), count - g):
                use = np.outer(split, worker)
                if n >= 0:
                    use[n] += g * worker
                    if instance.has_ps:
                        use[n] += num_ps(instance, m, p, count - g) * instance.ps_demand[p]
                for start in range(1, last - length + 2):
                    yield start, length, use


@dataclass(kw_only=True, eq=False, repr=False)
class BatchschedDual(BatchschedNames, DualProgram):
    """(9)/(18): least payoffs plus prices x capacity over slots 1 .. `last`.

    It bounds the round problem (7)/(16), not the offline one.

    Parameters
    ----------
    last : int
        Last slot.
    """

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        "u": Symbol("job", "weight"),
        "delta": Symbol("server, resource, slot", "weight a unit"),
        "eq_9a": Symbol("job, schedule", "share of the schedule"),
        "eq_18a": Symbol("job, schedule", "share of the schedule"),
    }
    OBJECTIVE_UNIT = "weight"

    instance: BatchschedInstance
    last: int

    def prices(self) -> dict[str, Floats]:
        """``capacity``: delta, shape (H, R, last)."""
        array = np.zeros((*self.instance.server_capacity.shape, self.last))
        for (h, r, t), price in self.model.delta.items():
            array[h, r, t - 1] = max(0.0, price.value or 0.0)
        return {"capacity": array}

    def payoffs(self) -> Floats:
        """U at the variables' values."""
        return np.array([max(0.0, u.value or 0.0) for u in self.model.u.values()], dtype=float)

    def violations(self, best: Best | None = None) -> list[Violation]:
        """Rows of (9)/(18) that the present point breaks, over all schedules."""
        names = [job.name for job in self.instance.jobs]
        payoffs = dict(zip(names, self.payoffs().tolist(), strict=True))
        return dual_violations(self.instance, self.last, self.prices()["capacity"], payoffs)


def build_dual(
    instance: BatchschedInstance, formulation: str | None = None, *, last: int | None = None
) -> BatchschedDual:
    """Build (9)/(18), one row a schedule.

    Parameters
    ----------
    instance : BatchschedInstance
        The batch; arrivals do not matter.
    formulation : str, optional
        Both have this dual.
    last : int, optional
        Last slot; by default the horizon.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("batchsched", jobs=1), last=2).last
    2
    """
    last = instance.horizon if last is None else last
    number = 9 if instance.has_ps else 18
    model = pyo.ConcreteModel(name=f"dual of {instance.name}")
    H, R = range(len(instance.servers)), range(len(instance.resources))
    jobs = range(len(instance.jobs))
    model.u = pyo.Var(
        jobs, within=pyo.NonNegativeReals, initialize=0, doc=f"({number}) payoff of a job"
    )
    model.delta = pyo.Var(
        H,
        R,
        range(1, last + 1),
        within=pyo.NonNegativeReals,
        initialize=0,
        doc=f"({number}) price of a server's resource",
    )
    rows = [
        (j, start, length, use)
        for j in jobs
        for start, length, use in schedules(instance, instance.jobs[j], last)
    ]

    def earns_no_more(m: Model, j: int, row: int) -> Expr:
        _, start, length, use = rows[row]
        paid = pyo.quicksum(
            float(use[h, r]) * m.delta[h, r, t]
            for h, r in np.argwhere(use > 0).tolist()
            for t in range(start, start + length)
        )
        return m.u[j] + paid >= float(instance.jobs[j].weight)

    index = [(j, row) for row, (j, *_) in enumerate(rows)]
    doc = f"({number}a) no schedule earns more than the job's payoff"
    model.add_component(f"eq_{number}a", pyo.Constraint(index, rule=earns_no_more, doc=doc))
    worth = pyo.quicksum(
        float(instance.server_capacity[h, r]) * model.delta[h, r, t] for h, r, t in model.delta
    )
    model.objective = pyo.Objective(
        expr=pyo.quicksum(model.u[j] for j in jobs) + worth,
        sense=pyo.minimize,
        doc=f"({number}) payoffs and the worth of all capacity",
    )
    formulation = instance.check_formulation(formulation)
    refuse_in_pieces(formulation)
    return BatchschedDual(instance=instance, formulation=formulation, model=model, last=last)


def dual_violations(
    instance: BatchschedInstance,
    last: int,
    prices: Floats,
    payoffs: Mapping[str, float],
    tolerance: float = 1e-6,
) -> list[Violation]:
    """Constraints of (9)/(18) that prices and payoffs break.

    Parameters
    ----------
    prices : ndarray, shape (servers, resources, last)
        delta.
    payoffs : mapping
        u by job name.
    """
    number = 9 if instance.has_ps else 18
    found = [
        Violation(f"({number}b)", f"price {index}", -float(prices[tuple(index)]))
        for index in np.argwhere(prices < -tolerance).tolist()
    ]
    for job in instance.jobs:
        payoff = payoffs[job.name]
        if payoff < -tolerance:
            found.append(Violation(f"({number}b)", f"job {job.name}", -payoff))
        for start, length, use in schedules(instance, job, last):
            window = prices[:, :, start - 1 : start - 1 + length].sum(axis=2)
            missing = float(job.weight) - float((window * use).sum()) - payoff
            if missing > tolerance:
                where = f"job {job.name}, start {start}"
                found.append(Violation(f"({number}a)", where, missing))
                break
    return found


def _splits(room: list[int], count: int) -> Iterator[list[int]]:
    """All ways to put `count` workers on servers with this room."""
    if not room:
        if count == 0:
            yield []
        return
    for here in range(min(room[0], count) + 1):
        for rest in _splits(room[1:], count - here):
            yield [here, *rest]
