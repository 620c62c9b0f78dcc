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

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.modes import units
from hindsched.models.windows import hosts, num_ps

Array = NDArray[np.float64]


def schedules(
    instance: BatchschedInstance, job: BatchschedJob, last: int
) -> Iterator[tuple[int, int, Array]]:
    """(start, duration, use by server and resource) of every schedule l of Gamma_j up to `last`."""
    room = units(instance.server_capacity, instance.worker_demand)
    for m, p, q, count, length in modes(instance, job).tuples():
        if length > last:
            continue
        worker = instance.worker_demand[m]
        if q or instance.has_ps:
            places = hosts(instance, instance.server_capacity, m, p, q, count)
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


def build_dual(instance: BatchschedInstance, last: int) -> pyo.ConcreteModel:
    """Build (9)/(18): least payoffs plus prices x capacity over slots 1 .. `last`."""
    model = pyo.ConcreteModel()
    H, R = range(len(instance.servers)), range(len(instance.resources))
    jobs = range(len(instance.jobs))
    model.u = pyo.Var(jobs, within=pyo.NonNegativeReals, initialize=0)
    model.delta = pyo.Var(H, R, range(1, last + 1), within=pyo.NonNegativeReals, initialize=0)
    model.eq_9a = pyo.ConstraintList()
    for j in jobs:
        for start, length, use in schedules(instance, instance.jobs[j], last):
            paid = pyo.quicksum(
                float(use[h, r]) * model.delta[int(h), int(r), t]
                for h, r in np.argwhere(use > 0)
                for t in range(start, start + length)
            )
            model.eq_9a.add(model.u[j] + paid >= float(instance.jobs[j].weight))
    worth = pyo.quicksum(
        float(instance.server_capacity[h, r]) * model.delta[h, r, t] for h, r, t in model.delta
    )
    model.objective = pyo.Objective(
        expr=pyo.quicksum(model.u[j] for j in jobs) + worth, sense=pyo.minimize
    )
    return model


def dual_violations(
    instance: BatchschedInstance,
    last: int,
    prices: Array,
    payoffs: Mapping[str, float],
    tolerance: float = 1e-6,
) -> list[str]:
    """Constraints of (9)/(18) that prices and payoffs break.

    Parameters
    ----------
    prices : ndarray, shape (servers, resources, last)
        delta.
    payoffs : mapping
        u by job name.
    """
    found = [f"(9b) price {index}" for index in np.argwhere(prices < -tolerance).tolist()]
    for job in instance.jobs:
        payoff = payoffs[job.name]
        if payoff < -tolerance:
            found.append(f"(9b) job {job.name}")
        for start, length, use in schedules(instance, job, last):
            window = prices[:, :, start - 1 : start - 1 + length].sum(axis=2)
            missing = float(job.weight) - float((window * use).sum()) - payoff
            if missing > tolerance:
                found.append(f"(9a) job {job.name}, start {start}: by {missing:.6g}")
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
