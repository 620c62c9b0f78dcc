"""The dual programs (6) of LP (4) and (9) of LP (8).

==============  =================================================================================
``alpha[j]``    dual of (4a), the same for all D_j chunks of a job, because they are identical
``beta[g,t]``   dual of (4b), the same for all workers of a group
``pi[j,t]``     dual of (4e), which the paper drops: (4e) is not redundant
``eta[s,t]``    dual of (7b)
==============  =================================================================================

(6a) is asked from ``t >= r_j + Delta_js`` on, where y exists, not from r_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Best, DualProgram
from hindsched.models.edgecloud.relaxations import FlowCells, flow_cells
from hindsched.models.edgecloud.sets import relaxation_last_slots
from hindsched.models.edgecloud.symbols import JOB_SLOTS, SYMBOLS, EdgecloudNames
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudDual(EdgecloudNames, DualProgram):
    """The dual (6) of LP (4), or (9) of LP (8): it bounds the average fractional flow time.

    Parameters
    ----------
    cells : FlowCells
        Index sets of the primal.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = JOB_SLOTS

    instance: EdgecloudInstance
    cells: FlowCells

    @property
    def title(self) -> str:
        """Family, instance, and whose dual it is."""
        whose = "(9), dual of LP (8)" if self.cells.by_server else "(6), dual of LP (4)"
        return f"{self.instance.family}: {whose} of {self.instance.name}"

    def prices(self) -> dict[str, Floats]:
        """``worker_capacity``: beta of each worker, shape (W, T)."""
        array = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (g, t), beta in self.model.beta.items():
            if t <= self.instance.horizon:
                array[list(self.cells.groups[g][2]), t - 1] = max(0.0, beta.value or 0.0)
        return {"worker_capacity": array}

    def payoffs(self) -> Floats:
        """Alpha of all chunks of each job."""
        alpha = [max(0.0, alpha.value or 0.0) for alpha in self.model.alpha.values()]
        return np.array(alpha, dtype=float) * self.instance.chunks

    def violations(self, best: Best | None = None) -> list[Violation]:
        """Rows of (6a) and signs that the variables' present values break; all rows are there."""
        found = []
        for row in self.model.component_data_objects(pyo.Constraint, active=True):
            if (over := -min(row.slack(), 0.0)) > FEASIBILITY_TOLERANCE:
                found.append(Violation("(6a)", row.name, over))
        for variable in self.model.component_data_objects(pyo.Var):
            if (over := -(variable.value or 0.0)) > FEASIBILITY_TOLERANCE:
                found.append(Violation("(6b)", variable.name, over))
        return found


def build_dual(
    instance: EdgecloudInstance, formulation: str | None = None, *, at_once: bool = True
) -> EdgecloudDual:
    """Build the dual (6) of LP (4), or (9) of LP (8) where storage is limited.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    formulation : str, optional
        Both have this dual.
    at_once : bool
        Keep the multiplier of (4e); without it the program is the paper's.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("edgecloud", jobs=2)).OBJECTIVE_UNIT
    'slots of job time'
    """
    jobs = range(len(instance.jobs))
    cells = flow_cells(instance, jobs, relaxation_last_slots(instance, jobs), "groups")
    D, r = instance.chunks.tolist(), instance.arrivals.tolist()
    edge, cloud = instance.edge_slots.tolist(), instance.cloud_slots.tolist()
    positive = pyo.NonNegativeReals
    m = pyo.ConcreteModel("edgecloud_dual_6")
    m.alpha = pyo.Var(jobs, domain=positive, doc="(6) dual of (4a): worth of a chunk")
    m.beta = pyo.Var(
        list(cells.by_group), domain=positive, doc="(6) dual of (4b): a worker's price"
    )
    m.beta_cloud = pyo.Var(list(cells.by_kind), domain=positive, doc="(6) the same in the cloud")
    m.pi = pyo.Var(
        list(cells.by_job) if at_once else [], domain=positive,
        doc="(ours) dual of (4e), which the paper drops",
    )  # fmt: skip
    m.eta = pyo.Var(list(cells.by_server), domain=positive, doc="(9) dual of (7b): storage's price")

    def flow(m: Model, j: int, t: int, p: int) -> Expr:
        """What a unit adds to the flow time, and the price of running at once."""
        return (t - r[j]) / (p * D[j]) + (m.pi[j, t] if at_once else 0.0)

    @m.Constraint(cells.edge, doc="(6a) a unit of work costs no less than it is worth")
    def eq_6a(m: Model, j: int, g: int, t: int) -> Expr:
        s = cells.groups[g][1][0]
        stored = (s, t) in m.eta and instance.chunk_gb[j] > 0
        eta = float(instance.chunk_gb[j]) * m.eta[s, t] if stored else 0.0
        return m.alpha[j] / edge[j] <= flow(m, j, t, edge[j]) + m.beta[g, t] + eta

    @m.Constraint(cells.cloud, doc="(6a) the same in the cloud")
    def eq_6a_cloud(m: Model, j: int, t: int) -> Expr:
        limited = (instance.jobs[j].worker_type, t) in m.beta_cloud
        beta = m.beta_cloud[instance.jobs[j].worker_type, t] if limited else 0.0
        return m.alpha[j] / cloud[j] <= flow(m, j, t, cloud[j]) + beta

    m.objective = pyo.Objective(
        expr=pyo.quicksum(D[j] * m.alpha[j] for j in jobs)
        - pyo.quicksum(len(cells.groups[g][2]) * b for (g, _), b in m.beta.items())
        - pyo.quicksum(instance.cloud_workers(k) * b for (k, _), b in m.beta_cloud.items())
        - pyo.quicksum(D[j] * p for (j, _), p in m.pi.items())
        - pyo.quicksum(float(instance.storage_gb[s]) * e for (s, _), e in m.eta.items()),
        sense=pyo.maximize,
        doc="(6) worth of all chunks less the worth of all capacity",
    )
    formulation = instance.check_formulation(formulation)
    return EdgecloudDual(instance=instance, formulation=formulation, model=m, cells=cells)
