"""Problem (2) of batchsched and its Ring-AllReduce form (15) as the paper prints them.

What is written with "|{...}|", "if and only if" and products is linearised exactly. A pace selects
types, whether everything stands on one server, and the number of workers, so that the work in (2f)
becomes a duration: d N rho >= E D K for integers is d >= its ceiling. A job runs in slot t iff its
starts less its ends up to t are 1, which is the sum over (t - d, t] in (2h) and (15b).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.modes import durations, most_workers, units
from hindsched.models.algebra import Expr, Model, binary_domain, integer_domain, set_equations
from hindsched.models.declared import symbols
from hindsched.solutions.window_solution import WindowRow

NOTATION = {
    "j": ("job", "job, of [J]"),
    "t": ("slot", "slot, of [T]"),
    "h": ("server", "server, of [H]"),
    "m": ("worker type", "type of workers, of [M]"),
    "p": ("PS type", "type of PSs, of [P]"),
    "r": ("resource", "resource, of [R]"),
    r"k = (m_k, p_k, q_k, n_k) \in \mathcal{K}_j": (
        "pace",
        "pace of the job: types, whether on one server, number of workers",
    ),
    "x_{jt}": ("x", "1 if the job starts in slot t (2n)"),
    "y_{jhm}": ("y", "workers of a type on a server (2k)"),
    "s_{jhp}": ("s", "PSs of a type on a server (2l)"),
    "d_j": ("d", "duration in slots (2m)"),
    "q_j": ("q", "1 if everything stands on one server (2o)"),
    r"\mu_{jm}": ("is_m", "1 if the job's workers are of type m: the set in (2b)"),
    r"\phi_{jp}": ("is_p", "1 if the job's PSs are of type p: the set in (2c)"),
    r"\theta_{jk}": ("pace", "1 if the job has this pace"),
    r"\sigma_{jh}": ("on", "1 if the server holds anything of the job"),
    r"\eta_{jh}": ("hosts", "1 if the server holds a PS of the job"),
    r"\bar x_{jt}": ("end", "1 if t is the job's start plus its duration"),
    r"\bar y_{jhm}(t)": ("run_y", "workers that run in slot t"),
    r"\bar s_{jhp}(t)": ("run_s", "PSs that run in slot t"),
    "w_j": ("weight", "weight"),
    "a_j": ("arrival", "arrival slot"),
    "D_j": ("chunks", "chunks of data"),
    "N_j": ("most_workers", "most workers that the servers have room for"),
    r"\ell_{jk}": ("durations", "slots that the work takes at a pace, E D K / (n rho) rounded up"),
    "Y_{jhm}": ("worker_room", "most workers of the job on a server"),
    "S_{hp}": ("units", "most PSs on a server"),
    "b_m": ("worker_bandwidth", "bandwidth of a worker"),
    "B_p": ("ps_bandwidth", "bandwidth of a PS"),
    "e_m^r": ("worker_demand", "what a worker takes"),
    "z_p^r": ("ps_demand", "what a PS takes"),
    "C_h^r": ("server_capacity", "what a server has"),
}
EACH_JOB = r"\quad \forall j \in [J]"
WORKERS = r"\sum_{h \in [H]} \sum_{m \in [M]} y_{jhm}"
RUNS = r"\sum_{t' \le t} (x_{jt'} - \bar x_{jt'})"
ONE_SERVER = {
    "y": rf"y_{{jhm}} \le Y_{{jhm}} \sigma_{{jh}}, {EACH_JOB}, h \in [H], m \in [M]",
    "one": rf"\sum_{{h \in [H]}} \sigma_{{jh}} \le 1 + (H - 1)(1 - q_j), {EACH_JOB}",
    "several": rf"\sum_{{h \in [H]}} \sigma_{{jh}} \ge 2 - q_j, {EACH_JOB}",
}
RUNNING = {
    "end": rf"\sum_{{t > 1}} \bar x_{{jt}} = 1, {EACH_JOB}",
    "last": rf"\sum_{{t > 1}} t \bar x_{{jt}} = \sum_{{t \in [T]}} t x_{{jt}} + d_j, {EACH_JOB}",
    "y": rf"\bar y_{{jhm}}(t) \ge y_{{jhm}} - Y_{{jhm}} \bigl( 1 - {RUNS} \bigr),"
    rf" {EACH_JOB}, h \in [H], m \in [M], t \in [T]",
}
EACH_CELL = r"\quad \forall h \in [H], r \in [R], t \in [T]"
EQUATIONS = {
    "objective": r"\min \sum_{j \in [J]} w_j \Bigl( \sum_{t \in [T]} t x_{jt} + d_j \Bigr)",
    "eq_2a": rf"\sum_{{t \in [T]}} x_{{jt}} = 1, {EACH_JOB}",
    "eq_2b": rf"y_{{jhm}} \le Y_{{jhm}} \mu_{{jm}}, {EACH_JOB}, h \in [H], m \in [M]",
    "eq_2b_one": rf"\sum_{{m \in [M]}} \mu_{{jm}} = 1, {EACH_JOB}",
    "eq_2b_some": rf"{WORKERS} \ge 1, {EACH_JOB}",
    "eq_2c": rf"s_{{jhp}} \le S_{{hp}} \phi_{{jp}}, {EACH_JOB}, h \in [H], p \in [P]",
    "eq_2c_one": rf"\sum_{{p \in [P]}} \phi_{{jp}} = 1, {EACH_JOB}",
    "eq_2d": ONE_SERVER["one"],
    "eq_2d_several": ONE_SERVER["several"],
    "eq_2d_y": ONE_SERVER["y"],
    "eq_2d_s": rf"s_{{jhp}} \le S_{{hp}} \sigma_{{jh}}, {EACH_JOB}, h \in [H], p \in [P]",
    "eq_2d_on": r"\sigma_{jh} \le \sum_{m \in [M]} y_{jhm} + \sum_{p \in [P]} s_{jhp},"
    rf" {EACH_JOB}, h \in [H]",
    "eq_2e": rf"\sum_{{h \in [H]}} \sum_{{p \in [P]}} s_{{jhp}} \ge 1, {EACH_JOB}",
    "eq_2f": rf"d_j \ge \sum_{{k \in \mathcal{{K}}_j}} \ell_{{jk}} \theta_{{jk}}, {EACH_JOB}",
    "eq_2f_one": rf"\sum_{{k \in \mathcal{{K}}_j}} \theta_{{jk}} = 1, {EACH_JOB}",
    "eq_2f_q": rf"\sum_{{k : q_k = 1}} \theta_{{jk}} = q_j, {EACH_JOB}",
    "eq_2f_m": rf"\sum_{{k : m_k = m}} \theta_{{jk}} = \mu_{{jm}}, {EACH_JOB}, m \in [M]",
    "eq_2f_p": rf"\sum_{{k : p_k = p}} \theta_{{jk}} = \phi_{{jp}}, {EACH_JOB}, p \in [P]",
    "eq_2f_n": rf"\sum_{{k \in \mathcal{{K}}_j}} n_k \theta_{{jk}} = {WORKERS}, {EACH_JOB}",
    "eq_2g": rf"{WORKERS} \le D_j, {EACH_JOB}",
    "eq_2h": r"\sum_{j \in [J]} \Bigl( \sum_{m \in [M]} e_m^r \bar y_{jhm}(t)"
    rf" + \sum_{{p \in [P]}} z_p^r \bar s_{{jhp}}(t) \Bigr) \le C_h^r, {EACH_CELL}",
    "eq_2h_end": RUNNING["end"],
    "eq_2h_last": RUNNING["last"],
    "eq_2h_y": RUNNING["y"],
    "eq_2h_s": rf"\bar s_{{jhp}}(t) \ge s_{{jhp}} - S_{{hp}} \bigl( 1 - {RUNS} \bigr),"
    rf" {EACH_JOB}, h \in [H], p \in [P], t \in [T]",
    "eq_2i": r"\sum_{h' \ne h} \sum_{m \in [M]} b_m y_{jh'm} \le \sum_{p \in [P]} B_p s_{jhp}"
    rf" + N_j \max_m b_m (1 - \eta_{{jh}}), {EACH_JOB}, h \in [H]",
    "eq_2i_s": rf"s_{{jhp}} \le S_{{hp}} \eta_{{jh}}, {EACH_JOB}, h \in [H], p \in [P]",
    "eq_2j": rf"x_{{jt}} = 0, {EACH_JOB}, t < a_j",
    "eq_15a": ONE_SERVER["one"],
    "eq_15a_several": ONE_SERVER["several"],
    "eq_15a_y": ONE_SERVER["y"],
    "eq_15a_on": rf"\sigma_{{jh}} \le \sum_{{m \in [M]}} y_{{jhm}}, {EACH_JOB}, h \in [H]",
    "eq_15b": r"\sum_{j \in [J]} \sum_{m \in [M]} e_m^r \bar y_{jhm}(t) \le C_h^r,"
    rf" {EACH_CELL}",
    "eq_15b_end": RUNNING["end"],
    "eq_15b_last": RUNNING["last"],
    "eq_15b_y": RUNNING["y"],
}
SYMBOLS = symbols(
    {
        ("job", "jobs"): "q",
        ("job", "slots"): "d",
        ("job", "weighted slots"): "eq_2a",
        ("job", ""): (
            "eq_2b_one eq_2b_some eq_2c_one eq_2d eq_2d_several eq_2e eq_2f eq_2f_one eq_2f_q "
            "eq_2f_n eq_2g eq_2h_end eq_2h_last eq_15a eq_15a_several eq_15b_end eq_15b_last"
        ),
        ("job, slot", "jobs"): "x end",
        ("job, slot", ""): "eq_2j",
        ("job, server", "servers"): "on hosts",
        ("job, server", ""): "eq_2i eq_2d_on eq_15a_on",
        ("job, worker type", "jobs"): "is_m",
        ("job, worker type", ""): "eq_2f_m",
        ("job, PS type", "jobs"): "is_p",
        ("job, PS type", ""): "eq_2f_p",
        ("job, server, worker type", "workers"): "y",
        ("job, server, worker type", ""): "eq_2b eq_2d_y eq_15a_y",
        ("job, server, PS type", "PSs"): "s",
        ("job, server, PS type", ""): "eq_2c eq_2d_s eq_2i_s",
        ("job, server, worker type, slot", "workers"): "run_y",
        ("job, server, worker type, slot", ""): "eq_2h_y eq_15b_y",
        ("job, server, PS type, slot", "PSs"): "run_s",
        ("job, server, PS type, slot", ""): "eq_2h_s",
        ("job, worker type, PS type, one server, workers", "jobs"): "pace",
        ("server, resource, slot", "weighted slots a unit"): "eq_2h eq_15b",
    }
)


def printed_program(
    instance: BatchschedInstance, J: list[int], slots: int, relax: bool = False,
    left: Callable[[int], Floats] | None = None,
) -> Model:  # fmt: skip
    """Problem (2) or (15) of the jobs J in the slots 1 to `slots`.

    `left`, by slot, is what is left of the servers, (H, R); all of them by default.
    """
    m = pyo.ConcreteModel(name=instance.name)
    jobs = {j: instance.jobs[j] for j in J}
    room, binary, integer = instance.worker_room, binary_domain(relax), integer_domain(relax)
    H, M, P = (range(len(each)) for each in (room, room[0], instance.ps_demand))
    T, R = range(1, slots + 1), range(len(instance.resources))
    e, z = instance.worker_demand.tolist(), instance.ps_demand.tolist()
    b, B = instance.worker_bandwidth.tolist(), instance.ps_bandwidth.tolist()
    S = units(instance.server_capacity, instance.ps_demand).tolist()
    Y = {j: np.minimum(room, job.chunks).tolist() for j, job in jobs.items()}
    N = {j: most_workers(instance, job) for j, job in jobs.items()}
    C = {t: (instance.server_capacity if left is None else left(t)).tolist() for t in T}
    length = dict[tuple[int, int, int, int, int], int]()
    for j, job in jobs.items():
        table = durations(instance, job)
        for w, p, q, n in np.argwhere(table <= slots).tolist():
            length[j, w, p, q, n + 1] = int(table[w, p, q, n])
    paces = {j: [k for k in length if k[0] == j] for j in J}

    m.x = pyo.Var(J, T, domain=binary, doc="(2n) the job starts in this slot")
    m.y = pyo.Var(
        J, H, M, domain=integer, bounds=lambda _, j, h, w: (0, Y[j][h][w]),
        doc="(2k) workers of a type on a server",
    )  # fmt: skip
    m.s = pyo.Var(
        J, H, P, domain=integer, bounds=lambda _, j, h, p: (0, S[h][p]),
        doc="(2l) PSs of a type on a server",
    )  # fmt: skip
    m.d = pyo.Var(J, domain=integer, bounds=(1, slots), doc="(2m) duration")
    m.q = pyo.Var(J, domain=binary, doc="(2o) all stands on one server")
    m.is_m = pyo.Var(J, M, domain=binary, doc="(2b) the job's worker type")
    m.is_p = pyo.Var(J, P, domain=binary, doc="(2c) the job's PS type")
    m.pace = pyo.Var(list(length), domain=binary, doc="(2f) types, number of workers, where")
    m.on = pyo.Var(J, H, domain=binary, doc="(2d) the server holds anything of the job")
    m.hosts = pyo.Var(J, H if P else [], domain=binary, doc="(2i) the server holds a PS of the job")
    m.end = pyo.Var(J, range(2, slots + 2), domain=binary, doc="(2h) the job has just ended")
    real = pyo.NonNegativeReals
    m.run_y = pyo.Var(J, H, M, T, domain=real, doc="(2h) workers that run in a slot")
    m.run_s = pyo.Var(J, H, P, T, domain=real, doc="(2h) PSs that run in a slot")

    def workers(m: Model, j: int) -> Expr:
        return total(m.y[j, h, w] for h in H for w in M)

    def completion(m: Model, j: int) -> Expr:
        return total(t * m.x[j, t] for t in T) + m.d[j]

    @m.Expression(J, T)
    def run(m: Model, j: int, t: int) -> Expr:
        return total(m.x[j, u] for u in T if u <= t) - total(m.end[j, u] for u in T if 1 < u <= t)

    number = 2 if P else 15
    m.objective = pyo.Objective(
        expr=total(float(job.weight) * completion(m, j) for j, job in jobs.items()),
        doc=f"({number}) total weighted completion time",
    )

    @m.Constraint(J, doc="(2a) every job runs once")
    def eq_2a(m: Model, j: int) -> Expr:
        return total(m.x[j, t] for t in T) == 1

    @m.Constraint(J, H, M, doc="(2b) workers of the job's type only")
    def eq_2b(m: Model, j: int, h: int, w: int) -> Expr:
        return m.y[j, h, w] <= Y[j][h][w] * m.is_m[j, w]

    @m.Constraint(J, doc="(2b) one worker type")
    def eq_2b_one(m: Model, j: int) -> Expr:
        return total(m.is_m[j, w] for w in M) == 1

    @m.Constraint(J, doc="(2b) at least one worker")
    def eq_2b_some(m: Model, j: int) -> Expr:
        return workers(m, j) >= 1

    @m.Constraint(J, doc="(2f) the job runs as long as its pace asks for")
    def eq_2f(m: Model, j: int) -> Expr:
        return m.d[j] >= total(length[k] * m.pace[k] for k in paces[j])

    @m.Constraint(J, doc="(2f) a scheduled job has one pace")
    def eq_2f_one(m: Model, j: int) -> Expr:
        return total(m.pace[k] for k in paces[j]) == 1

    @m.Constraint(J, doc="(2f) the pace is that of one server, or of several")
    def eq_2f_q(m: Model, j: int) -> Expr:
        return total(m.pace[k] for k in paces[j] if k[3] == 1) == m.q[j]

    @m.Constraint(J, M, doc="(2f) the pace is that of the worker type")
    def eq_2f_m(m: Model, j: int, w: int) -> Expr:
        return total(m.pace[k] for k in paces[j] if k[1] == w) == m.is_m[j, w]

    @m.Constraint(J, doc="(2f) the pace is that of the number of workers")
    def eq_2f_n(m: Model, j: int) -> Expr:
        return total(k[4] * m.pace[k] for k in paces[j]) == workers(m, j)

    @m.Constraint(J, doc="(2g) no more workers than chunks")
    def eq_2g(m: Model, j: int) -> Expr:
        return workers(m, j) <= jobs[j].chunks

    early = [(j, t) for j, job in jobs.items() for t in T if t < job.arrival]

    @m.Constraint(early, doc="(2j) no start before the arrival")
    def eq_2j(m: Model, j: int, t: int) -> Expr:
        return m.x[j, t] == 0

    def server_of_worker(m: Model, j: int, h: int, w: int) -> Expr:
        return m.y[j, h, w] <= Y[j][h][w] * m.on[j, h]

    def used_server(m: Model, j: int, h: int) -> Expr:
        return m.on[j, h] <= total(m.y[j, h, w] for w in M) + total(m.s[j, h, p] for p in P)

    def one_server(m: Model, j: int) -> Expr:
        return total(m.on[j, h] for h in H) <= 1 + (len(H) - 1) * (1 - m.q[j])

    def several_servers(m: Model, j: int) -> Expr:
        return total(m.on[j, h] for h in H) >= 2 - m.q[j]

    def ends_once(m: Model, j: int) -> Expr:
        return total(m.end[j, t] for t in range(2, slots + 2)) == 1

    def ends_then(m: Model, j: int) -> Expr:
        return total(t * m.end[j, t] for t in range(2, slots + 2)) == completion(m, j)

    def workers_run(m: Model, j: int, h: int, w: int, t: int) -> Expr:
        return m.run_y[j, h, w, t] >= m.y[j, h, w] - Y[j][h][w] * (1 - m.run[j, t])

    def capacity(m: Model, h: int, r: int, t: int) -> Expr:
        used = [e[w][r] * m.run_y[j, h, w, t] for j in J for w in M if e[w][r] > 0]
        used += [z[p][r] * m.run_s[j, h, p, t] for j in J for p in P if z[p][r] > 0]
        return total(used) <= C[t][h][r] if used else pyo.Constraint.Skip

    def add(name: str, rule: Callable[..., Expr], doc: str, *index: object) -> None:
        setattr(m, name, pyo.Constraint(J, *index, rule=rule, doc=doc))

    if not P:
        add("eq_15a", one_server, "(15a) on one server: at most one is used")
        add("eq_15a_several", several_servers, "(15a) otherwise several are used")
        add("eq_15a_y", server_of_worker, "(15a) a worker's server is used", H, M)
        add("eq_15a_on", used_server, "(15a) a used server holds something", H)
        m.eq_15b = pyo.Constraint(H, R, T, rule=capacity, doc="(15b) what runs fits on its server")
        add("eq_15b_end", ends_once, "(15b) every job ends once")
        add("eq_15b_last", ends_then, "(15b) it ends its duration after the start")
        add("eq_15b_y", workers_run, "(15b) workers of a running job", H, M, T)
        set_equations(m, EQUATIONS, NOTATION)
        return m
    add("eq_2d", one_server, "(2d) on one server: at most one is used")
    add("eq_2d_several", several_servers, "(2d) otherwise several are used")
    add("eq_2d_y", server_of_worker, "(2d) a worker's server is used", H, M)
    add("eq_2d_on", used_server, "(2d) a used server holds something", H)
    m.eq_2h = pyo.Constraint(H, R, T, rule=capacity, doc="(2h) what runs fits on its server")
    add("eq_2h_end", ends_once, "(2h) every job ends once")
    add("eq_2h_last", ends_then, "(2h) it ends its duration after the start")
    add("eq_2h_y", workers_run, "(2h) workers of a running job", H, M, T)

    @m.Constraint(J, H, P, T, doc="(2h) PSs of a running job")
    def eq_2h_s(m: Model, j: int, h: int, p: int, t: int) -> Expr:
        return m.run_s[j, h, p, t] >= m.s[j, h, p] - S[h][p] * (1 - m.run[j, t])

    @m.Constraint(J, H, P, doc="(2c) PSs of the job's type only")
    def eq_2c(m: Model, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= S[h][p] * m.is_p[j, p]

    @m.Constraint(J, doc="(2c) one PS type")
    def eq_2c_one(m: Model, j: int) -> Expr:
        return total(m.is_p[j, p] for p in P) == 1

    @m.Constraint(J, H, P, doc="(2d) a PS's server is used")
    def eq_2d_s(m: Model, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= S[h][p] * m.on[j, h]

    @m.Constraint(J, doc="(2e) at least one PS")
    def eq_2e(m: Model, j: int) -> Expr:
        return total(m.s[j, h, p] for h in H for p in P) >= 1

    @m.Constraint(J, P, doc="(2f) the pace is that of the PS type")
    def eq_2f_p(m: Model, j: int, p: int) -> Expr:
        return total(m.pace[k] for k in paces[j] if k[2] == p) == m.is_p[j, p]

    @m.Constraint(J, H, doc="(2i) a host's PSs have bandwidth for the workers elsewhere")
    def eq_2i(m: Model, j: int, h: int) -> Expr:
        sent = total(b[w] * m.y[j, o, w] for o in H if o != h for w in M)
        received = total(B[p] * m.s[j, h, p] for p in P)
        return sent <= received + N[j] * max(b) * (1 - m.hosts[j, h])

    @m.Constraint(J, H, P, doc="(2i) which servers hold a PS: printed, all would need PSs")
    def eq_2i_s(m: Model, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= S[h][p] * m.hosts[j, h]

    set_equations(m, EQUATIONS, NOTATION)
    return m


def read_job(m: Model, j: int) -> list[WindowRow]:
    """The row of a job at the variables' values; none without them."""

    def of(component: Expr) -> dict[tuple[int, ...], float]:
        return {key[1:]: v.value or 0.0 for key, v in component.items() if key[0] == j}

    starts, ends, types, ps_types = (of(each) for each in (m.x, m.end, m.is_m, m.is_p))
    (first,), (after,), (worker_type,) = (max(n, key=n.__getitem__) for n in (starts, ends, types))
    if starts[(first,)] < 0.5:
        return []
    servers = sorted({h for h, _ in of(m.y)})
    workers, ps = (
        np.array([sum(round(n) for (at, _), n in of(count).items() if at == h) for h in servers])
        for count in (m.y, m.s)
    )
    (ps_type,) = max(ps_types, key=ps_types.__getitem__, default=(-1,))
    return [WindowRow(first, after - 1, worker_type, ps_type, workers, ps)]


def write_job(m: Model, j: int, row: WindowRow) -> None:
    """Set what is not 0 of a job's variables to a row."""
    w, p, q = row.worker_type, row.ps_type, int(row.one_server)
    chosen = [m.x[j, row.first], m.end[j, row.last + 1], m.is_m[j, w]]
    pace = (j, w, max(0, p), q, row.num_workers)
    chosen += [m.pace[pace]] if pace in m.pace else []
    chosen += [m.is_p[j, p]] if m.is_p else []
    for variable in chosen:
        variable.set_value(1)
    m.q[j].set_value(q)
    m.d[j].set_value(row.slots)
    for h, (count, ps) in enumerate(zip(row.workers.tolist(), row.ps.tolist(), strict=True)):
        m.on[j, h].set_value(int(count > 0 or ps > 0))
        m.y[j, h, w].set_value(count)
        times = range(row.first, row.last + 1)
        for t in times:
            m.run_y[j, h, w, t].set_value(count)
        if m.is_p:
            m.hosts[j, h].set_value(int(ps > 0))
            m.s[j, h, p].set_value(ps)
            for t in times:
                m.run_s[j, h, p, t].set_value(ps)
