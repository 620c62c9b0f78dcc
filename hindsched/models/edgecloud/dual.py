"""The dual programs (6) of LP (4) and (9) of LP (8).

``alpha[j]``   dual of (4a), the same for all D_j chunks of a job, because they are identical
``beta[g,t]``  dual of (4b), the same for all workers of a group
``pi[j,t]``    dual of (4e), which the paper drops: (4e) is not redundant
``eta[s,t]``   dual of (7b)

(6a) is asked from ``t >= r_j + Delta_js`` on, where y exists, not from r_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import DualProgram
from hindsched.models.edgecloud.relaxations import FlowSets, flow_sets
from hindsched.models.edgecloud.sets import EdgecloudNames, relaxation_last_slots


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudDual(EdgecloudNames, DualProgram):
    """The dual (6) of LP (4), or (9) of LP (8): it bounds the average fractional flow time."""

    sets: FlowSets

    def prices(self) -> dict[str, Floats]:
        """``worker_capacity``: beta of each worker, shape (W, T)."""
        array = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (g, t), beta in self.model.beta.items():
            if t <= self.instance.horizon:
                array[list(self.sets.groups[g]), t - 1] = max(0.0, beta.value or 0.0)
        return {"worker_capacity": array}

    def payoffs(self) -> Floats:
        """Alpha of all chunks of each job."""
        alpha = [max(0.0, alpha.value or 0.0) for alpha in self.model.alpha.values()]
        return np.array(alpha, dtype=float) * self.instance.chunks


def build_dual(
    instance: EdgecloudInstance, formulation: str, *, at_once: bool = True
) -> EdgecloudDual:
    """Build (6), or (9) where storage is limited; the paper's is without `at_once`, (4e)."""
    jobs = range(len(instance.jobs))
    sets = flow_sets(instance, relaxation_last_slots(instance), "groups")
    D, r = instance.chunks.tolist(), instance.arrivals.tolist()
    edge, cloud = instance.edge_slots.tolist(), instance.cloud_slots.tolist()
    positive = {"domain": pyo.NonNegativeReals}
    m = pyo.ConcreteModel("edgecloud_dual_6")
    m.alpha = pyo.Var(jobs, **positive, doc="(6) dual of (4a): worth of a chunk")
    m.beta = pyo.Var(list(sets.by_group), **positive, doc="(6) dual of (4b): a worker's price")
    m.beta_cloud = pyo.Var(list(sets.by_kind), **positive, doc="(6) the same in the cloud")
    m.pi = pyo.Var(
        list(sets.by_job) if at_once else [], **positive, doc="(ours) dual of (4e), dropped there"
    )
    m.eta = pyo.Var(list(sets.by_server), **positive, doc="(9) dual of (7b): storage's price")

    def flow(j: int, t: int, p: int) -> Expr:
        """What a unit adds to the flow time, and the price of running at once."""
        return (t - r[j]) / (p * D[j]) + (m.pi[j, t] if at_once else 0.0)

    @m.Constraint(sets.edge, doc="(6a) a unit of work costs no less than it is worth")
    def eq_6a(m: Model, j: int, g: int, t: int) -> Expr:
        s = instance.worker_list[sets.groups[g][0]][0]
        stored = (s, t) in m.eta and instance.chunk_gb[j] > 0
        eta = float(instance.chunk_gb[j]) * m.eta[s, t] if stored else 0.0
        return m.alpha[j] / edge[j] <= flow(j, t, edge[j]) + m.beta[g, t] + eta

    @m.Constraint(sets.cloud, doc="(6a) the same in the cloud")
    def eq_6a_cloud(m: Model, j: int, t: int) -> Expr:
        kind = instance.jobs[j].worker_type
        price = m.beta_cloud[kind, t] if (kind, t) in m.beta_cloud else 0.0
        return m.alpha[j] / cloud[j] <= flow(j, t, cloud[j]) + price

    m.objective = pyo.Objective(
        expr=total(D[j] * m.alpha[j] for j in jobs)
        - total(len(sets.groups[g]) * b for (g, _), b in m.beta.items())
        - total(instance.cloud_workers(k) * b for (k, _), b in m.beta_cloud.items())
        - total(D[j] * p for (j, _), p in m.pi.items())
        - total(float(instance.storage_gb[s]) * e for (s, _), e in m.eta.items()),
        sense=pyo.maximize,
        doc="(6) worth of all chunks less the worth of all capacity",
    )
    whose = "dual (9) of LP (8)" if sets.by_server else "dual (6) of LP (4)"
    return EdgecloudDual(
        instance=instance, formulation=formulation, model=m, sets=sets, whose=whose
    )
