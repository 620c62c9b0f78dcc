"""Problem (3) of astraea as the paper prints it, with the o_j of (4) where jobs are optional.

Section 6's types of workers and PSs are in it, and "if and only if" and products are linearised
exactly: a pace selects types, whether everything stands on one server, and the number of workers,
so that the work in (3k) becomes a duration. A job runs from its begin t- to its end t+. Repairs:
(3f) and (3h) hold for t up to t+ - 1 only (as printed no job ends), (3i) for servers with a PS (as
printed every server would need PSs).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.modes import durations, most_workers
from hindsched.models.algebra import Expr, Model, binary_domain, integer_domain, set_equations
from hindsched.models.declared import symbols
from hindsched.solutions.window_solution import WindowRow

NOTATION = {
    "u": ("tenant", "tenant, of [U]; [J^u] are its jobs"),
    "j": ("job", "job, of [J]"),
    "s": ("server", "server, of [S]"),
    "w": ("worker type", "type of workers, of [W]"),
    "p": ("PS type", "type of PSs, of [P]"),
    "t": ("slot", "slot, of [T]"),
    r"k = (w_k, p_k, \zeta_k, n_k) \in \mathcal{K}_j": (
        "pace",
        "pace of the job: types, whether on one server, number of workers",
    ),
    "y_{jsw}(t)": ("y", "workers of a type on a server (3o)"),
    "z_{jsp}(t)": ("z", "PSs of a type on a server (3o)"),
    r"\zeta_j": ("zeta", "1 if everything stands on one server (3o)"),
    "o_j": ("o", "1 if the job is scheduled (4a)"),
    r"\alpha_j(t)": ("begin", "1 if t is t-, the first slot of the job"),
    r"\omega_j(t)": ("end", "1 if t is t+, its last slot"),
    "x_j(t)": ("run", "1 if the job runs in slot t"),
    r"\theta_{jk}": ("pace", "1 if the job has this pace"),
    r"\sigma_{js}": ("on", "1 if the server holds anything of the job"),
    r"\eta_{js}": ("hosts", "1 if the server holds a PS of the job"),
    "f_j": ("revenue", "revenue of the job by its last slot"),
    "r_j": ("arrival", "arrival: slots r + 1 and later may be used"),
    "D_j": ("chunks", "chunks of data"),
    "N_j": ("most_workers", "most workers that the servers have room for"),
    r"\ell_{jk}": ("durations", "slots that the work takes at a pace, E D M / (n_k n) rounded up"),
    "q_w^u": ("worker_quota", "fair share of the tenant in workers"),
    "q_p^u": ("ps_quota", "fair share of the tenant in PSs"),
    "C_{sw}": ("worker_count", "workers of a server"),
    "C_{sp}": ("ps_count", "PSs of a server"),
    "Y_{jsw}": ("worker_room", "most workers of the job on a server, min(C_sw, D_j)"),
    "b_w": ("worker_bandwidth", "bandwidth of a worker"),
    "b_p": ("ps_bandwidth", "bandwidth of a PS"),
}
EACH_JOB, EACH_SLOT = (rf"\quad \forall j \in [J]{more}" for more in ("", r", t \in [T]"))
RUNS = r"\sum_{s \in [S]} y_{jsw}(t)"
STILL = r"(2 - x_j(t) - x_j(t + 1))"
OWN, OTHERS = (
    rf"\sum_{{j \in [J^{{{u}}}]}} \sum_{{s \in [S]}} %s_{{js%s}}(t)" for u in ("u", "u'")
)
WITHIN = (
    rf"{OWN} \le q_%s^u + \sum_{{u' \ne u}} \Bigl( q_%s^{{u'}} - {OTHERS} \Bigr),"
    r" \quad \forall u \in [U], t \in [T]"
)
EQUATIONS = {
    "eq_3": r"\max \sum_{j \in [J]} \sum_{t > r_j} f_j(t) \omega_j(t)",
    "eq_3a": WITHIN % ("y", "w", "w", "w", "y", "w") + r", w \in [W]",
    "eq_3b": WITHIN % ("z", "p", "p", "p", "z", "p") + r", p \in [P]",
    "eq_3c": r"\sum_{j \in [J]} y_{jsw}(t) \le C_{sw},"
    r" \quad \forall s \in [S], w \in [W], t \in [T]",
    "eq_3d": r"\sum_{j \in [J]} z_{jsp}(t) \le C_{sp},"
    r" \quad \forall s \in [S], p \in [P], t \in [T]",
    "eq_3e": rf"\sum_{{w \in [W]}} {RUNS} \le D_j, {EACH_SLOT}",
    "eq_3f": rf"\lvert y_{{jsw}}(t) - y_{{jsw}}(t + 1) \rvert \le Y_{{jsw}} {STILL},"
    rf" {EACH_SLOT}, s \in [S], w \in [W]",
    "eq_3g": rf"\sum_{{s \in [S]}} \sum_{{p \in [P]}} z_{{jsp}}(t) \ge x_j(t), {EACH_SLOT}",
    "eq_3h": rf"\lvert z_{{jsp}}(t) - z_{{jsp}}(t + 1) \rvert \le C_{{sp}} {STILL},"
    rf" {EACH_SLOT}, s \in [S], p \in [P]",
    "eq_3i": r"\sum_{s' \ne s} \sum_{w \in [W]} b_w y_{js'w}(t) \le \sum_{p \in [P]} b_p z_{jsp}(t)"
    rf" + N_j \max_w b_w (1 - \eta_{{js}}), {EACH_SLOT}, s \in [S]",
    "eq_3i_z": rf"z_{{jsp}}(t) \le C_{{sp}} \eta_{{js}}, {EACH_SLOT}, s \in [S], p \in [P]",
    "eq_3j": rf"\sum_{{s \in [S]}} \sigma_{{js}} \le 1 + (S - 1)(1 - \zeta_j), {EACH_JOB}",
    "eq_3j_several": rf"\sum_{{s \in [S]}} \sigma_{{js}} \ge 2 o_j - \zeta_j, {EACH_JOB}",
    "eq_3j_o": rf"\zeta_j \le o_j, {EACH_JOB}",
    "eq_3j_y": rf"y_{{jsw}}(t) \le Y_{{jsw}} \sigma_{{js}}, {EACH_SLOT}, s \in [S], w \in [W]",
    "eq_3j_z": rf"z_{{jsp}}(t) \le C_{{sp}} \sigma_{{js}}, {EACH_SLOT}, s \in [S], p \in [P]",
    "eq_3j_on": r"\sigma_{js} \le \sum_{t \in [T]} \Bigl( \sum_{w \in [W]} y_{jsw}(t)"
    rf" + \sum_{{p \in [P]}} z_{{jsp}}(t) \Bigr), {EACH_JOB}, s \in [S]",
    "eq_3k": r"\sum_{t \in [T]} x_j(t) \ge \sum_{k \in \mathcal{K}_j} \ell_{jk} \theta_{jk},"
    rf" {EACH_JOB}",
    "eq_3k_one": rf"\sum_{{k \in \mathcal{{K}}_j}} \theta_{{jk}} = o_j, {EACH_JOB}",
    "eq_3k_zeta": rf"\sum_{{k : \zeta_k = 1}} \theta_{{jk}} = \zeta_j, {EACH_JOB}",
    "eq_3k_y": rf"{RUNS} \le \sum_{{k : w_k = w}} n_k \theta_{{jk}}, {EACH_SLOT}, w \in [W]",
    "eq_3k_all": rf"{RUNS} \ge \sum_{{k : w_k = w}} n_k \theta_{{jk}} - N_j (1 - x_j(t)),"
    rf" {EACH_SLOT}, w \in [W]",
    "eq_3k_z": r"\sum_{s \in [S]} z_{jsp}(t)"
    rf" \le \sum_{{s \in [S]}} C_{{sp}} \sum_{{k : p_k = p}} \theta_{{jk}}, {EACH_SLOT}, p \in [P]",
    "eq_3l": rf"\alpha_j(t) = 0, {EACH_JOB}, t \le r_j",
    "eq_3l_y": rf"y_{{jsw}}(t) \le Y_{{jsw}} x_j(t), {EACH_SLOT}, s \in [S], w \in [W]",
    "eq_3l_z": rf"z_{{jsp}}(t) \le C_{{sp}} x_j(t), {EACH_SLOT}, s \in [S], p \in [P]",
    "eq_3m": rf"\sum_{{t \in [T]}} \omega_j(t) = o_j, {EACH_JOB}",
    "eq_3m_run": r"x_j(t) = \sum_{t' \le t} \alpha_j(t') - \sum_{t' < t} \omega_j(t'),"
    rf" {EACH_SLOT}",
    "eq_3n": rf"\sum_{{t \in [T]}} \alpha_j(t) = o_j, {EACH_JOB}",
    "eq_4a": rf"o_j = 1, {EACH_JOB}",
}
SYMBOLS = symbols(
    {
        ("job", "jobs"): "zeta o",
        ("job", ""): "eq_3j eq_3j_o eq_3j_several eq_3k eq_3k_one eq_3k_zeta eq_3m eq_3n",
        ("job", "revenue"): "eq_4a",
        ("job, slot", "jobs"): "begin end run",
        ("job, slot", "revenue a worker"): "eq_3e",
        ("job, slot", "revenue a PS"): "eq_3g",
        ("job, slot", ""): "eq_3m_run eq_3l",
        ("job, server", "servers"): "on hosts",
        ("job, server", ""): "eq_3j_on",
        ("job, server, slot", ""): "eq_3i",
        ("tenant, worker type, slot", "revenue a worker"): "eq_3a",
        ("tenant, PS type, slot", "revenue a PS"): "eq_3b",
        ("server, worker type, slot", "revenue a worker"): "eq_3c",
        ("server, PS type, slot", "revenue a PS"): "eq_3d",
        ("job, worker type, slot", ""): "eq_3k_y eq_3k_all",
        ("job, PS type, slot", ""): "eq_3k_z",
        ("job, server, worker type, slot", "workers"): "y",
        ("job, server, worker type, slot", ""): "eq_3j_y eq_3l_y",
        ("job, server, PS type, slot", "PSs"): "z",
        ("job, server, PS type, slot", ""): "eq_3i_z eq_3j_z eq_3l_z",
        ("job, server, worker type, slot, side", "revenue a worker"): "eq_3f",
        ("job, server, PS type, slot, side", "revenue a PS"): "eq_3h",
        ("job, worker type, PS type, one server, workers", "jobs"): "pace",
    }
)


def printed_program(
    instance: AstraeaInstance, J: list[int], relax: bool = False, *, must: bool = False,
    left: Callable[[int], Floats] | None = None,
) -> Model:  # fmt: skip
    """Problem (3) of the jobs J, which `must` all be scheduled or earn something.

    `left`, by slot, is what is left of the servers, (S, W + P); all of them by default.
    """
    m = pyo.ConcreteModel(name=instance.name)
    jobs = {j: instance.jobs[j] for j in J}
    binary, integer = binary_domain(relax), integer_domain(relax)
    # without jobs nothing has a row
    S, U = (range(len(each) if J else 0) for each in (instance.servers, instance.tenants))
    T = range(1, instance.horizon + 1)
    W, P = range(len(instance.worker_types)), range(len(instance.ps_types))
    owned = {u: [j for j in J if instance.tenant_index[jobs[j].tenant] == u] for u in U}
    q_w, q_p = instance.worker_quota.tolist(), instance.ps_quota.tolist()
    C = {t: (instance.server_capacity if left is None else left(t)) for t in T}
    taken = {t: (instance.server_capacity - C[t]).sum(axis=0).tolist() for t in T}
    C_sp = instance.ps_count.tolist()
    Y = {j: np.minimum(instance.worker_count, job.chunks).tolist() for j, job in jobs.items()}
    N = {j: most_workers(instance, job) for j, job in jobs.items()}
    b_w, b_p = instance.worker_bandwidth.tolist(), instance.ps_bandwidth.tolist()
    length = dict[tuple[int, int, int, int, int], int]()
    for j, job in jobs.items():
        table = durations(instance, job)
        for w, p, zeta, n in np.argwhere(table <= len(T)).tolist():
            length[j, w, p, zeta, n + 1] = int(table[w, p, zeta, n])
    paces = {j: [k for k in length if k[0] == j] for j in J}

    m.y = pyo.Var(
        J, S, W, T, domain=integer, bounds=lambda _, j, s, w, t: (0, Y[j][s][w]),
        doc="(3o) workers of a type on a server",
    )  # fmt: skip
    m.z = pyo.Var(
        J, S, P, T, domain=integer, bounds=lambda _, j, s, p, t: (0, C_sp[s][p]),
        doc="(3o) PSs of a type on a server",
    )  # fmt: skip
    m.zeta = pyo.Var(J, domain=binary, doc="(3o) all stands on one server")
    m.o = pyo.Var(J, domain=binary, doc="(4a) the job is scheduled")
    m.begin = pyo.Var(J, T, domain=binary, doc="(3n) the job begins in this slot")
    m.end = pyo.Var(J, T, domain=binary, doc="(3m) the job ends in this slot")
    m.run = pyo.Var(J, T, domain=binary, doc="(3m) the job runs in this slot")
    m.pace = pyo.Var(list(length), domain=binary, doc="(3k) types, number of workers, where")
    m.on = pyo.Var(J, S, domain=binary, doc="(3j) the server holds anything of the job")
    m.hosts = pyo.Var(J, S, domain=binary, doc="(3i) the server holds a PS of the job")

    def workers(m: Model, j: int, w: int, t: int) -> Expr:
        return total(m.y[j, s, w, t] for s in S)

    @m.Objective(sense=pyo.maximize, doc="(3) revenue of all tenants")
    def eq_3(m: Model) -> Expr:
        later = ((j, t) for j in J for t in T if t > jobs[j].arrival)
        return total(instance.revenue(jobs[j], t) * m.end[j, t] for j, t in later)

    def workers_of(m: Model, u: int, w: int, t: int) -> Expr:
        return total(m.y[j, s, w, t] for j in owned[u] for s in S)

    def ps_of(m: Model, u: int, p: int, t: int) -> Expr:
        return total(m.z[j, s, p, t] for j in owned[u] for s in S)

    @m.Constraint(U, W, T, doc="(3a) workers within the quota and what others do not use")
    def eq_3a(m: Model, u: int, w: int, t: int) -> Expr:
        others = total(q_w[v][w] - workers_of(m, v, w, t) for v in U if v != u)
        return workers_of(m, u, w, t) - others <= q_w[u][w] - taken[t][w]

    @m.Constraint(U, P, T, doc="(3b) PSs within the quota and what others do not use")
    def eq_3b(m: Model, u: int, p: int, t: int) -> Expr:
        others = total(q_p[v][p] - ps_of(m, v, p, t) for v in U if v != u)
        return ps_of(m, u, p, t) - others <= q_p[u][p] - taken[t][len(W) + p]

    @m.Constraint(S, W, T, doc="(3c) workers of a server")
    def eq_3c(m: Model, s: int, w: int, t: int) -> Expr:
        return total(m.y[j, s, w, t] for j in J) <= float(C[t][s, w])

    @m.Constraint(S, P, T, doc="(3d) PSs of a server")
    def eq_3d(m: Model, s: int, p: int, t: int) -> Expr:
        return total(m.z[j, s, p, t] for j in J) <= float(C[t][s, len(W) + p])

    @m.Constraint(J, T, doc="(3e) no more workers than chunks")
    def eq_3e(m: Model, j: int, t: int) -> Expr:
        return total(workers(m, j, w, t) for w in W) <= jobs[j].chunks

    def moving(m: Model, j: int, t: int) -> Expr:
        return 2 - m.run[j, t] - m.run[j, t + 1]

    @m.Constraint(J, S, W, T[:-1], (1, -1), doc="(3f) workers do not change on the way")
    def eq_3f(m: Model, j: int, s: int, w: int, t: int, side: int) -> Expr:
        return side * (m.y[j, s, w, t] - m.y[j, s, w, t + 1]) <= Y[j][s][w] * moving(m, j, t)

    @m.Constraint(J, T, doc="(3g) a running job has a PS")
    def eq_3g(m: Model, j: int, t: int) -> Expr:
        return total(m.z[j, s, p, t] for s in S for p in P) >= m.run[j, t]

    @m.Constraint(J, S, P, T[:-1], (1, -1), doc="(3h) PSs do not change on the way")
    def eq_3h(m: Model, j: int, s: int, p: int, t: int, side: int) -> Expr:
        return side * (m.z[j, s, p, t] - m.z[j, s, p, t + 1]) <= C_sp[s][p] * moving(m, j, t)

    @m.Constraint(J, S, T, doc="(3i) a host's PSs have bandwidth for the workers elsewhere")
    def eq_3i(m: Model, j: int, s: int, t: int) -> Expr:
        sent = total(b_w[w] * m.y[j, o, w, t] for o in S if o != s for w in W)
        received = total(b_p[p] * m.z[j, s, p, t] for p in P)
        return sent <= received + N[j] * max(b_w) * (1 - m.hosts[j, s])

    @m.Constraint(J, S, P, T, doc="(3i) which servers hold a PS")
    def eq_3i_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= C_sp[s][p] * m.hosts[j, s]

    @m.Constraint(J, doc="(3j) on one server: at most one is used")
    def eq_3j(m: Model, j: int) -> Expr:
        return total(m.on[j, s] for s in S) <= 1 + (len(S) - 1) * (1 - m.zeta[j])

    @m.Constraint(J, doc="(3j) otherwise several servers are used")
    def eq_3j_several(m: Model, j: int) -> Expr:
        return total(m.on[j, s] for s in S) >= 2 * m.o[j] - m.zeta[j]

    @m.Constraint(J, doc="(3j) only a scheduled job stands anywhere")
    def eq_3j_o(m: Model, j: int) -> Expr:
        return m.zeta[j] <= m.o[j]

    @m.Constraint(J, S, W, T, doc="(3j) a worker's server is used")
    def eq_3j_y(m: Model, j: int, s: int, w: int, t: int) -> Expr:
        return m.y[j, s, w, t] <= Y[j][s][w] * m.on[j, s]

    @m.Constraint(J, S, P, T, doc="(3j) a PS's server is used")
    def eq_3j_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= C_sp[s][p] * m.on[j, s]

    @m.Constraint(J, S, doc="(3j) a used server holds something")
    def eq_3j_on(m: Model, j: int, s: int) -> Expr:
        there = total(m.y[j, s, w, t] for w in W for t in T)
        return m.on[j, s] <= there + total(m.z[j, s, p, t] for p in P for t in T)

    @m.Constraint(J, doc="(3k) the job runs as long as its pace asks for")
    def eq_3k(m: Model, j: int) -> Expr:
        return total(m.run[j, t] for t in T) >= total(length[k] * m.pace[k] for k in paces[j])

    @m.Constraint(J, doc="(3k) a scheduled job has one pace")
    def eq_3k_one(m: Model, j: int) -> Expr:
        return total(m.pace[k] for k in paces[j]) == m.o[j]

    @m.Constraint(J, doc="(3k) the pace is that of one server, or of several")
    def eq_3k_zeta(m: Model, j: int) -> Expr:
        return total(m.pace[k] for k in paces[j] if k[3] == 1) == m.zeta[j]

    @m.Expression(J, W)
    def count(m: Model, j: int, w: int) -> Expr:
        return total(k[4] * m.pace[k] for k in paces[j] if k[1] == w)

    @m.Constraint(J, W, T, doc="(3k) no more workers than the pace has")
    def eq_3k_y(m: Model, j: int, w: int, t: int) -> Expr:
        return workers(m, j, w, t) <= m.count[j, w]

    @m.Constraint(J, W, T, doc="(3k) all workers of the pace while the job runs")
    def eq_3k_all(m: Model, j: int, w: int, t: int) -> Expr:
        return workers(m, j, w, t) >= m.count[j, w] - N[j] * (1 - m.run[j, t])

    @m.Constraint(J, P, T, doc="(3k) PSs of the pace's type only")
    def eq_3k_z(m: Model, j: int, p: int, t: int) -> Expr:
        most = sum(C_sp[s][p] for s in S) * total(m.pace[k] for k in paces[j] if k[2] == p)
        return total(m.z[j, s, p, t] for s in S) <= most

    early = [(j, t) for j, job in jobs.items() for t in T if t <= job.arrival]

    @m.Constraint(early, doc="(3l) no begin before the arrival")
    def eq_3l(m: Model, j: int, t: int) -> Expr:
        return m.begin[j, t] == 0

    @m.Constraint(J, S, W, T, doc="(3l) workers only while the job runs")
    def eq_3l_y(m: Model, j: int, s: int, w: int, t: int) -> Expr:
        return m.y[j, s, w, t] <= Y[j][s][w] * m.run[j, t]

    @m.Constraint(J, S, P, T, doc="(3l) PSs only while the job runs")
    def eq_3l_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= C_sp[s][p] * m.run[j, t]

    @m.Constraint(J, doc="(3m) a scheduled job ends once")
    def eq_3m(m: Model, j: int) -> Expr:
        return total(m.end[j, t] for t in T) == m.o[j]

    @m.Constraint(J, T, doc="(3m) it runs from its begin to its end")
    def eq_3m_run(m: Model, j: int, t: int) -> Expr:
        begun = total(m.begin[j, u] for u in T if u <= t)
        return m.run[j, t] == begun - total(m.end[j, u] for u in T if u < t)

    @m.Constraint(J, doc="(3n) a scheduled job begins once")
    def eq_3n(m: Model, j: int) -> Expr:
        return total(m.begin[j, t] for t in T) == m.o[j]

    @m.Constraint(J if must else [], doc="(4a) every job is scheduled")
    def eq_4a(m: Model, j: int) -> Expr:
        return m.o[j] == 1

    set_equations(m, EQUATIONS, NOTATION)
    return m


def read_job(m: Model, j: int) -> list[WindowRow]:
    """The row of a job at the variables' values; none if it is not scheduled."""
    slots = [t for (i, t), v in m.run.items() if i == j and (v.value or 0.0) > 0.5]
    if not slots:
        return []
    _, (_, w, p, _, _) = max((v.value or 0.0, k) for k, v in m.pace.items() if k[0] == j)
    servers = [s for i, s in m.on if i == j]
    workers, ps = (
        np.array([round(count[j, s, kind, slots[0]].value) for s in servers])
        for count, kind in ((m.y, w), (m.z, p))
    )
    return [WindowRow(slots[0], slots[-1], w, p, workers, ps)]


def write_job(m: Model, j: int, row: WindowRow) -> None:
    """Set what is not 0 of a job's variables to a row."""
    w, p, zeta = row.worker_type, row.ps_type, int(row.one_server)
    pace = (j, w, p, zeta, row.num_workers)
    times = range(row.first, row.last + 1)
    chosen = [m.o[j], m.begin[j, row.first], m.end[j, row.last], *(m.run[j, t] for t in times)]
    for variable in [*chosen, *([m.pace[pace]] if pace in m.pace else [])]:
        variable.set_value(1)
    m.zeta[j].set_value(zeta)
    for s, (count, ps) in enumerate(zip(row.workers.tolist(), row.ps.tolist(), strict=True)):
        m.on[j, s].set_value(int(count > 0 or ps > 0))
        m.hosts[j, s].set_value(int(ps > 0))
        for t in times:
            m.y[j, s, w, t].set_value(count)
            m.z[j, s, p, t].set_value(ps)
