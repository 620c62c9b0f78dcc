"""Problem (2) without migration as a tight mixed-integer program of some open jobs.

``y[j,w,t]``       1 if edge worker w trains job j in slot t
``zeta[j]``        1 if the whole job, with its PS, is in the cloud
``C[j,t]``         1 while job j is unfinished
``x[j,w]``         chunks of job j on edge worker w
``xc[j]``          chunks of job j in the cloud while zeta = 0
``s[j,z,t]``       chunks that start in the cloud in slot t, z = zeta
``a``, ``a_cloud`` [j,t]: 1 if the job needs a PS, and in the cloud; where the cloud's are finite
``S[j,s,t]``       the job's chunks that server s stores; where storage is limited

Every chunk is kept on one worker, which is what A_online is allowed to do. Chunks of a job are
identical and so is their order on a worker, so no chunk index is needed. (2e) and (2f) bind only
where the cloud's PSs are finite, as n_j for zeta = 0 does not depend on where the PS is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.instances.decimals import exactly
from hindsched.models.algebra import (
    Expr,
    Model,
    binary_domain,
    grouped,
    integer_domain,
    set_equations,
)
from hindsched.models.edgecloud import printed
from hindsched.models.edgecloud.sets import EdgecloudSets, in_steps

NOTATION = {
    key: (here, what) for key, (here, what) in printed.NOTATION.items()
    if here not in ("y_cloud", "z", "z_cloud", "x", "PS")
} | {
    "x_{jw}": ("x", "chunks of the job on an edge worker"),
    r"\bar x_j": ("xc", "chunks in the cloud while the PS is elsewhere"),
    r"\beta_{jz}(t)": ("s", "chunks that start in the cloud in slot t, z = zeta"),
    r"\ell_{jz}": ("edge_slots", "slots of a chunk in the cloud, z = zeta"),
    r"\sigma_{js}(t)": ("S", "chunks that the server stores in slot t"),
    "a_j(t)": ("a", "1 if the job needs a PS"),
    r"\bar a_j(t)": ("a_cloud", "1 if it needs one in the cloud"),
    r"P_\kappa": ("ps", "PSs of a type, in the cloud or not"),
}  # fmt: skip
EACH_JOB, EACH_SLOT = (rf"\quad \forall j \in [J]{more}" for more in ("", r", t \in [T]"))
AT_EDGE = r"\sum_{w \in \mathcal{W}_j} y_{jw}(t)"
IN_CLOUD = r"\sum_{z \in \{0, 1\}} \sum_{t - \ell_{jz} < t' \le t} \beta_{jz}(t')"
EQUATIONS = {
    name: printed.EQUATIONS[name] for name in ("objective", "eq_2d", "eq_2j_order")
} | {
    "eq_2b": r"\sum_{t \in [T]} y_{jw}(t) = \ell_j x_{jw},"
    rf" {EACH_JOB}, w \in \mathcal{{W}}_j",
    "eq_2b_cloud": r"\sum_{t \in [T]} \beta_{jz}(t) = z D_j \zeta_j + (1 - z) \bar x_j,"
    rf" {EACH_JOB}, z \in \{{0, 1\}}",
    "eq_2c": r"\sum_{w \in \mathcal{W}_j} x_{jw} + \bar x_j + D_j \zeta_j = D_j,"
    rf" {EACH_JOB}",
    "eq_2d_cloud": rf"\sum_{{j \in \kappa}} \Bigl( {IN_CLOUD} \Bigr)"
    rf" \le \bar W_\kappa, {printed.EACH_TYPE}",
    "eq_2e": rf"{AT_EDGE} + {IN_CLOUD} \le D_j a_j(t), {EACH_SLOT}",
    "eq_2e_cloud": rf"\bar a_j(t) \ge a_j(t) + \zeta_j - 1, {EACH_SLOT}",
    "eq_2f": rf"\sum_{{j \in \kappa}} a_j(t) \le P_\kappa, {printed.EACH_TYPE}",
    "eq_2f_cloud": rf"\sum_{{j \in \kappa}} \bar a_j(t) \le \bar P_\kappa, {printed.EACH_TYPE}",
    "eq_2j": rf"y_{{jw}}(t) \le c_j(t), {EACH_SLOT}, w \in \mathcal{{W}}_j",
    "eq_2j_start": r"\beta_{jz}(t) \le D_j c_j(t + \ell_{jz} - 1),"
    rf" {EACH_SLOT}, z \in \{{0, 1\}}",
    "cut_mean_busy_time": r"D_j \sum_{t \ge r_j} c_j(t) \ge \sum_{t, w}"
    r" \Bigl( \tfrac{t + 1/2 - r_j}{\ell_j} + \tfrac{1}{2} \Bigr) y_{jw}(t)"
    rf" + \sum_{{z \in \{{0, 1\}}}} \sum_t (t + \ell_{{jz}} - r_j) \beta_{{jz}}(t), {EACH_JOB}",
    "eq_7a": r"\sigma_{js}(t) \ge \sum_{w \in \mathcal{W}_j \cap s} x_{jw}"
    rf" - D_j (1 - c_j(t)), {EACH_SLOT}, s \in [S]",
    "eq_7b": r"\sum_{j \in [J]} u_j \sigma_{js}(t) \le U_s, \quad \forall s \in [S], t \in [T]",
}  # fmt: skip


Running = Mapping[tuple[int, int], list[Expr]]
"""What counts a job's workers in the cloud, by (job, slot)."""
Parts = tuple[Running, Mapping[int, Expr], Mapping[tuple[int, int], Expr]]
"""What runs in the cloud, what that adds to the mean over a job's chunks of "mean busy time + p /
2", and the chunks that a server ever stores, by (job, server)."""


def no_migration_program(f: EdgecloudSets, relax: bool = False) -> Model:
    """Problem (2) of the open jobs, without migration."""
    m = pyo.ConcreteModel("edgecloud_no_migration")
    add_variables(m, f, relax)
    cloud, mean_end, stored = place_chunks(m, f, relax)
    add_capacities(m, f, cloud)
    add_completion(m, f, mean_end)
    add_parameter_servers(m, f, cloud, relax)
    add_storage(m, f, stored)
    set_equations(m, EQUATIONS, NOTATION)
    return m


def place_chunks(m: Model, f: EdgecloudSets, relax: bool) -> Parts:
    """Every chunk on one worker."""
    # a job is at the edge as well (z = 0) or wholly in the cloud (z = 1)
    length = {(j, z): (f.edge_slots, f.cloud_slots)[z][j] for j in f.jobs for z in (0, 1)}
    begun = {j: f.begun_in_cloud(j) for j in f.jobs}
    m.x = pyo.Var(
        list(f.slots), domain=integer_domain(relax),
        bounds=lambda _, j, w: (len(f.done[j].get(w, ())), f.chunks[j]),
        doc="(2c) chunks on an edge worker, at least those that have started there",
    )  # fmt: skip
    m.xc = pyo.Var(
        f.jobs, domain=integer_domain(relax),
        bounds=lambda _, j: (0, f.chunks[j] if f.has_cloud[j] else 0),
        doc="(2c) chunks in the cloud while the PS is elsewhere",
    )  # fmt: skip
    m.s = pyo.Var(
        [(j, z, t) for (j, z), work in length.items() for t in f.starts(j, work)],
        domain=integer_domain(relax), doc="(2) chunks that start in the cloud",
    )  # fmt: skip

    @m.Constraint(f.jobs, doc="(2c) every chunk has one home")
    def eq_2c(m: Model, j: int) -> Expr:
        at_edge = total(m.x[j, w] for w in f.places[j])
        return at_edge + m.xc[j] + f.chunks[j] * m.zeta[j] == f.chunks[j]

    @m.Constraint(list(f.slots), doc="(2b) on it, a chunk is trained for all epochs")
    def eq_2b(m: Model, j: int, w: int) -> Expr:
        trained = sum(f.done[j].get(w, ())) + total(m.y[j, w, t] for t in f.slots[j, w])
        return trained == f.edge_slots[j] * m.x[j, w]

    @m.Constraint([j for j in f.jobs if begun[j]], doc="(ours) what has begun in the cloud stays")
    def no_migration(m: Model, j: int) -> Expr:
        return m.xc[j] + f.chunks[j] * m.zeta[j] >= len(begun[j])

    @m.Constraint(
        [key for key in length if f.has_cloud[key[0]]], doc="(2b) chunks there start once"
    )
    def eq_2b_cloud(m: Model, j: int, z: int) -> Expr:
        started = len(begun[j])
        fresh = total(m.s[j, z, t] for t in f.starts(j, length[j, z]))
        if z:
            return fresh == (f.chunks[j] - started) * m.zeta[j]
        return fresh == m.xc[j] - (started * (1 - m.zeta[j]) if started else 0)

    # Nothing is preempted in the cloud: a start fixes the end.
    def until(m: Model, j: int, share: Expr, end: int) -> Expr:
        return pyo.Constraint.Skip if end <= f.known[j] else share <= unfinished(m, f, j, end)

    going_on = {(j, z, d) for j, z in length for d in begun[j] if d < length[j, z]}

    @m.Constraint(sorted(going_on), doc="(2j) unfinished until what runs in the cloud has ended")
    def eq_2j_running(m: Model, j: int, z: int, done: int) -> Expr:
        end = f.past.now - done - 1 + length[j, z]
        return until(m, j, m.zeta[j] if z else 1 - m.zeta[j], end)

    @m.Constraint(list(m.s), doc="(2j) unfinished until what starts in the cloud has ended")
    def eq_2j_start(m: Model, j: int, z: int, t: int) -> Expr:
        return until(m, j, m.s[j, z, t] / f.chunks[j], t + length[j, z] - 1)

    cloud: dict[tuple[int, int], list[Expr]] = defaultdict(list)
    for j, z, t in m.s:
        for slot in range(t, t + length[j, z]):
            cloud[j, slot].append(m.s[j, z, t])
    for (j, z), done in ((key, done) for key in length for done in begun[key[0]]):
        for slot in range(f.past.now, f.past.now + length[j, z] - done):
            cloud[j, slot].append(m.zeta[j] if z else 1 - m.zeta[j])
    mean_end = {  # of the job's chunks in the cloud
        j: total(
            (t + length[j, z] - f.arrival[j]) / f.chunks[j] * m.s[j, z, t]
            for z in (0, 1) for t in f.starts(j, length[j, z])
        )
        for j in f.jobs
    }  # fmt: skip
    stored = {
        (j, s): total(m.x[j, w] for w in f.places[j] if f.server[w] == s)
        for j, s in f.limited_storage
    }
    return cloud, mean_end, stored


def unfinished(m: Model, f: EdgecloudSets, j: int, t: int) -> Expr:
    """C[j, t]: 1 where that is known, 0 behind the last slot."""
    return 1.0 if t <= f.known[j] else m.C[j, t] if t <= f.last[j] else 0.0


def job_time(m: Model, f: EdgecloudSets, j: int) -> Expr:
    """Completion - arrival + 1."""
    later = total(m.C[j, t] for t in range(f.known[j] + 1, f.last[j] + 1))
    return f.known[j] - f.arrival[j] + 1 + later


def add_variables(m: Model, f: EdgecloudSets, relax: bool) -> None:
    """What runs at the edge, what is unfinished and what is wholly in the cloud."""
    m.y = pyo.Var(f.cells, domain=binary_domain(relax), doc="(2) whether a worker trains the job")
    m.zeta = pyo.Var(
        f.jobs, domain=binary_domain(relax), doc="(2g) the whole job, with its PS, is in the cloud"
    )
    ends = [(j, t) for j in f.jobs for t in range(f.known[j] + 1, f.last[j] + 1)]
    m.C = pyo.Var(ends, domain=binary_domain(relax), doc="(2j) the job is unfinished in this slot")
    for j in f.jobs:
        no_ps = f.instance.cloud_ps(f.instance.jobs[j].ps_type) == 0
        if no_ps or not f.has_cloud[j] or j in f.past.on_edge:
            m.zeta[j].fix(0)


def add_capacities(m: Model, f: EdgecloudSets, cloud: Running) -> None:
    """(2d), at the edge and for what runs in a limited cloud."""
    at = grouped(((w, t), works) for (_, w, t), works in m.y.items())
    in_cloud = grouped(
        ((f.instance.jobs[j].worker_type, t), part)
        for (j, t), parts in cloud.items() for part in parts
    )  # fmt: skip
    limited = [key for key in in_cloud if f.instance.cloud_workers(key[0]) is not None]
    locked = Counter(
        (f.instance.jobs[run.job].worker_type, t)
        for run in f.past.locked
        if run.place == len(f.server)
        for t in range(run.first, run.last + 1)
    )

    @m.Constraint(list(at), doc="(2d) a worker trains one job at a time")
    def eq_2d(m: Model, w: int, t: int) -> Expr:
        return total(at[w, t]) <= 1

    @m.Constraint(limited, doc="(2d) the cloud's workers of a type")
    def eq_2d_cloud(m: Model, kind: str, t: int) -> Expr:
        return total(in_cloud[kind, t]) <= (f.instance.cloud_workers(kind) or 0) - locked[kind, t]


def add_completion(m: Model, f: EdgecloudSets, cloud_time: Mapping[int, Expr]) -> None:
    """(2j), the objective (2), and what integrality implies.

    With rate at most 1 / p a slot, completion >= mean busy time + p / 2.
    """

    @m.Constraint(list(m.y), doc="(2j) a job that runs is unfinished")
    def eq_2j(m: Model, j: int, w: int, t: int) -> Expr:
        return pyo.Constraint.Skip if t <= f.known[j] else m.y[j, w, t] <= m.C[j, t]

    @m.Constraint(list(m.C), doc="(2j) what is unfinished was so before")
    def eq_2j_order(m: Model, j: int, t: int) -> Expr:
        return m.C[j, t] >= m.C[j, t + 1] if t < f.last[j] else pyo.Constraint.Skip

    @m.Constraint(f.jobs, doc="(ours) a job takes the mean busy time and half a chunk")
    def cut_mean_busy_time(m: Model, j: int) -> Expr:
        if f.done[j]:
            return pyo.Constraint.Skip
        at_edge = total(
            share(f, j, t, f.edge_slots[j]) * m.y[j, w, t]
            for w in f.places[j] for t in f.slots[j, w]
        )  # fmt: skip
        return job_time(m, f, j) >= at_edge + cloud_time[j]

    ends = f.past.locked_ends()
    decided = sum(end - int(f.instance.arrivals[j]) + 1 for j, end in ends.items())
    m.objective = pyo.Objective(
        expr=total(job_time(m, f, j) for j in f.jobs) + float(decided),
        doc="(2) total completion time of the jobs",
    )


def share(f: EdgecloudSets, j: int, t: int, work: int) -> float:
    """What a worker's slot adds to the mean of "mean busy time + p / 2" over the job's chunks."""
    return ((t + 0.5 - f.arrival[j]) / work + 0.5) / f.chunks[j]


def add_parameter_servers(m: Model, f: EdgecloudSets, cloud: Running, relax: bool) -> None:
    """Enough PSs for all running jobs, where the cloud's are finite (2e), (2f).

    A placement of PSs exists exactly when in each slot the jobs with zeta = 1 find a PS in the
    cloud and all running jobs together a PS somewhere, because (2) lets a PS change between slots.
    Those that locked jobs hold stay where they are.
    """
    instance = f.instance
    kinds = {j: instance.jobs[j].ps_type for j in f.jobs}
    in_cloud = {kind: instance.cloud_ps(kind) for kind in kinds.values()}
    runs = grouped(((j, t), works) for (j, _, t), works in m.y.items())
    for key, parts in cloud.items():
        runs[key] += parts
    runs = {key: parts for key, parts in runs.items() if in_cloud[kinds[key[0]]] is not None}
    if not runs:
        return
    m.a = pyo.Var(list(runs), domain=binary_domain(relax), doc="(2e) the job needs a PS")
    m.a_cloud = pyo.Var(
        list(runs), domain=binary_domain(relax), doc="(2e) it needs one in the cloud"
    )
    at_edge = Counter(kind for server in instance.servers for kind in server.ps)
    by_type = grouped(((kinds[j], t), j) for j, t in runs)
    held = Counter(
        (instance.jobs[j].ps_type, server == len(instance.servers), t)
        for j, _, server, first, last in f.past.holds
        for t in range(first, last + 1)
    )

    @m.Constraint(list(runs), doc="(2e) a running job has a PS")
    def eq_2e(m: Model, j: int, t: int) -> Expr:
        return total(runs[j, t]) <= f.chunks[j] * m.a[j, t]

    @m.Constraint(list(runs), doc="(2e) where everything is in the cloud, it is there")
    def eq_2e_cloud(m: Model, j: int, t: int) -> Expr:
        return m.a_cloud[j, t] >= m.a[j, t] + m.zeta[j] - 1

    @m.Constraint(list(by_type), doc="(2f) no more PSs than there are")
    def eq_2f(m: Model, kind: str, t: int) -> Expr:
        left = (in_cloud[kind] or 0) + at_edge[kind] - held[kind, False, t] - held[kind, True, t]
        return total(m.a[j, t] for j in by_type[kind, t]) <= left

    @m.Constraint(list(by_type), doc="(2f) no more in the cloud than there are")
    def eq_2f_cloud(m: Model, kind: str, t: int) -> Expr:
        left = (in_cloud[kind] or 0) - held[kind, True, t]
        return total(m.a_cloud[j, t] for j in by_type[kind, t]) <= left


def add_storage(m: Model, f: EdgecloudSets, here: Mapping[tuple[int, int], Expr]) -> None:
    """What a server stores fits (7b); chunks are stored from arrival to completion (7a), (7c).

    A chunk that is placed later than its job arrived needs its room from the arrival on, too.
    """
    if not here:
        return
    room = {s: exactly(float(f.instance.storage_gb[s])) for _, s in here}
    size = {j: exactly(float(f.instance.chunk_gb[j])) for j, _ in here}
    keys = [(j, s, t) for j, s in here for t in range(f.arrival[j], f.last[j] + 1)]
    by_server = grouped(((s, t), j) for j, s, t in keys)
    locked: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for j, end in f.past.locked_ends().items():
        for s in (s for i, s in f.stored if i == j):
            for t in range(int(f.instance.arrivals[j]), end + 1):
                locked[s, t] += f.stored[j, s] * exactly(float(f.instance.chunk_gb[j]))
    m.S = pyo.Var(
        keys, bounds=lambda _, j, s, t: (0, min(f.chunks[j], room[s] // size[j])),
        doc="(7) chunks stored on a server",
    )  # fmt: skip

    @m.Constraint(keys, doc="(7a), (7c) chunks are stored from arrival to completion")
    def eq_7a(m: Model, j: int, s: int, t: int) -> Expr:
        return m.S[j, s, t] >= here[j, s] - f.chunks[j] * (1 - unfinished(m, f, j, t))

    @m.Constraint(list(by_server), doc="(7b) what a server stores fits")
    def eq_7b(m: Model, s: int, t: int) -> Expr:
        sizes, most = in_steps({j: size[j] for j in by_server[s, t]}, room[s] - locked[s, t])
        return total(sizes[j] * m.S[j, s, t] for j in sizes) <= most
