"""Problem (2) of edgecloud as the paper prints it, with (7) where storage is limited.

A job has D chunks; w counts the edge workers of all servers, p their PSs; s_c is the cloud, whose
workers of a type are alike, as are its PSs: one number a job and slot stands for them.

Nothing in (2) names a chunk, so that work may move and split from slot to slot. (2b) counts slots
of work: E B / n_j rounded up, fewer if zeta = 1. Repairs: (2i) is about workers, as a PS needs no
data; a job's time is c_j - r_j + 1.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import (
    Expr,
    Model,
    binary_domain,
    grouped,
    integer_domain,
    set_equations,
)
from hindsched.models.edgecloud.sets import in_steps

NOTATION = {
    "j": ("job", "job, of [J]"),
    "t": ("slot", "slot, of [T]"),
    "s": ("server", "edge server, of [S]"),
    r"w \in \mathcal{W}_j": (
        "worker",
        "edge worker of the job's type (2a); of server s",
    ),
    r"p \in \mathcal{P}_j": ("PS", "edge PS of the job's type, o_jsp = 1"),
    r"\kappa": ("type", "type of workers or PSs in the cloud; [J] of that type"),
    "y_{jw}(t)": ("y", "1 if edge worker w trains the job in slot t"),
    r"\bar y_j(t)": ("y_cloud", "y_jsw(t) of the cloud s_c: workers there that train the job"),
    "z_{jp}(t)": ("z", "1 if the job's PS is p in slot t"),
    r"\bar z_j(t)": ("z_cloud", "z_jsp(t) of the cloud: 1 if its PS is there"),
    r"\zeta_j": ("zeta", "1 if the whole job, with its PS, is in the cloud"),
    "c_j(t)": ("C", "1 while the job is unfinished: their sum is c_j - r_j + 1"),
    "x_{js}(t)": ("x", "sum of x_jds(t): chunks of the job that server s stores, where limited"),
    "r_j": ("arrival", "arrival slot"),
    r"\Delta_{js}": ("upload_slots", "slots until the data is on a server, or in the cloud"),
    "D_j": ("chunks", "chunks of data"),
    r"\ell_j": ("edge_slots", "slots that a chunk takes, E_j B_j / n_j rounded up"),
    r"\bar\ell_j": ("cloud_slots", "the same where the whole job is in the cloud"),
    "u_j": ("chunk_gb", "GB of a chunk"),
    "U_s": ("storage_gb", "GB that a server stores"),
    r"\bar W_\kappa": ("cloud", "workers of a type in the cloud, where limited"),
    r"\bar P_\kappa": ("cloud", "PSs of a type in the cloud, where limited"),
}
RUNNING = r"\sum_{w \in \mathcal{W}_j} y_{jw}(t) + \bar y_j(t)"
EACH_TYPE = r"\quad \forall \kappa, t \in [T]"
HOLDING = r"\sum_{p \in \mathcal{P}_j} z_{jp}(t) + \bar z_j(t)"
EACH_SLOT = r"\quad \forall j \in [J], t \in [T]"
EQUATIONS = {
    "objective": r"\min \sum_{j \in [J]} \sum_{t \ge r_j} c_j(t)",
    "eq_2b": rf"\sum_{{t \in [T]}} \Bigl( {RUNNING} \Bigr) \ge D_j \bigl( \ell_j (1 - \zeta_j)"
    r" + \bar\ell_j \zeta_j \bigr), \quad \forall j \in [J]",
    "eq_2c": rf"{RUNNING} \le D_j, {EACH_SLOT}",
    "eq_2d": r"\sum_{j \in [J] : w \in \mathcal{W}_j} y_{jw}(t) \le 1, \quad \forall w, t \in [T]",
    "eq_2d_cloud": rf"\sum_{{j \in \kappa}} \bar y_j(t) \le \bar W_\kappa, {EACH_TYPE}",
    "eq_2e": rf"{RUNNING} \le D_j \Bigl( {HOLDING} \Bigr), {EACH_SLOT}",
    "eq_2e_one": rf"{HOLDING} \le 1, {EACH_SLOT}",
    "eq_2f": r"\sum_{j \in [J] : p \in \mathcal{P}_j} z_{jp}(t) \le 1, \quad \forall p, t \in [T]",
    "eq_2f_cloud": rf"\sum_{{j \in \kappa}} \bar z_j(t) \le \bar P_\kappa, {EACH_TYPE}",
    "eq_2g": r"\zeta_j \ge 1 - \sum_{t \in [T]} \Bigl( \sum_{w \in \mathcal{W}_j} y_{jw}(t)"
    r" + \sum_{p \in \mathcal{P}_j} z_{jp}(t) \Bigr), \quad \forall j \in [J]",
    "eq_2h": r"y_{jw}(t) \le 1 - \zeta_j, \quad \forall j \in [J], w \in \mathcal{W}_j, t \in [T]",
    "eq_2h_ps": r"z_{jp}(t) \le 1 - \zeta_j,"
    r" \quad \forall j \in [J], p \in \mathcal{P}_j, t \in [T]",
    "eq_2i": r"y_{jw}(t) = 0, \quad \forall j \in [J], w \in \mathcal{W}_j, t < r_j + \Delta_{js}",
    "eq_2i_cloud": r"\bar y_j(t) = 0, \quad \forall j \in [J], t < r_j + \Delta_{js}",
    "eq_2j": rf"{RUNNING} \le D_j c_j(t), \quad \forall j \in [J], t \ge r_j",
    "eq_2j_order": r"c_j(t) \le c_j(t - 1), \quad \forall j \in [J], t > r_j",
    "eq_7a": r"\sum_{w \in \mathcal{W}_j \cap s} y_{jw}(t) \le x_{js}(t),"
    r" \quad \forall j \in [J], s \in [S], t \ge r_j",
    "eq_7b": r"\sum_{j \in [J]} u_j x_{js}(t) \le U_s, \quad \forall s \in [S], t \in [T]",
    "eq_7c": r"\lvert x_{js}(t) - x_{js}(t - 1) \rvert \le D_j (1 - c_j(t)),"
    r" \quad \forall j \in [J], s \in [S], t > r_j",
}


def printed_program(
    instance: EdgecloudInstance, J: list[int], slots: int, relax: bool = False
) -> Model:
    """Problem (2), (7) of the jobs J in the slots 1 to `slots`."""
    m = pyo.ConcreteModel("edgecloud_2")
    T = range(1, slots + 1)
    r, D = instance.arrivals.tolist(), instance.chunks.tolist()
    mixed, alone = instance.edge_slots.tolist(), instance.cloud_slots.tolist()
    types = {j: (instance.jobs[j].worker_type, instance.jobs[j].ps_type) for j in J}
    W = {j: [w for w, (_, _, kind) in enumerate(instance.worker_list) if kind == types[j][0]]
         for j in J}  # fmt: skip
    P = {j: [p for p, (_, kind) in enumerate(instance.ps_list) if kind == types[j][1]] for j in J}
    jobs_of_worker = grouped((w, j) for j in J for w in W[j])
    jobs_of_ps = grouped((p, j) for j in J for p in P[j])
    jobs_of_type = [grouped((types[j][side], j) for j in J) for side in (0, 1)]
    most_workers = {kind: instance.cloud_workers(kind) for kind in jobs_of_type[0]}
    most_ps = {kind: instance.cloud_ps(kind) for kind in jobs_of_type[1]}
    workers = [(j, w, t) for j in J for w in W[j] for t in T]
    servers = [(j, p, t) for j in J for p in P[j] for t in T]

    m.y = pyo.Var(workers, domain=binary_domain(relax), doc="(2) a worker trains the job")
    m.y_cloud = pyo.Var(
        J, T, domain=integer_domain(relax), doc="(2) cloud workers that train the job",
        bounds=lambda _, j, t: (0, D[j]),
    )  # fmt: skip
    m.z = pyo.Var(servers, domain=binary_domain(relax), doc="(2e) the PS of the job")
    m.z_cloud = pyo.Var(
        J, T, domain=binary_domain(relax), doc="(2e) the PS of the job is in the cloud"
    )
    m.zeta = pyo.Var(J, domain=binary_domain(relax), doc="(2g) the whole job is in the cloud")
    unfinished = [(j, t) for j in J for t in T if t >= r[j]]
    m.C = pyo.Var(
        unfinished, domain=binary_domain(relax), doc="(2j) the job is unfinished in this slot"
    )

    def running(m: Model, j: int, t: int) -> Expr:
        return total(m.y[j, w, t] for w in W[j]) + m.y_cloud[j, t]

    @m.Constraint(J, doc="(2b) all epochs over all chunks are trained")
    def eq_2b(m: Model, j: int) -> Expr:
        need = D[j] * (mixed[j] * (1 - m.zeta[j]) + alone[j] * m.zeta[j])
        return total(running(m, j, t) for t in T) >= need

    @m.Constraint(J, T, doc="(2c) one worker a chunk at most")
    def eq_2c(m: Model, j: int, t: int) -> Expr:
        return running(m, j, t) <= D[j]

    @m.Constraint(list(jobs_of_worker), T, doc="(2d) a worker trains one job at a time")
    def eq_2d(m: Model, w: int, t: int) -> Expr:
        return total(m.y[j, w, t] for j in jobs_of_worker[w]) <= 1

    limited = [kind for kind, most in most_workers.items() if most is not None]

    @m.Constraint(limited, T, doc="(2d) the cloud's workers of a type")
    def eq_2d_cloud(m: Model, kind: str, t: int) -> Expr:
        return total(m.y_cloud[j, t] for j in jobs_of_type[0][kind]) <= most_workers[kind]

    @m.Constraint(J, T, doc="(2e) a running job has a PS")
    def eq_2e(m: Model, j: int, t: int) -> Expr:
        return running(m, j, t) <= D[j] * (total(m.z[j, p, t] for p in P[j]) + m.z_cloud[j, t])

    @m.Constraint(J, T, doc="(2e) and no second one")
    def eq_2e_one(m: Model, j: int, t: int) -> Expr:
        return total(m.z[j, p, t] for p in P[j]) + m.z_cloud[j, t] <= 1

    @m.Constraint(list(jobs_of_ps), T, doc="(2f) a PS serves one job at a time")
    def eq_2f(m: Model, p: int, t: int) -> Expr:
        return total(m.z[j, p, t] for j in jobs_of_ps[p]) <= 1

    limited_ps = [kind for kind, most in most_ps.items() if most is not None]

    @m.Constraint(limited_ps, T, doc="(2f) the cloud's PSs of a type")
    def eq_2f_cloud(m: Model, kind: str, t: int) -> Expr:
        return total(m.z_cloud[j, t] for j in jobs_of_type[1][kind]) <= most_ps[kind]

    @m.Constraint(J, doc="(2g) a job of which nothing is at the edge is wholly in the cloud")
    def eq_2g(m: Model, j: int) -> Expr:
        at_edge = total(m.y[j, w, t] for w in W[j] for t in T)
        return m.zeta[j] >= 1 - at_edge - total(m.z[j, p, t] for p in P[j] for t in T)

    @m.Constraint(workers, doc="(2h) of a job wholly in the cloud no worker is at the edge")
    def eq_2h(m: Model, j: int, w: int, t: int) -> Expr:
        return m.y[j, w, t] <= 1 - m.zeta[j]

    @m.Constraint(servers, doc="(2h) nor its PS")
    def eq_2h_ps(m: Model, j: int, p: int, t: int) -> Expr:
        return m.z[j, p, t] <= 1 - m.zeta[j]

    ready = {(j, w): r[j] + int(instance.upload[j, instance.worker_list[w][0]])
             for j in J for w in W[j]}  # fmt: skip

    @m.Constraint(
        [(j, w, t) for j, w, t in workers if t < ready[j, w]],
        doc="(2i) no worker before the data is there",
    )
    def eq_2i(m: Model, j: int, w: int, t: int) -> Expr:
        return m.y[j, w, t] == 0

    @m.Constraint(
        [(j, t) for j in J for t in T if t < r[j] + int(instance.cloud_upload[j])],
        doc="(2i) the same in the cloud",
    )
    def eq_2i_cloud(m: Model, j: int, t: int) -> Expr:
        return m.y_cloud[j, t] == 0

    @m.Constraint(unfinished, doc="(2j) a job that runs is unfinished")
    def eq_2j(m: Model, j: int, t: int) -> Expr:
        return running(m, j, t) <= D[j] * m.C[j, t]

    @m.Constraint([(j, t) for j, t in unfinished if t > r[j]], doc="(2j) and was so before")
    def eq_2j_order(m: Model, j: int, t: int) -> Expr:
        return m.C[j, t] <= m.C[j, t - 1]

    m.objective = pyo.Objective(
        expr=total(m.C.values()), doc="(2) total completion time of the jobs"
    )
    declare_storage(m, instance, J, slots, relax)
    set_equations(m, EQUATIONS, NOTATION)
    return m


def declare_storage(
    m: Model, instance: EdgecloudInstance, J: list[int], slots: int, relax: bool
) -> None:
    """(7), for the servers whose storage is limited."""
    D, gb = instance.chunks.tolist(), instance.chunk_gb.tolist()
    S = [s for s, most in enumerate(instance.storage_gb.tolist()) if most < float("inf")]
    there = {(j, s): dict(instance.places(instance.jobs[j])).get(s, ()) for j in J for s in S}
    stored = [key for key, workers in there.items() if workers and gb[key[0]] > 0]
    if not stored:
        return
    T = [(j, s, t) for j, s in stored
         for t in range(int(instance.arrivals[j]), slots + 1)]  # fmt: skip
    m.x = pyo.Var(
        T, domain=integer_domain(relax), bounds=lambda _, j, s, t: (0, D[j]),
        doc="(7) chunks of the job that the server stores",
    )  # fmt: skip

    @m.Constraint(T, doc="(7a) a server stores what it trains")
    def eq_7a(m: Model, j: int, s: int, t: int) -> Expr:
        return total(m.y[j, w, t] for w in there[j, s]) <= m.x[j, s, t]

    by_server = grouped(((s, t), j) for j, s, t in T)
    rows = {s: in_steps({j: gb[j] for j, k in stored if k == s}, float(instance.storage_gb[s]))
            for _, s in stored}  # fmt: skip

    @m.Constraint(list(by_server), doc="(7b) what a server stores fits")
    def eq_7b(m: Model, s: int, t: int) -> Expr:
        sizes, room = rows[s]
        return total(sizes[j] * m.x[j, s, t] for j in by_server[s, t]) <= room

    later = [(j, s, t) for j, s, t in T if t > int(instance.arrivals[j])]

    @m.Constraint(later, (1, -1), doc="(7c) the same from arrival to completion")
    def eq_7c(m: Model, j: int, s: int, t: int, side: int) -> Expr:
        return side * (m.x[j, s, t] - m.x[j, s, t - 1]) <= D[j] * (1 - m.C[j, t])
