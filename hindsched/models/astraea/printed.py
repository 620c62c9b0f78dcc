"""Problem (3) of astraea as printed, one constraint component a number, linearised exactly.

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

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import durations, most_workers
from hindsched.solutions.astraea.solution import AstraeaRow, AstraeaSolution

Array = NDArray[np.float64]
NUMBERS = ("3a", "3b", "3c", "3d", "3e", "3f", "3g", "3h", "3i", "3j", "3k", "3l", "3m", "3n")


def build_literal(
    model: pyo.ConcreteModel,
    instance: AstraeaInstance,
    jobs: list[int],
    now: int,
    free: Array,
    must: bool,
    relax: bool,
    settled: float,
) -> None:
    """Fill `model` with the printed program.

    Parameters
    ----------
    model : ConcreteModel
        With ``instance`` and ``slots``.
    instance : AstraeaInstance
        The instance.
    jobs : list of int
        Jobs that are still open.
    now : int
        First slot still open.
    free : ndarray, shape (slots, S, W + P)
        Workers and PSs that fixed rows leave.
    must : bool
        Whether every job must complete, as (3k) reads literally.
    relax : bool
        The linear relaxation.
    settled : float
        Revenue of fixed rows.
    """
    S, W, P = (range(n) for n in (*instance.worker_count.shape, len(instance.ps_types)))
    T = range(1, instance.horizon + 1)
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    most_y = {
        (j, s, w): min(instance.jobs[j].chunks, int(instance.worker_count[s, w]))
        for j in jobs for s in S for w in W
    }  # fmt: skip
    most_z = {(j, s, p): int(instance.ps_count[s, p]) for j in jobs for s in S for p in P}
    model.o = pyo.Var(jobs, domain=binary)
    model.y = pyo.Var(jobs, S, W, T, domain=whole, bounds=lambda _, *i: (0, most_y[i[:3]]))
    model.z = pyo.Var(jobs, S, P, T, domain=whole, bounds=lambda _, *i: (0, most_z[i[:3]]))
    model.zeta = pyo.Var(jobs, domain=binary)
    model.begin = pyo.Var(jobs, T, domain=binary)
    model.end = pyo.Var(jobs, T, domain=binary)
    model.run = pyo.Var(jobs, T, domain=binary)
    model.on = pyo.Var(jobs, S, domain=binary)
    model.hosts = pyo.Var(jobs, S, domain=binary)
    length = {j: durations(instance, instance.jobs[j]) for j in jobs}
    model.pace = pyo.Var(
        [(j, *index) for j in jobs for index in _paces(length[j], instance.horizon)],
        domain=binary,
    )
    model.eq_4a = pyo.ConstraintList()
    for number in NUMBERS:
        setattr(model, f"eq_{number}", pyo.ConstraintList())
    for j in jobs:
        if must:
            model.eq_4a.add(model.o[j] == 1)
        _window(model, instance, j, now)
        _placement(model, instance, j, most_y, most_z)
        _work(model, instance, j, length[j])
    _capacities(model, instance, jobs, free)
    revenue = [
        instance.revenue(instance.jobs[j], t) * model.end[j, t]
        for j in jobs for t in range(instance.jobs[j].arrival + 1, instance.horizon + 1)
    ]  # fmt: skip
    model.eq_3 = pyo.Objective(expr=settled + pyo.quicksum(revenue), sense=pyo.maximize)


def _paces(length: NDArray[np.int64], slots: int) -> list[tuple[int, int, int, int]]:
    """(worker type, PS type, zeta, N) that can end within the slots."""
    return [(w, p, q, n + 1) for w, p, q, n in np.argwhere(length <= slots).tolist()]


def _window(model: Any, instance: AstraeaInstance, j: int, now: int) -> None:
    """(3m), (3n), and run; nothing before the arrival (3l)."""
    T = range(1, instance.horizon + 1)
    model.eq_3n.add(pyo.quicksum(model.begin[j, t] for t in T) == model.o[j])
    model.eq_3m.add(pyo.quicksum(model.end[j, t] for t in T) == model.o[j])
    for t in T:
        begun = pyo.quicksum(model.begin[j, u] for u in range(1, t + 1))
        ended = pyo.quicksum(model.end[j, u] for u in range(1, t))
        model.eq_3m.add(model.run[j, t] == begun - ended)
        if t < max(instance.jobs[j].arrival + 1, now):
            model.eq_3l.add(model.begin[j, t] == 0)


def _placement(
    model: Any,
    instance: AstraeaInstance,
    j: int,
    most_y: Mapping[tuple[int, int, int], int],
    most_z: Mapping[tuple[int, int, int], int],
) -> None:
    """(3e)-(3j), (3l) of one job."""
    S, W, P = (range(n) for n in (*instance.worker_count.shape, len(instance.ps_types)))
    T = range(1, instance.horizon + 1)
    b_w, b_p = instance.worker_bandwidth, instance.ps_bandwidth
    chunks = instance.jobs[j].chunks
    y, z, run, on, hosts = model.y, model.z, model.run, model.on, model.hosts
    for t in T:
        model.eq_3e.add(pyo.quicksum(y[j, s, w, t] for s in S for w in W) <= chunks)
        model.eq_3g.add(pyo.quicksum(z[j, s, p, t] for s in S for p in P) >= run[j, t])
        for s in S:
            for w in W:
                model.eq_3l.add(y[j, s, w, t] <= most_y[j, s, w] * run[j, t])
                model.eq_3j.add(y[j, s, w, t] <= most_y[j, s, w] * on[j, s])
            for p in P:
                model.eq_3l.add(z[j, s, p, t] <= most_z[j, s, p] * run[j, t])
                model.eq_3j.add(z[j, s, p, t] <= most_z[j, s, p] * on[j, s])
                model.eq_3i.add(z[j, s, p, t] <= most_z[j, s, p] * hosts[j, s])
            sent = [float(b_w[w]) * y[j, h, w, t] for h in S if h != s for w in W]
            received = pyo.quicksum(float(b_p[p]) * z[j, s, p, t] for p in P)
            most = most_workers(instance, instance.jobs[j]) * float(b_w.max())
            model.eq_3i.add(pyo.quicksum(sent) <= received + most * (1 - hosts[j, s]))
            if t < instance.horizon:
                still = 2 - run[j, t] - run[j, t + 1]
                for w in W:
                    _equal(model.eq_3f, y[j, s, w, t], y[j, s, w, t + 1], most_y[j, s, w] * still)
                for p in P:
                    _equal(model.eq_3h, z[j, s, p, t], z[j, s, p, t + 1], most_z[j, s, p] * still)
    # (3j): zeta = 1 iff exactly one server holds anything.
    for s in S:
        held = [y[j, s, w, t] for w in W for t in T] + [z[j, s, p, t] for p in P for t in T]
        model.eq_3j.add(on[j, s] <= pyo.quicksum(held))
    used = pyo.quicksum(on[j, s] for s in S)
    model.eq_3j.add(used <= 1 + (len(S) - 1) * (1 - model.zeta[j]))
    model.eq_3j.add(used >= 2 * model.o[j] - model.zeta[j])
    model.eq_3j.add(model.zeta[j] <= model.o[j])


def _equal(rows: Any, one: Any, other: Any, slack: Any) -> None:
    rows.add(one - other <= slack)
    rows.add(other - one <= slack)


def _work(model: Any, instance: AstraeaInstance, j: int, length: NDArray[np.int64]) -> None:
    """(3k): one pace; its types, zeta and N are those of y and z; its duration passes."""
    S, W, P = (range(n) for n in (*instance.worker_count.shape, len(instance.ps_types)))
    T = range(1, instance.horizon + 1)
    chunks = most_workers(instance, instance.jobs[j])
    mine = _paces(length, instance.horizon)
    pace, run = model.pace, model.run
    model.eq_3k.add(pyo.quicksum(pace[(j, *i)] for i in mine) == model.o[j])
    model.eq_3k.add(pyo.quicksum(pace[(j, *i)] for i in mine if i[2] == 1) == model.zeta[j])
    least = pyo.quicksum(int(length[i[0], i[1], i[2], i[3] - 1]) * pace[(j, *i)] for i in mine)
    model.eq_3k.add(pyo.quicksum(run[j, t] for t in T) >= least)
    for t in T:
        for w in W:
            count = pyo.quicksum(i[3] * pace[(j, *i)] for i in mine if i[0] == w)
            there = pyo.quicksum(model.y[j, s, w, t] for s in S)
            model.eq_3k.add(there <= count)
            model.eq_3k.add(there >= count - chunks * (1 - run[j, t]))
        for p in P:
            total = int(instance.ps_count[:, p].sum())
            chosen = pyo.quicksum(pace[(j, *i)] for i in mine if i[1] == p)
            model.eq_3k.add(pyo.quicksum(model.z[j, s, p, t] for s in S) <= total * chosen)


def _capacities(model: Any, instance: AstraeaInstance, jobs: list[int], free: Array) -> None:
    """(3a)-(3d), with what fixed rows take off the right sides."""
    S, split = range(len(instance.servers)), len(instance.worker_types)
    model.capacity_rows = {}
    for r in range(free.shape[2]):
        if r < split:
            variable, k, shared, own = model.y, r, model.eq_3a, model.eq_3c
            quota = int(instance.worker_quota[:, k].sum())
            count = int(instance.worker_count[:, k].sum())
        else:
            variable, k, shared, own = model.z, r - split, model.eq_3b, model.eq_3d
            quota = int(instance.ps_quota[:, k].sum())
            count = int(instance.ps_count[:, k].sum())
        for t in range(1, instance.horizon + 1) if jobs else ():
            use = {s: [variable[j, s, k, t] for j in jobs] for s in S}
            everything = [item for items in use.values() for item in items]
            taken = count - float(free[t - 1, :, r].sum())
            # (3a), (3b): moving the others' use to the left, every tenant has the same row.
            shared.add(pyo.quicksum(everything) <= quota - taken)
            for s in S:
                row = own.add(pyo.quicksum(use[s]) <= float(free[t - 1, s, r]))
                model.capacity_rows[s, r, t] = row


def extract_literal(
    model: pyo.ConcreteModel, instance: AstraeaInstance, formulation: str | None
) -> AstraeaSolution:
    """Solution at the variables' values."""
    rows: dict[str, Any] = dict(model.fixed)
    S = range(len(instance.servers))
    for j in model.o:
        slots = [t for t in range(1, instance.horizon + 1) if (model.run[j, t].value or 0) > 0.5]
        if not slots:
            continue
        (w, p) = max(
            ((item.value or 0.0, index[1], index[2])
             for index, item in model.pace.items() if index[0] == j)
        )[1:]  # fmt: skip
        workers = np.array([round(model.y[j, s, w, slots[0]].value) for s in S])
        ps = np.array([round(model.z[j, s, p, slots[0]].value) for s in S])
        rows[instance.jobs[j].name] = (AstraeaRow(slots[0], slots[-1], w, p, workers, ps),)
    return AstraeaSolution(instance, rows, formulation)


def load_literal(model: pyo.ConcreteModel, solution: AstraeaSolution) -> None:
    """Set every variable from a feasible solution."""
    instance: AstraeaInstance = model.instance
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


def literal_prices(
    model: pyo.ConcreteModel, duals: Mapping[Any, float], workers: Array, ps: Array
) -> None:
    """Write duals of (3c) and (3d) into arrays of shapes (S, W, T) and (S, P, T)."""
    split = workers.shape[1]
    for (s, r, t), row in model.capacity_rows.items():
        price = max(0.0, duals.get(row, 0.0))
        if r < split:
            workers[s, r, t - 1] = price
        else:
            ps[s, r - split, t - 1] = price
