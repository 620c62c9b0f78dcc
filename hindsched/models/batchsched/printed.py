"""Problem (2) and its Ring-AllReduce form (15) as printed, one constraint component a number.

The conventional variables are the paper's; what it writes with "|{...}|", "if and only if" and
products is linearised exactly:

====================  ==========================================================================
``x[j, t]``           job j starts in slot t                   ``d[j]``  its duration
``y[j, h, m]``        workers of type m on server h            ``s[j, h, p]``  PSs of type p
``q[j]``              1 iff everything stands on one server
``is_m, is_p``        which types are used: the sets of (2b), (2c) have one element
``on[j, h]``          1 iff server h holds anything of job j, for (2d)/(15a)
``holds_ps[j, h]``    1 iff server h holds a PS of job j, for "all h: sum s > 0" of (2i)
``pace[j, m, p, q, N]``  selects rho: (2f) becomes ``d >= ceil(E D K / (N rho))`` of the selected
``end[j, t]``         1 iff t = start + d, so that job j runs in slot t iff starts - ends up to t
``run_y, run_s``      y and s in the slots in which the job runs, for the product in (2h)/(15b)
====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import durations
from hindsched.instances.modes import units
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.declared import Symbol
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution
from hindsched.solutions.capacity_timeline import Room

Rows = Mapping[str, tuple[BatchschedRow, ...]]
Pace = tuple[int, int, int, int, int]
"""Job, worker type, PS type, q, number of workers."""

PRINTED_SYMBOLS = {
    "x": Symbol("job, slot", "jobs"),
    "end": Symbol("job, slot", "jobs"),
    "d": Symbol("job", "slots"),
    "y": Symbol("job, server, worker type", "workers"),
    "s": Symbol("job, server, PS type", "PSs"),
    "q": Symbol("job", "jobs"),
    "is_m": Symbol("job, worker type", "jobs"),
    "is_p": Symbol("job, PS type", "jobs"),
    "on": Symbol("job, server", "servers"),
    "holds_ps": Symbol("job, server", "servers"),
    "pace": Symbol("job, worker type, PS type, one server, workers", "jobs"),
    "run_y": Symbol("job, server, worker type, slot", "workers"),
    "run_s": Symbol("job, server, PS type, slot", "PSs"),
    "eq_2a": Symbol("job"),
    "eq_2b": Symbol("job, server, worker type"),
    "eq_2b_one": Symbol("job"),
    "eq_2b_some": Symbol("job"),
    "eq_2c": Symbol("job, server, PS type"),
    "eq_2c_one": Symbol("job"),
    "eq_2d_y": Symbol("job, server, worker type"),
    "eq_2d_s": Symbol("job, server, PS type"),
    "eq_2d_on": Symbol("job, server"),
    "eq_2d": Symbol("job"),
    "eq_2d_several": Symbol("job"),
    "eq_2e": Symbol("job"),
    "eq_2f_one": Symbol("job"),
    "eq_2f_m": Symbol("job, worker type"),
    "eq_2f_p": Symbol("job, PS type"),
    "eq_2f_q": Symbol("job"),
    "eq_2f_count": Symbol("job"),
    "eq_2f": Symbol("job"),
    "eq_2g": Symbol("job"),
    "eq_2h": Symbol("server, resource, slot"),
    "eq_2h_end": Symbol("job"),
    "eq_2h_last": Symbol("job"),
    "eq_2h_y": Symbol("job, server, worker type, slot"),
    "eq_2h_s": Symbol("job, server, PS type, slot"),
    "eq_2i": Symbol("job, server"),
    "eq_2i_s": Symbol("job, server, PS type"),
    "eq_2j": Symbol("job, slot"),
}
PRINTED_SYMBOLS |= {
    name.replace("eq_2d", "eq_15a").replace("eq_2h", "eq_15b"): symbol
    for name, symbol in PRINTED_SYMBOLS.items()
    if name.startswith(("eq_2d", "eq_2h"))
}


@dataclass(frozen=True)
class Ranges:
    """Index ranges and largest values of a printed program.

    Parameters
    ----------
    jobs : list of int
        The open jobs.
    H, M, P, T : range
        Servers, worker types, PS types (of Ring-AllReduce a single one that is not used), slots.
    most_y, most_s : dict
        Most workers and PSs of a type on a server.
    length : dict
        Durations by worker type, PS type, q and number of workers less 1.
    paces : dict
        What each job may select, in order.
    """

    jobs: list[int]
    H: range
    M: range
    P: range
    T: range
    most_y: dict[tuple[int, int, int], int]
    most_s: dict[tuple[int, int, int], int]
    length: dict[int, Ints]
    paces: dict[int, list[Pace]]

    @classmethod
    def of(cls, instance: BatchschedInstance, jobs: list[int], slots: int) -> Ranges:
        """Read them from an instance."""
        H, M = range(len(instance.servers)), range(len(instance.worker_types))
        P = range(max(1, instance.num_ps_types))
        room = units(instance.server_capacity, instance.worker_demand)
        chunks = {j: instance.jobs[j].chunks for j in jobs}
        most_y = {(j, h, m): min(chunks[j], int(room[h, m])) for j in jobs for h in H for m in M}
        most_s: dict[tuple[int, int, int], int] = {}
        if instance.has_ps:
            ps_room = units(instance.server_capacity, instance.ps_demand)
            most_s = {(j, h, p): int(ps_room[h, p]) for j in jobs for h in H for p in P}
        length = {j: durations(instance, instance.jobs[j]) for j in jobs}
        paces = {
            j: [(j, m, p, q, n + 1) for m, p, q, n in np.argwhere(length[j] <= slots).tolist()]
            for j in jobs
        }
        return cls(jobs, H, M, P, range(1, slots + 1), most_y, most_s, length, paces)


def add_printed(
    model: Model,
    instance: BatchschedInstance,
    sets: Ranges,
    now: int,
    free: Room[Floats],
    relax: bool,
) -> Expr:
    """Fill `model` with the printed program but for its objective, whose open part is returned.

    Parameters
    ----------
    model : ConcreteModel
        An empty model.
    instance : BatchschedInstance
        The instance.
    sets : Ranges
        Index ranges.
    now : int
        First slot still open.
    free : Room
        What fixed rows leave of the capacities.
    relax : bool
        The linear relaxation.
    """
    _variables(model, instance, sets, relax)
    _start(model, instance, sets, now)
    _types(model, instance, sets)
    if instance.has_ps:
        _parameter_servers(model, instance, sets)
    _one_server(model, instance, sets)
    _pace(model, instance, sets)
    _running(model, instance, sets)
    _capacity(model, instance, sets, free)
    return pyo.quicksum(
        float(instance.jobs[j].weight)
        * (pyo.quicksum(t * model.x[j, t] for t in sets.T) + model.d[j])
        for j in sets.jobs
    )


def _variables(model: Model, instance: BatchschedInstance, sets: Ranges, relax: bool) -> None:
    jobs, H, M, P, T = sets.jobs, sets.H, sets.M, sets.P, sets.T
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    positive = pyo.NonNegativeReals
    ends = range(2, len(T) + 2)
    model.x = pyo.Var(jobs, T, domain=binary, doc="(2a) the job starts in this slot")
    model.end = pyo.Var(jobs, ends, domain=binary, doc="(2h) the job has just ended")
    model.d = pyo.Var(jobs, domain=whole, bounds=(1, len(T)), doc="(2f) duration")
    model.y = pyo.Var(
        jobs, H, M, domain=whole, bounds=lambda _, *i: (0, sets.most_y[i]), doc="(2k) workers"
    )
    model.q = pyo.Var(jobs, domain=binary, doc="(2d) everything stands on one server")
    model.is_m = pyo.Var(jobs, M, domain=binary, doc="(2b) the job's worker type")
    model.on = pyo.Var(jobs, H, domain=binary, doc="(2d) the server holds anything of the job")
    paces = [pace for j in jobs for pace in sets.paces[j]]
    model.pace = pyo.Var(paces, domain=binary, doc="(2f) types, q and number of workers")
    model.run_y = pyo.Var(jobs, H, M, T, domain=positive, doc="(2h) workers that run in a slot")
    if instance.has_ps:
        model.s = pyo.Var(
            jobs, H, P, domain=whole, bounds=lambda _, *i: (0, sets.most_s[i]), doc="(2k) PSs"
        )
        model.is_p = pyo.Var(jobs, P, domain=binary, doc="(2c) the job's PS type")
        model.holds_ps = pyo.Var(jobs, H, domain=binary, doc="(2i) the server holds a PS")
        model.run_s = pyo.Var(jobs, H, P, T, domain=positive, doc="(2h) PSs that run in a slot")


def _workers(m: Model, sets: Ranges, j: int) -> Expr:
    return pyo.quicksum(m.y[j, h, k] for h in sets.H for k in sets.M)


def _start(model: Model, instance: BatchschedInstance, sets: Ranges, now: int) -> None:
    """(2a), (2g), (2j)."""
    early = [(j, t) for j in sets.jobs for t in sets.T if t < max(instance.jobs[j].arrival, now)]

    @model.Constraint(sets.jobs, doc="(2a) every job starts once")
    def eq_2a(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.x[j, t] for t in sets.T) == 1

    @model.Constraint(sets.jobs, doc="(2g) no more workers than chunks")
    def eq_2g(m: Model, j: int) -> Expr:
        return _workers(m, sets, j) <= instance.jobs[j].chunks

    @model.Constraint(early, doc="(2j) no start before the arrival")
    def eq_2j(m: Model, j: int, t: int) -> Expr:
        return m.x[j, t] == 0


def _types(model: Model, instance: BatchschedInstance, sets: Ranges) -> None:
    """(2b), (2c), (2e): one worker type with a worker, one PS type with a PS."""
    jobs, H, M, P = sets.jobs, sets.H, sets.M, sets.P

    @model.Constraint(jobs, doc="(2b) one worker type")
    def eq_2b_one(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.is_m[j, k] for k in M) == 1

    @model.Constraint(jobs, doc="(2b) at least one worker")
    def eq_2b_some(m: Model, j: int) -> Expr:
        return _workers(m, sets, j) >= 1

    @model.Constraint(jobs, H, M, doc="(2b) workers of the job's type only")
    def eq_2b(m: Model, j: int, h: int, k: int) -> Expr:
        return m.y[j, h, k] <= sets.most_y[j, h, k] * m.is_m[j, k]

    if not instance.has_ps:
        return

    @model.Constraint(jobs, doc="(2c) one PS type")
    def eq_2c_one(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.is_p[j, p] for p in P) == 1

    @model.Constraint(jobs, H, P, doc="(2c) PSs of the job's type only")
    def eq_2c(m: Model, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= sets.most_s[j, h, p] * m.is_p[j, p]

    @model.Constraint(jobs, doc="(2e) at least one PS")
    def eq_2e(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.s[j, h, p] for h in H for p in P) >= 1


def _parameter_servers(model: Model, instance: BatchschedInstance, sets: Ranges) -> None:
    """(2i), for the servers that hold a PS."""
    jobs, H, M, P = sets.jobs, sets.H, sets.M, sets.P
    worker_mbps, ps_mbps = instance.worker_bandwidth.tolist(), instance.ps_bandwidth.tolist()

    @model.Constraint(jobs, H, P, doc="(2i) which servers hold a PS")
    def eq_2i_s(m: Model, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= sets.most_s[j, h, p] * m.holds_ps[j, h]

    @model.Constraint(jobs, H, doc="(2i) a host's PSs have bandwidth for the workers elsewhere")
    def eq_2i(m: Model, j: int, h: int) -> Expr:
        sent = pyo.quicksum(worker_mbps[k] * m.y[j, o, k] for o in H if o != h for k in M)
        received = pyo.quicksum(ps_mbps[p] * m.s[j, h, p] for p in P)
        most = instance.jobs[j].chunks * max(worker_mbps)
        return sent <= received + most * (1 - m.holds_ps[j, h])


def _one_server(model: Model, instance: BatchschedInstance, sets: Ranges) -> None:
    """(2d)/(15a): q = 1 iff one server holds everything."""
    jobs, H, M = sets.jobs, sets.H, sets.M
    P = sets.P if instance.has_ps else range(0)

    def workers_on(m: Model, j: int, h: int, k: int) -> Expr:
        return m.y[j, h, k] <= sets.most_y[j, h, k] * m.on[j, h]

    def ps_on(m: Model, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= sets.most_s[j, h, p] * m.on[j, h]

    def something_on(m: Model, j: int, h: int) -> Expr:
        held = [m.y[j, h, k] for k in M] + [m.s[j, h, p] for p in P]
        return m.on[j, h] <= pyo.quicksum(held)

    def one(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.on[j, h] for h in H) <= 1 + (len(H) - 1) * (1 - m.q[j])

    def several(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.on[j, h] for h in H) >= 2 - m.q[j]

    rows = {
        "_y": pyo.Constraint(jobs, H, M, rule=workers_on, doc="a worker's server is used"),
        "_on": pyo.Constraint(jobs, H, rule=something_on, doc="a used server holds something"),
        "": pyo.Constraint(jobs, rule=one, doc="q = 1: one server at most is used"),
        "_several": pyo.Constraint(jobs, rule=several, doc="q = 0: several servers are used"),
    }
    if instance.has_ps:
        rows["_s"] = pyo.Constraint(jobs, H, P, rule=ps_on, doc="a PS's server is used")
    _add_numbered(model, "2d" if instance.has_ps else "15a", rows)


def _add_numbered(model: Model, number: str, rows: Mapping[str, pyo.Constraint]) -> None:
    """Add constraints under the number that the architecture's problem has for them."""
    for suffix, constraint in rows.items():
        constraint.doc = f"({number}) {constraint.doc}"
        model.add_component(f"eq_{number}{suffix}", constraint)


def _pace(model: Model, instance: BatchschedInstance, sets: Ranges) -> None:
    """(2f): the selected pace fixes rho; d N rho >= E D K for integers is d >= its ceiling."""
    jobs, paces, length = sets.jobs, sets.paces, sets.length

    @model.Constraint(jobs, doc="(2f) one pace")
    def eq_2f_one(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.pace[i] for i in paces[j]) == 1

    @model.Constraint(jobs, sets.M, doc="(2f) the pace is that of the worker type")
    def eq_2f_m(m: Model, j: int, k: int) -> Expr:
        return pyo.quicksum(m.pace[i] for i in paces[j] if i[1] == k) == m.is_m[j, k]

    if instance.has_ps:

        @model.Constraint(jobs, sets.P, doc="(2f) the pace is that of the PS type")
        def eq_2f_p(m: Model, j: int, p: int) -> Expr:
            return pyo.quicksum(m.pace[i] for i in paces[j] if i[2] == p) == m.is_p[j, p]

    @model.Constraint(jobs, doc="(2f) the pace is that of one server, or of several")
    def eq_2f_q(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.pace[i] for i in paces[j] if i[3] == 1) == m.q[j]

    @model.Constraint(jobs, doc="(2f) the pace is that of the number of workers")
    def eq_2f_count(m: Model, j: int) -> Expr:
        return pyo.quicksum(i[4] * m.pace[i] for i in paces[j]) == _workers(m, sets, j)

    @model.Constraint(jobs, doc="(2f) the job runs as long as its pace asks for")
    def eq_2f(m: Model, j: int) -> Expr:
        least = (int(length[j][i[1], i[2], i[3], i[4] - 1]) * m.pace[i] for i in paces[j])
        return m.d[j] >= pyo.quicksum(least)


def _running(model: Model, instance: BatchschedInstance, sets: Ranges) -> None:
    """The product in (2h)/(15b): the job runs in t iff it has started and not ended by then."""
    jobs, H, M, P, T = sets.jobs, sets.H, sets.M, sets.P, sets.T
    ends = range(2, len(T) + 2)

    def one_end(m: Model, j: int) -> Expr:
        return pyo.quicksum(m.end[j, t] for t in ends) == 1

    def last(m: Model, j: int) -> Expr:
        begin = pyo.quicksum(t * m.x[j, t] for t in T)
        return pyo.quicksum(t * m.end[j, t] for t in ends) == begin + m.d[j]

    runs = {
        (j, t): pyo.quicksum(model.x[j, u] for u in range(1, t + 1))
        - pyo.quicksum(model.end[j, u] for u in range(2, t + 1))
        for j in jobs
        for t in T
    }

    def workers_run(m: Model, j: int, h: int, k: int, t: int) -> Expr:
        return m.run_y[j, h, k, t] >= m.y[j, h, k] - sets.most_y[j, h, k] * (1 - runs[j, t])

    def ps_run(m: Model, j: int, h: int, p: int, t: int) -> Expr:
        return m.run_s[j, h, p, t] >= m.s[j, h, p] - sets.most_s[j, h, p] * (1 - runs[j, t])

    rows = {
        "_end": pyo.Constraint(jobs, rule=one_end, doc="every job ends once"),
        "_last": pyo.Constraint(jobs, rule=last, doc="it ends its duration after the start"),
        "_y": pyo.Constraint(jobs, H, M, T, rule=workers_run, doc="workers of a running job"),
    }
    if instance.has_ps:
        rows["_s"] = pyo.Constraint(jobs, H, P, T, rule=ps_run, doc="PSs of a running job")
    _add_numbered(model, "2h" if instance.has_ps else "15b", rows)


def _capacity(model: Model, instance: BatchschedInstance, sets: Ranges, free: Room[Floats]) -> None:
    """(2h)/(15b): what runs on a server in a slot."""
    worker, ps = instance.worker_demand.tolist(), instance.ps_demand.tolist()
    kinds = {r: [k for k in sets.M if worker[k][r]] for r in range(len(instance.resources))}
    ps_kinds = {r: [p for p in sets.P if ps[p][r]] if instance.has_ps else [] for r in kinds}
    cells = [
        (h, r, t) for h in sets.H for r in kinds for t in sets.T
        if sets.jobs and (kinds[r] or ps_kinds[r])
    ]  # fmt: skip

    def used(m: Model, h: int, r: int, t: int) -> Expr:
        load = [worker[k][r] * m.run_y[j, h, k, t] for j in sets.jobs for k in kinds[r]]
        load += [ps[p][r] * m.run_s[j, h, p, t] for j in sets.jobs for p in ps_kinds[r]]
        return pyo.quicksum(load) <= float(free.at(t)[h, r])

    rows = {"": pyo.Constraint(cells, rule=used, doc="what runs fits on its server")}
    _add_numbered(model, "2h" if instance.has_ps else "15b", rows)


def read_printed(
    model: Model, instance: BatchschedInstance, jobs: list[int], slots: int
) -> dict[str, BatchschedRow]:
    """Rows of the open jobs at the variables' values."""
    rows: dict[str, BatchschedRow] = {}
    servers = range(len(instance.servers))
    for j in jobs:
        start = round(sum(t * (model.x[j, t].value or 0.0) for t in range(1, slots + 1)))
        duration = round(model.d[j].value)
        m = int(np.argmax([item.value for item in model.is_m[j, :]]))
        workers = np.array([round(model.y[j, h, m].value) for h in servers])
        ps, ps_type = np.zeros_like(workers), -1
        if instance.has_ps:
            ps_type = int(np.argmax([item.value for item in model.is_p[j, :]]))
            ps = np.array([round(model.s[j, h, ps_type].value) for h in servers])
        last = start + duration - 1
        rows[instance.jobs[j].name] = BatchschedRow(start, last, m, ps_type, workers, ps)
    return rows


def load_printed(model: Model, jobs: list[int], solution: BatchschedSolution) -> None:
    """Set every variable from a feasible solution."""
    instance = solution.instance
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    for j in jobs:
        row = solution.rows[instance.jobs[j].name][0]
        model.x[j, row.first].value = 1
        model.d[j].value = row.slots
        model.end[j, row.last + 1].value = 1
        model.is_m[j, row.worker_type].value = 1
        model.q[j].value = int(row.one_server)
        p = max(0, row.ps_type)
        pace = (j, row.worker_type, p, int(row.one_server), row.num_workers)
        if pace in model.pace:
            model.pace[pace].value = 1
        for h, (count, ps) in enumerate(zip(row.workers, row.ps, strict=True)):
            model.y[j, h, row.worker_type].value = int(count)
            model.on[j, h].value = int(count > 0 or ps > 0)
            for t in range(row.first, row.last + 1):
                model.run_y[j, h, row.worker_type, t].value = int(count)
                if instance.has_ps:
                    model.run_s[j, h, p, t].value = int(ps)
            if instance.has_ps:
                model.s[j, h, p].value = int(ps)
                model.holds_ps[j, h].value = int(ps > 0)
        if instance.has_ps:
            model.is_p[j, p].value = 1
