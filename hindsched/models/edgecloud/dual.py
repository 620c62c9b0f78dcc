"""The dual programs (6) and (9), and the check of a dual point that an algorithm leaves behind.

==============  =================================================================================
``alpha[j]``    dual of (4a), the same for all D_j chunks of a job, because they are identical
``beta[g,t]``   dual of (4b), the same for all workers of a group
``pi[j,t]``     dual of (4e), which the paper drops: (4e) is not redundant
``eta[s,t]``    dual of (7b)
==============  =================================================================================

(6a) is asked from ``t >= r_j + Delta_js`` on, where y exists, not from r_j. For half-open
``[r_j, c_jd)`` the beta of a run is the weight of its unfinished chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats, Ints
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Best, DualProgram
from hindsched.models.edgecloud.relaxations import (
    Group,
    relaxation_groups,
    relaxation_last_slots,
)
from hindsched.models.edgecloud.symbols import JOB_SLOTS, SYMBOLS, EdgecloudNames
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Violation


@dataclass(kw_only=True, eq=False, repr=False)
class EdgecloudDual(EdgecloudNames, DualProgram):
    """The dual (6) of LP (4), or (9) of LP (8): it bounds the average fractional flow time.

    Parameters
    ----------
    groups : list of Group
        Workers that are counted together.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = JOB_SLOTS

    instance: EdgecloudInstance
    groups: list[Group]

    def prices(self) -> dict[str, Floats]:
        """``worker_capacity``: beta of each worker, shape (W, T)."""
        array = np.zeros((len(self.instance.worker_list), self.instance.horizon))
        for (g, t), beta in self.model.beta.items():
            if t <= self.instance.horizon:
                array[list(self.groups[g][2]), t - 1] = max(0.0, beta.value or 0.0)
        return {"worker_capacity": array}

    def payoffs(self) -> Floats:
        """Alpha of all chunks of each job."""
        alpha = [max(0.0, alpha.value or 0.0) for alpha in self.model.alpha.values()]
        return np.array(alpha, dtype=float) * self.instance.chunks

    def violations(self, best: Best | None = None) -> list[Violation]:
        """Rows of (6a) and signs that the variables' present values break; all rows are there."""
        found = []
        for row in self.model.component_data_objects(pyo.Constraint, active=True):
            over = -min(row.slack(), 0.0)
            if over > FEASIBILITY_TOLERANCE:
                found.append(Violation("(6a)", row.name, over))
        for variable in self.model.component_data_objects(pyo.Var):
            if (variable.value or 0.0) < -FEASIBILITY_TOLERANCE:
                found.append(Violation("(6b)", variable.name, -variable.value))
        return found


def build_dual(
    instance: EdgecloudInstance,
    formulation: str | None = None,
    *,
    at_once: bool = True,
    storage: bool = True,
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
    storage : bool
        Keep the multiplier of (7b).

    Examples
    --------
    >>> import hindsched as hs
    >>> build_dual(hs.generate("edgecloud", jobs=2)).OBJECTIVE_UNIT
    'slots of job time'
    """
    m = pyo.ConcreteModel("edgecloud_dual_6")
    jobs = range(len(instance.jobs))
    last = relaxation_last_slots(instance, jobs)
    groups = relaxation_groups(instance, "groups")
    edge, cloud = instance.edge_slots.tolist(), instance.cloud_slots.tolist()
    limited = np.isfinite(instance.storage_gb)
    cells: list[tuple[int, int, int]] = []
    at_cloud: list[tuple[int, int]] = []
    for j in jobs:
        job = instance.jobs[j]
        for g, (kind, servers, _) in enumerate(groups):
            if kind == job.worker_type:
                first = job.arrival + int(instance.upload[j, servers[0]])
                cells += [(j, g, t) for t in range(first, last[j] + 1)]
        if instance.has_cloud(job):
            first = job.arrival + int(instance.cloud_upload[j])
            at_cloud += [(j, t) for t in range(first, last[j] + 1)]
    finite = {
        (instance.jobs[j].worker_type, t)
        for j, t in at_cloud
        if instance.cloud_workers(instance.jobs[j].worker_type) is not None
    }
    stored = {
        (groups[g][1][0], t)
        for j, g, t in cells
        if storage and limited[groups[g][1][0]] and instance.chunk_gb[j] > 0
    }
    both = sorted({(j, t) for j, _, t in cells} | set(at_cloud))
    m.alpha = pyo.Var(
        list(jobs), domain=pyo.NonNegativeReals, doc="(6) dual of (4a): worth of a chunk"
    )
    m.beta = pyo.Var(
        sorted({(g, t) for _, g, t in cells}),
        domain=pyo.NonNegativeReals,
        doc="(6) dual of (4b): price of a worker",
    )
    m.beta_cloud = pyo.Var(
        sorted(finite), domain=pyo.NonNegativeReals, doc="(6) dual of (4b) in the cloud"
    )
    m.pi = pyo.Var(
        both if at_once else [],
        domain=pyo.NonNegativeReals,
        doc="(ours) dual of (4e), which the paper drops",
    )
    m.eta = pyo.Var(
        sorted(stored), domain=pyo.NonNegativeReals, doc="(9) dual of (7b): price of storage"
    )

    def charge(m: Model, j: int, t: int, p: int) -> Expr:
        job = instance.jobs[j]
        price = (t - job.arrival) / (p * job.chunks)
        return price + (m.pi[j, t] if at_once else 0.0)

    def edge_row(m: Model, j: int, g: int, t: int) -> Expr:
        s = groups[g][1][0]
        eta = float(instance.chunk_gb[j]) * m.eta[s, t] if (s, t) in stored else 0.0
        return m.alpha[j] / edge[j] <= charge(m, j, t, edge[j]) + m.beta[g, t] + eta

    m.eq_6a = pyo.Constraint(
        cells, rule=edge_row, doc="(6a) a unit of work costs no less than it is worth"
    )

    def cloud_row(m: Model, j: int, t: int) -> Expr:
        key = (instance.jobs[j].worker_type, t)
        beta = m.beta_cloud[key] if key in finite else 0.0
        return m.alpha[j] / cloud[j] <= charge(m, j, t, cloud[j]) + beta

    m.eq_6a_cloud = pyo.Constraint(at_cloud, rule=cloud_row, doc="(6a) the same in the cloud")
    m.objective = pyo.Objective(
        expr=pyo.quicksum(float(instance.chunks[j]) * m.alpha[j] for j in jobs)
        - pyo.quicksum(float(len(groups[g][2])) * b for (g, _), b in m.beta.items())
        - pyo.quicksum(
            float(instance.cloud_workers(kind) or 0) * b for (kind, _), b in m.beta_cloud.items()
        )
        - pyo.quicksum(float(instance.chunks[j]) * p for (j, _), p in m.pi.items())
        - pyo.quicksum(float(instance.storage_gb[s]) * e for (s, _), e in m.eta.items()),
        sense=pyo.maximize,
        doc="(6) worth of all chunks less the worth of all capacity",
    )
    formulation = instance.check_formulation(formulation)
    return EdgecloudDual(instance=instance, formulation=formulation, model=m, groups=groups)


@dataclass(frozen=True)
class RunDual:
    """A dual point built from a run: alpha a job, and beta from its unfinished chunks.

    Parameters
    ----------
    alpha : ndarray, shape (J,)
        Alpha of each chunk of a job.
    work : ndarray, shape (J,)
        Processing time of a chunk at the edge, in the run.
    worker, job : ndarray of int, shape (n,)
        Where the edge chunks ran and whose they are.
    end : ndarray, shape (n,)
        When they ended, in slots since the beginning of slot 0.
    in_cloud : ndarray of int, shape (m,)
        Jobs of the chunks in the cloud, and their ends.
    cloud_end : ndarray, shape (m,)
        When those ended.
    """

    alpha: Floats
    work: Floats
    worker: Ints
    job: Ints
    end: Floats
    in_cloud: Ints
    cloud_end: Floats

    def sum_beta(self, instance: EdgecloudInstance) -> float:
        """Sum of beta over workers, the cloud and time: the average flow time of the run."""
        arrival, chunks = instance.arrivals, instance.chunks
        at_edge = (self.end - arrival[self.job]) / chunks[self.job]
        at_cloud = (self.cloud_end - arrival[self.in_cloud]) / chunks[self.in_cloud]
        return float(at_edge.sum() + at_cloud.sum())


def worst_slack(instance: EdgecloudInstance, point: RunDual) -> float:
    """Smallest ``(t - r) / D + p beta_w(t) - alpha`` over (6a): below 0 the point is infeasible.

    Between the ends of chunks and the arrivals of jobs beta is constant and the right side rises,
    so that only the beginnings of those intervals and the first slots matter.
    """
    worst = np.inf
    arrival = instance.arrivals.astype(float)
    weight = 1.0 / instance.chunks
    for w, (s, _, kind) in enumerate(instance.worker_list):
        mine = point.worker == w
        jobs = point.job[mine]
        begin, end = arrival[jobs], point.end[mine]
        for j, job in enumerate(instance.jobs):
            if job.worker_type != kind:
                continue
            ready = arrival[j] + float(instance.upload[j, s])
            times = np.concatenate(([ready], end[end > ready]))
            open_ = (begin[None, :] <= times[:, None]) & (times[:, None] < end[None, :])
            beta = open_ @ weight[jobs]
            slack = (times - arrival[j]) * weight[j] + point.work[j] * beta - point.alpha[j]
            worst = min(worst, float(slack.min()))
    for j, job in enumerate(instance.jobs):
        if instance.cloud_workers(job.worker_type) is None:
            worst = min(worst, float(instance.cloud_upload[j]) * weight[j] - point.alpha[j])
    return worst


def dual_bound(instance: EdgecloudInstance, point: RunDual, epsilon: float) -> float:
    """``sum alpha - sum beta / (1 + epsilon)``: Theorem 3's dual objective (11).

    A lower bound on (2) if the point came from a run with (1 + epsilon) speed and `worst_slack` is
    not negative.
    """
    total = float((point.alpha * instance.chunks).sum())
    return total - point.sum_beta(instance) / (1.0 + epsilon)
