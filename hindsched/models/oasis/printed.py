"""Problem (1)-(13) of oasis as the paper prints it, over the jobs that are still open.

Only (8), the largest t with a worker, is no linear rule. With a binary u_i(t) for each slot it
reads: one completion slot if the job is admitted, no worker after it, a worker in it. The work W_i
and the capacities c are what is left of them.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model, binary_domain, integer_domain, set_equations
from hindsched.models.declared import symbols
from hindsched.models.oasis.sets import OasisSets

NOTATION = {
    "i": ("job", "job, of [I]"),
    "t": ("slot", "slot, of [T]"),
    "h": ("worker server", "server of workers, of [H]"),
    "k": ("PS server", "server of PSs, of [K]"),
    "r": ("resource", "resource, of [R]"),
    "x_i": ("x", "1 if the job is admitted (11)"),
    "y_{ih}(t)": ("y", "workers of the job on a server (12)"),
    "z_{ik}(t)": ("z", "parameter servers of the job on a server (13)"),
    "u_i(t)": ("u", "1 if the job completes in slot t"),
    "f_i": ("utility", "utility of the slots from arrival to completion"),
    "a_i": ("arrival", "arrival slot"),
    "W_i": ("work_of", "worker-slots of the job, E N M (tau + 2 e / b)"),
    "N_i": ("chunks", "chunks of data"),
    "w_i^r": ("worker", "what a worker of the job takes"),
    "s_i^r": ("ps", "what a PS of the job takes"),
    "b_i": ("worker", "bandwidth of a worker"),
    "B_i": ("ps", "bandwidth of a PS"),
    "c_h^r": ("capacity", "what a server has of a resource"),
}
RUNNING, SERVING = r"\sum_{h \in [H]} y_{ih}(t)", r"\sum_{k \in [K]} z_{ik}(t)"
FROM_ARRIVAL, EACH_SLOT = (
    rf"\quad \forall i \in [I], t {which}" for which in (r"\ge a_i", r"\in [T]")
)
EQUATIONS = {
    "eq_1": r"\max \sum_{i \in [I]} \sum_{t \ge a_i} f_i(t - a_i) u_i(t)",
    "eq_2": rf"\sum_{{t \in [T]}} {RUNNING} \ge W_i x_i, \quad \forall i \in [I]",
    "eq_3": rf"{RUNNING} \le N_i x_i, {FROM_ARRIVAL}",
    "eq_4": r"\sum_{i \in [I]} w_i^r y_{ih}(t) \le c_h^r,"
    r" \quad \forall t \in [T], r \in [R], h \in [H]",
    "eq_5": r"\sum_{i \in [I]} s_i^r z_{ik}(t) \le c_k^r,"
    r" \quad \forall t \in [T], r \in [R], k \in [K]",
    "eq_6": rf"\frac{{b_i}}{{B_i}} {RUNNING} \le {SERVING}, {EACH_SLOT}",
    "eq_7": rf"{SERVING} \le {RUNNING}, {EACH_SLOT}",
    "eq_8": r"\sum_{t \ge a_i} u_i(t) = x_i, \quad \forall i \in [I]",
    "eq_8_after": rf"{RUNNING} \le N_i \sum_{{t' \ge t}} u_i(t'), {FROM_ARRIVAL}",
    "eq_8_busy": rf"u_i(t) \le {RUNNING}, {FROM_ARRIVAL}",
    "eq_9": r"y_{ih}(t) = 0, \quad \forall i \in [I], h \in [H], t < a_i",
    "eq_10": r"z_{ik}(t) = 0, \quad \forall i \in [I], k \in [K], t < a_i",
}
SYMBOLS = symbols(
    {
        ("job", "jobs"): "x",
        ("job, slot", "jobs"): "u",
        ("job, worker server, slot", "workers"): "y",
        ("job, PS server, slot", "PSs"): "z",
        ("job", "utility a worker-slot"): "eq_2",
        ("job", "utility a job"): "eq_8",
        ("job, slot", "utility a worker"): "eq_3 eq_6 eq_7 eq_8_after eq_8_busy",
        ("worker server, resource, slot", "utility a unit"): "eq_4",
        ("PS server, resource, slot", "utility a unit"): "eq_5",
        ("job, worker server, slot", "utility a worker"): "eq_9",
        ("job, PS server, slot", "utility a PS"): "eq_10",
    }
)


def printed_program(instance: OasisInstance, plan: OasisSets, relax: bool = False) -> Model:
    """Problem (1)-(13) of the open jobs."""
    m = pyo.ConcreteModel(name=instance.name)
    jobs, T = list(plan.jobs), range(1, instance.horizon + 1)
    H, K = range(len(plan.workers.members)), range(len(plan.ps.members))
    R = range(len(instance.resources))
    a, N = ({i: getattr(instance.jobs[i], name) for i in jobs} for name in ("arrival", "chunks"))
    f = {i: instance.utilities(instance.jobs[i]).tolist() for i in jobs}  # by completion slot
    w, s = plan.workers.demand.tolist(), plan.ps.demand.tolist()
    c_h, c_k = plan.workers.free.tolist(), plan.ps.free.tolist()
    arrived = [(i, t) for i in jobs for t in T if t >= a[i]]
    before = [(i, t) for i in jobs for t in T if t < a[i]]

    m.x = pyo.Var(jobs, domain=binary_domain(relax), doc="(11) the job is admitted")
    m.y = pyo.Var(jobs, H, T, domain=integer_domain(relax), doc="(12) workers of the job")
    m.z = pyo.Var(jobs, K, T, domain=integer_domain(relax), doc="(13) parameter servers of the job")
    m.u = pyo.Var(arrived, domain=binary_domain(relax), doc="(8) the job completes in this slot")

    def running(m: Model, i: int, t: int) -> Expr:
        return total(m.y[i, h, t] for h in H)

    def serving(m: Model, i: int, t: int) -> Expr:
        return total(m.z[i, k, t] for k in K)

    @m.Objective(sense=pyo.maximize, doc="(1) utility of the admitted jobs")
    def eq_1(m: Model) -> Expr:
        return total(f[i][t] * m.u[i, t] for i, t in arrived)

    @m.Constraint(jobs, doc="(2) an admitted job does its work")
    def eq_2(m: Model, i: int) -> Expr:
        return total(running(m, i, t) for t in T) >= plan.jobs[i].work * m.x[i]

    @m.Constraint(arrived, doc="(3) no more workers at once than chunks")
    def eq_3(m: Model, i: int, t: int) -> Expr:
        return running(m, i, t) <= N[i] * m.x[i]

    @m.Constraint(H, R, T, doc="(4) workers within what their servers have")
    def eq_4(m: Model, h: int, r: int, t: int) -> Expr:
        used = [w[i][r] * m.y[i, h, t] for i in jobs if w[i][r] > 0]
        return total(used) <= max(0.0, c_h[h][t][r]) if used else pyo.Constraint.Skip

    @m.Constraint(K, R, T, doc="(5) PSs within what their servers have")
    def eq_5(m: Model, k: int, r: int, t: int) -> Expr:
        used = [s[i][r] * m.z[i, k, t] for i in jobs if s[i][r] > 0]
        return total(used) <= max(0.0, c_k[k][t][r]) if used else pyo.Constraint.Skip

    @m.Constraint(jobs, T, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(m: Model, i: int, t: int) -> Expr:
        return plan.jobs[i].ps_per_worker * running(m, i, t) <= serving(m, i, t)

    @m.Constraint(jobs, T, doc="(7) no more PSs than workers")
    def eq_7(m: Model, i: int, t: int) -> Expr:
        return serving(m, i, t) <= running(m, i, t)

    @m.Constraint(jobs, doc="(8) an admitted job has one completion slot")
    def eq_8(m: Model, i: int) -> Expr:
        return total(m.u[i, t] for t in T if t >= a[i]) == m.x[i]

    @m.Constraint(arrived, doc="(8) no worker after the completion slot")
    def eq_8_after(m: Model, i: int, t: int) -> Expr:
        return running(m, i, t) <= N[i] * total(m.u[i, later] for later in T if later >= t)

    @m.Constraint(arrived, doc="(8) a worker in the completion slot")
    def eq_8_busy(m: Model, i: int, t: int) -> Expr:
        return m.u[i, t] <= running(m, i, t)

    @m.Constraint([(i, h, t) for i, t in before for h in H], doc="(9) no worker before the arrival")
    def eq_9(m: Model, i: int, h: int, t: int) -> Expr:
        return m.y[i, h, t] == 0

    @m.Constraint([(i, k, t) for i, t in before for k in K], doc="(10) no PS before the arrival")
    def eq_10(m: Model, i: int, k: int, t: int) -> Expr:
        return m.z[i, k, t] == 0

    set_equations(m, EQUATIONS, NOTATION)
    return m
