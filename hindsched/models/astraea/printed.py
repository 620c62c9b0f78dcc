"""Problem (3) of astraea as printed, one rule a sentence, numbered, and linearised exactly.

======================  ========================================================================
``y[j, s, w, t]``       workers of type w on server s in slot t     ``z[j, s, p, t]``  PSs
``zeta[j]``             1 iff everything stands on one server
``o[j]``                1 iff the job is scheduled (4a); 1 where every job must complete
``begin, end[j, t]``    1 iff t is t- (3n) or t+ (3m)
``run[j, t]``           1 iff t- <= t <= t+: begins up to t minus ends before t
``on, hosts[j, s]``     1 iff server s holds anything (3j), a PS (3i)
``pace[j, w, p, q, N]`` selects types, zeta and N workers, so that (3k) becomes
                        ``sum_t run >= ceil(E D M / (N n))``
======================  ========================================================================

Repairs: (3f) and (3h) hold for t up to t+ - 1 only (as printed no job ends); (3i) holds for servers
with a PS only (as printed every server needs PSs).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import durations, most_workers
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.declared import Symbol
from hindsched.solutions.astraea.row import AstraeaRow
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.capacity_timeline import Room

Pace = tuple[int, int, int, int, int]
"""Job, worker type, PS type, zeta, number of workers."""
REVENUE = "revenue"
PRINTED_SYMBOLS = {
    "o": Symbol("job", "jobs"),
    "zeta": Symbol("job", "jobs"),
    "begin": Symbol("job, slot", "jobs"),
    "end": Symbol("job, slot", "jobs"),
    "run": Symbol("job, slot", "jobs"),
    "on": Symbol("job, server", "servers"),
    "hosts": Symbol("job, server", "servers"),
    "pace": Symbol("job, worker type, PS type, one server, workers", "jobs"),
    "z": Symbol("job, server, PS type, slot", "PSs"),
    "eq_3a": Symbol("worker type, slot", f"{REVENUE} a worker"),
    "eq_3b": Symbol("PS type, slot", f"{REVENUE} a PS"),
    "eq_3e": Symbol("job, slot", f"{REVENUE} a worker"),
    "eq_3f": Symbol("job, server, worker type, slot, side", f"{REVENUE} a worker"),
    "eq_3g": Symbol("job, slot", f"{REVENUE} a PS"),
    "eq_3h": Symbol("job, server, PS type, slot, side", f"{REVENUE} a PS"),
    "eq_3i_z": Symbol("job, server, PS type, slot", f"{REVENUE} a PS"),
    "eq_3j": Symbol("job"),
    "eq_3j_several": Symbol("job"),
    "eq_3j_o": Symbol("job"),
    "eq_3j_on": Symbol("job, server"),
    "eq_3j_y": Symbol("job, server, worker type, slot"),
    "eq_3j_z": Symbol("job, server, PS type, slot"),
    "eq_3k_one": Symbol("job"),
    "eq_3k_zeta": Symbol("job"),
    "eq_3k_y": Symbol("job, worker type, slot"),
    "eq_3k_all": Symbol("job, worker type, slot"),
    "eq_3k_z": Symbol("job, PS type, slot"),
    "eq_3l_y": Symbol("job, server, worker type, slot"),
    "eq_3l_z": Symbol("job, server, PS type, slot"),
    "eq_3m": Symbol("job"),
    "eq_3m_run": Symbol("job, slot"),
    "eq_3n": Symbol("job"),
    "eq_4a": Symbol("job | "),
}
"""Indices and units of the components that the form of modes does not have, or has otherwise."""


@dataclass(frozen=True)
class Ranges:
    """Index ranges and largest values of a printed program.

    Parameters
    ----------
    jobs : list of int
        The open jobs.
    S, W, P, T : range
        Servers, worker types, PS types, slots.
    most_y, most_z : dict
        Most workers and PSs of a type on a server.
    length : dict
        Durations by worker type, PS type, zeta and number of workers less 1.
    paces : dict
        What each job may select, in order.
    """

    jobs: list[int]
    S: range
    W: range
    P: range
    T: range
    most_y: dict[tuple[int, int, int], int]
    most_z: dict[tuple[int, int, int], int]
    length: dict[int, Ints]
    paces: dict[int, list[Pace]]

    @classmethod
    def of(cls, instance: AstraeaInstance, jobs: list[int]) -> Ranges:
        """Read them from an instance."""
        S, W, P = (range(n) for n in (*instance.worker_count.shape, len(instance.ps_types)))
        most_y = {
            (j, s, w): min(instance.jobs[j].chunks, int(instance.worker_count[s, w]))
            for j in jobs
            for s in S
            for w in W
        }
        most_z = {(j, s, p): int(instance.ps_count[s, p]) for j in jobs for s in S for p in P}
        length = {j: durations(instance, instance.jobs[j]) for j in jobs}
        paces = {
            j: [
                (j, w, p, q, n + 1)
                for w, p, q, n in np.argwhere(length[j] <= instance.horizon).tolist()
            ]
            for j in jobs
        }
        slots = range(1, instance.horizon + 1)
        return cls(jobs, S, W, P, slots, most_y, most_z, length, paces)


def add_printed(
    model: Model,
    instance: AstraeaInstance,
    sets: Ranges,
    now: int,
    free: Room[Floats],
    must: bool,
    relax: bool,
) -> Expr:
    """Fill `model` with the printed program but for its objective, whose open part is returned.

    Parameters
    ----------
    model : ConcreteModel
        An empty model.
    instance : AstraeaInstance
        The instance.
    sets : Ranges
        Index ranges.
    now : int
        First slot still open.
    free : Room
        Workers and PSs that fixed rows leave.
    must : bool
        Whether every job must complete, as (3k) reads literally.
    relax : bool
        The linear relaxation.
    """
    _variables(model, sets, relax)
    _window(model, instance, sets, now, must)
    _counts(model, instance, sets)
    _hosts(model, instance, sets)
    _one_server(model, sets)
    _work(model, instance, sets)
    _capacities(model, instance, sets, free)
    return pyo.quicksum(
        instance.revenue(instance.jobs[j], t) * model.end[j, t]
        for j in sets.jobs
        for t in sets.T
        if t > instance.jobs[j].arrival
    )


def _variables(model: Model, sets: Ranges, relax: bool) -> None:
    jobs, S, T = sets.jobs, sets.S, sets.T
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    paces = [pace for j in jobs for pace in sets.paces[j]]
    model.o = pyo.Var(jobs, domain=binary, doc="(4a) the job is scheduled")
    model.y = pyo.Var(
        jobs, S, sets.W, T, domain=whole, bounds=lambda _, *i: (0, sets.most_y[i[:3]]),
        doc="(3) workers of a type on a server",
    )  # fmt: skip
    model.z = pyo.Var(
        jobs, S, sets.P, T, domain=whole, bounds=lambda _, *i: (0, sets.most_z[i[:3]]),
        doc="(3) PSs of a type on a server",
    )  # fmt: skip
    model.zeta = pyo.Var(jobs, domain=binary, doc="(3j) everything stands on one server")
    model.begin = pyo.Var(jobs, T, domain=binary, doc="(3n) the job begins in this slot")
    model.end = pyo.Var(jobs, T, domain=binary, doc="(3m) the job ends in this slot")
    model.run = pyo.Var(jobs, T, domain=binary, doc="(3) the job runs in this slot")
    model.on = pyo.Var(jobs, S, domain=binary, doc="(3j) the server holds anything of the job")
    model.hosts = pyo.Var(jobs, S, domain=binary, doc="(3i) the server holds a PS of the job")
    model.pace = pyo.Var(paces, domain=binary, doc="(3k) types, zeta and number of workers")


def _window(model: Model, instance: AstraeaInstance, sets: Ranges, now: int, must: bool) -> None:
    """(3m), (3n), and run; nothing before the arrival (3l); o (4a)."""
    jobs, T = sets.jobs, sets.T
    early = [(j, t) for j in jobs for t in T if t < max(instance.jobs[j].arrival + 1, now)]

    @model.Constraint(jobs if must else [], doc="(4a) every job is scheduled")
    def eq_4a(m: Model, j: int) -> Expr:
        return m.o[j] == 1

    @model.Constraint(jobs, doc="(3n) a scheduled job begins once")
    def eq_3n(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.begin[j, t] for t in T) == m.o[j]

    @model.Constraint(jobs, doc="(3m) a scheduled job ends once")
    def eq_3m(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.end[j, t] for t in T) == m.o[j]

    @model.Constraint(jobs, T, doc="(3m) it runs from its begin to its end")
    def eq_3m_run(m: Model, j: int, t: int) -> Expr:
        begun = pyo.quicksum(m.begin[j, u] for u in range(1, t + 1))
        return m.run[j, t] == begun - pyo.quicksum(m.end[j, u] for u in range(1, t))

    @model.Constraint(early, doc="(3l) no begin before the arrival")
    def eq_3l(m: Model, j: int, t: int) -> Expr:
        return m.begin[j, t] == 0


def _counts(model: Model, instance: AstraeaInstance, sets: Ranges) -> None:
    """(3e)-(3h), (3l): how many workers and PSs run, unchanged from begin to end."""
    jobs, S, W, P, T = sets.jobs, sets.S, sets.W, sets.P, sets.T
    sides = (1, -1)

    @model.Constraint(jobs, T, doc="(3e) no more workers than chunks")
    def eq_3e(m: Model, j: int, t: int) -> Expr:
        workers = pyo.quicksum(m.y[j, s, w, t] for s in S for w in W)
        return workers <= instance.jobs[j].chunks

    @model.Constraint(jobs, T, doc="(3g) a running job has a PS")
    def eq_3g(m: Model, j: int, t: int) -> Expr:
        return pyo.quicksum(m.z[j, s, p, t] for s in S for p in P) >= m.run[j, t]

    @model.Constraint(jobs, S, W, T, doc="(3l) workers only while the job runs")
    def eq_3l_y(m: Model, j: int, s: int, w: int, t: int) -> Expr:
        return m.y[j, s, w, t] <= sets.most_y[j, s, w] * m.run[j, t]

    @model.Constraint(jobs, S, P, T, doc="(3l) PSs only while the job runs")
    def eq_3l_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= sets.most_z[j, s, p] * m.run[j, t]

    def still(m: Model, j: int, t: int) -> Expr:
        return 2 - m.run[j, t] - m.run[j, t + 1]

    @model.Constraint(jobs, S, W, T[:-1], sides, doc="(3f) workers do not change on the way")
    def eq_3f(m: Model, j: int, s: int, w: int, t: int, side: int) -> Expr:
        change = m.y[j, s, w, t] - m.y[j, s, w, t + 1]
        return side * change <= sets.most_y[j, s, w] * still(m, j, t)

    @model.Constraint(jobs, S, P, T[:-1], sides, doc="(3h) PSs do not change on the way")
    def eq_3h(m: Model, j: int, s: int, p: int, t: int, side: int) -> Expr:
        change = m.z[j, s, p, t] - m.z[j, s, p, t + 1]
        return side * change <= sets.most_z[j, s, p] * still(m, j, t)


def _hosts(model: Model, instance: AstraeaInstance, sets: Ranges) -> None:
    """(3i), for the servers that hold a PS."""
    jobs, S, W, P, T = sets.jobs, sets.S, sets.W, sets.P, sets.T
    worker_mbps, ps_mbps = instance.worker_bandwidth.tolist(), instance.ps_bandwidth.tolist()

    @model.Constraint(jobs, S, P, T, doc="(3i) which servers hold a PS")
    def eq_3i_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= sets.most_z[j, s, p] * m.hosts[j, s]

    @model.Constraint(jobs, S, T, doc="(3i) a host's PSs have bandwidth for the workers elsewhere")
    def eq_3i(m: Model, j: int, s: int, t: int) -> Expr:
        sent = pyo.quicksum(worker_mbps[w] * m.y[j, h, w, t] for h in S if h != s for w in W)
        received = pyo.quicksum(ps_mbps[p] * m.z[j, s, p, t] for p in P)
        most = most_workers(instance, instance.jobs[j]) * max(worker_mbps)
        return sent <= received + most * (1 - m.hosts[j, s])


def _one_server(model: Model, sets: Ranges) -> None:
    """(3j): zeta = 1 iff exactly one server holds anything."""
    jobs, S, W, P, T = sets.jobs, sets.S, sets.W, sets.P, sets.T

    @model.Constraint(jobs, S, W, T, doc="(3j) a worker's server is used")
    def eq_3j_y(m: Model, j: int, s: int, w: int, t: int) -> Expr:
        return m.y[j, s, w, t] <= sets.most_y[j, s, w] * m.on[j, s]

    @model.Constraint(jobs, S, P, T, doc="(3j) a PS's server is used")
    def eq_3j_z(m: Model, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= sets.most_z[j, s, p] * m.on[j, s]

    @model.Constraint(jobs, S, doc="(3j) a used server holds something")
    def eq_3j_on(m: Model, j: int, s: int) -> Expr:
        held = [m.y[j, s, w, t] for w in W for t in T] + [m.z[j, s, p, t] for p in P for t in T]
        return m.on[j, s] <= pyo.quicksum(held)

    @model.Constraint(jobs, doc="(3j) zeta = 1: one server at most is used")
    def eq_3j(m: Model, j: int) -> Expr:
        used = pyo.quicksum(m.on[j, s] for s in S)
        return used <= 1 + (len(S) - 1) * (1 - m.zeta[j])

    @model.Constraint(jobs, doc="(3j) zeta = 0: several servers are used")
    def eq_3j_several(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.on[j, s] for s in S) >= 2 * m.o[j] - m.zeta[j]

    @model.Constraint(jobs, doc="(3j) only a scheduled job stands anywhere")
    def eq_3j_o(m: Model, j: int) -> Expr:
        return m.zeta[j] <= m.o[j]


def _work(model: Model, instance: AstraeaInstance, sets: Ranges) -> None:
    """(3k): one pace; its types, zeta and N are those of y and z; its duration passes."""
    jobs, S, W, P, T = sets.jobs, sets.S, sets.W, sets.P, sets.T
    paces, length = sets.paces, sets.length
    most = {j: most_workers(instance, instance.jobs[j]) for j in jobs}
    total_ps = instance.ps_count.sum(axis=0).tolist()

    @model.Constraint(jobs, doc="(3k) a scheduled job has one pace")
    def eq_3k_one(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.pace[i] for i in paces[j]) == m.o[j]

    @model.Constraint(jobs, doc="(3k) the pace is that of one server, or of several")
    def eq_3k_zeta(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.pace[i] for i in paces[j] if i[3] == 1) == m.zeta[j]

    @model.Constraint(jobs, doc="(3k) the job runs as long as its pace asks for")
    def eq_3k(m: Model, j: int) -> Expr:
        least = (int(length[j][i[1], i[2], i[3], i[4] - 1]) * m.pace[i] for i in paces[j])
        return pyo.quicksum(m.run[j, t] for t in T) >= pyo.quicksum(least)

    count = {
        (j, w): pyo.quicksum(i[4] * model.pace[i] for i in paces[j] if i[1] == w)
        for j in jobs
        for w in W
    }

    @model.Constraint(jobs, W, T, doc="(3k) no more workers than the pace has")
    def eq_3k_y(m: Model, j: int, w: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, s, w, t] for s in S) <= count[j, w]

    @model.Constraint(jobs, W, T, doc="(3k) all workers of the pace while the job runs")
    def eq_3k_all(m: Model, j: int, w: int, t: int) -> Expr:
        there = pyo.quicksum(m.y[j, s, w, t] for s in S)
        return there >= count[j, w] - most[j] * (1 - m.run[j, t])

    @model.Constraint(jobs, P, T, doc="(3k) PSs of the pace's type only")
    def eq_3k_z(m: Model, j: int, p: int, t: int) -> Expr:
        chosen = pyo.quicksum(m.pace[i] for i in paces[j] if i[2] == p)
        return pyo.quicksum(m.z[j, s, p, t] for s in S) <= int(total_ps[p]) * chosen


def _capacities(model: Model, instance: AstraeaInstance, sets: Ranges, free: Room[Floats]) -> None:
    """(3a)-(3d), with what fixed rows take off the right sides.

    In (3a), (3b) the others' use is moved to the left: every tenant then has the same row.
    """
    jobs, S, W, P = sets.jobs, sets.S, sets.W, sets.P
    T = sets.T if jobs else range(0)
    split = len(W)
    quota = np.concatenate([instance.worker_quota, instance.ps_quota], axis=1).sum(axis=0)

    def shared(t: int, kind: int) -> float:
        taken = (free.capacity[:, kind] - free.at(t)[:, kind]).sum()
        return float(quota[kind] - taken)

    @model.Constraint(W, T, doc="(3a) workers within the quotas of all tenants")
    def eq_3a(m: Model, w: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, s, w, t] for j in jobs for s in S) <= shared(t, w)

    @model.Constraint(P, T, doc="(3b) PSs within the quotas of all tenants")
    def eq_3b(m: Model, p: int, t: int) -> Expr:
        return pyo.quicksum(m.z[j, s, p, t] for j in jobs for s in S) <= shared(t, split + p)

    @model.Constraint(S, W, T, doc="(3c) workers of a server")
    def eq_3c(m: Model, s: int, w: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, s, w, t] for j in jobs) <= float(free.at(t)[s, w])

    @model.Constraint(S, P, T, doc="(3d) PSs of a server")
    def eq_3d(m: Model, s: int, p: int, t: int) -> Expr:
        return pyo.quicksum(m.z[j, s, p, t] for j in jobs) <= float(free.at(t)[s, split + p])


def read_printed(model: Model, instance: AstraeaInstance) -> dict[str, AstraeaRow]:
    """Rows of the scheduled open jobs at the variables' values."""
    rows: dict[str, AstraeaRow] = {}
    S = range(len(instance.servers))
    for j in model.o:
        slots = [t for t in range(1, instance.horizon + 1) if (model.run[j, t].value or 0) > 0.5]
        if not slots:
            continue
        _, w, p = max(
            (item.value or 0.0, index[1], index[2])
            for index, item in model.pace.items()
            if index[0] == j
        )
        workers = np.array([round(model.y[j, s, w, slots[0]].value) for s in S])
        ps = np.array([round(model.z[j, s, p, slots[0]].value) for s in S])
        rows[instance.jobs[j].name] = AstraeaRow(slots[0], slots[-1], w, p, workers, ps)
    return rows


def load_printed(model: Model, solution: AstraeaSolution) -> None:
    """Set every variable from a feasible solution."""
    instance = solution.instance
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    for j in model.o:
        name = instance.jobs[j].name
        if solution.completion(name) is None:
            continue
        rows = solution.rows[name]
        row = rows[0]
        q = int(row.one_server)
        model.o[j].value = 1
        model.zeta[j].value = q
        model.begin[j, row.first].value = 1
        model.end[j, rows[-1].last].value = 1
        pace = (j, row.worker_type, row.ps_type, q, row.num_workers)
        if pace in model.pace:
            model.pace[pace].value = 1
        for s, (count, ps) in enumerate(zip(row.workers.tolist(), row.ps.tolist(), strict=True)):
            model.on[j, s].value = int(count > 0 or ps > 0)
            model.hosts[j, s].value = int(ps > 0)
            for t in range(row.first, rows[-1].last + 1):
                model.run[j, t].value = 1
                model.y[j, s, row.worker_type, t].value = count
                model.z[j, s, row.ps_type, t].value = ps
