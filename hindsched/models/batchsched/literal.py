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
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.instances.batchsched.modes import durations
from hindsched.instances.modes import units
from hindsched.models.base import Commitments
from hindsched.solutions.batchsched.solution import BatchschedRow, BatchschedSolution, row_use

Array = NDArray[np.float64]
Rows = Mapping[str, tuple[BatchschedRow, ...]]


def build_literal(
    model: pyo.ConcreteModel,
    instance: BatchschedInstance,
    commitments: Commitments,
    fixed: Rows,
    slots: int,
    relax: bool,
) -> None:
    """Fill `model` with the printed program over slots 1 .. `slots`."""
    jobs = [j for j, job in enumerate(instance.jobs) if job.name not in fixed]
    H, M = range(len(instance.servers)), range(len(instance.worker_types))
    P = range(max(1, instance.num_ps_types))
    T = range(1, slots + 1)
    has_ps = instance.has_ps
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    chunks = {j: instance.jobs[j].chunks for j in jobs}
    length = {j: durations(instance, instance.jobs[j]) for j in jobs}
    room = units(instance.server_capacity, instance.worker_demand)
    ps_room = units(instance.server_capacity, instance.ps_demand) if has_ps else room[:, :0]
    most_y = {(j, h, m): min(chunks[j], int(room[h, m])) for j in jobs for h in H for m in M}
    most_s = {(j, h, p): int(ps_room[h, p]) for j in jobs for h in H for p in P} if has_ps else {}

    model.x = pyo.Var(jobs, T, domain=binary)
    model.end = pyo.Var(jobs, range(2, slots + 2), domain=binary)
    model.d = pyo.Var(jobs, domain=whole, bounds=(1, slots))
    model.y = pyo.Var(jobs, H, M, domain=whole, bounds=lambda _, *i: (0, most_y[i]))
    model.q = pyo.Var(jobs, domain=binary)
    model.is_m = pyo.Var(jobs, M, domain=binary)
    model.on = pyo.Var(jobs, H, domain=binary)
    paces = [
        (j, m, p, q, n)
        for j in jobs
        for m in M
        for p in P
        for q in (0, 1)
        for n in range(1, length[j].shape[3] + 1)
        if length[j][m, p, q, n - 1] <= slots
    ]
    model.pace = pyo.Var(paces, domain=binary)
    model.run_y = pyo.Var(jobs, H, M, T, domain=pyo.NonNegativeReals)
    if has_ps:
        model.s = pyo.Var(jobs, H, P, domain=whole, bounds=lambda _, *i: (0, most_s[i]))
        model.is_p = pyo.Var(jobs, P, domain=binary)
        model.holds_ps = pyo.Var(jobs, H, domain=binary)
        model.run_s = pyo.Var(jobs, H, P, T, domain=pyo.NonNegativeReals)

    names = ["2a", "2b", "2f", "2g", "2j"]
    names += ["2c", "2d", "2e", "2h", "2i"] if has_ps else ["15a", "15b"]
    for name in names:
        setattr(model, f"eq_{name}", pyo.ConstraintList())
    same_server = model.eq_2d if has_ps else model.eq_15a
    capacity = model.eq_2h if has_ps else model.eq_15b

    for j in jobs:
        job = instance.jobs[j]
        workers = pyo.quicksum(model.y[j, h, m] for h in H for m in M)
        model.eq_2a.add(pyo.quicksum(model.x[j, t] for t in T) == 1)
        for t in T:
            if t < max(job.arrival, commitments.now):
                model.eq_2j.add(model.x[j, t] == 0)
        # (2b), (2c): exactly one type, and only that one.
        model.eq_2b.add(pyo.quicksum(model.is_m[j, m] for m in M) == 1)
        model.eq_2b.add(workers >= 1)
        for h in H:
            for m in M:
                model.eq_2b.add(model.y[j, h, m] <= most_y[j, h, m] * model.is_m[j, m])
        if has_ps:
            model.eq_2c.add(pyo.quicksum(model.is_p[j, p] for p in P) == 1)
            model.eq_2e.add(pyo.quicksum(model.s[j, h, p] for h in H for p in P) >= 1)
            for h in H:
                for p in P:
                    model.eq_2c.add(model.s[j, h, p] <= most_s[j, h, p] * model.is_p[j, p])
        # (2d)/(15a): q = 1 iff one server holds everything.
        for h in H:
            here = pyo.quicksum(model.y[j, h, m] for m in M)
            if has_ps:
                here = here + pyo.quicksum(model.s[j, h, p] for p in P)
                for p in P:
                    same_server.add(model.s[j, h, p] <= most_s[j, h, p] * model.on[j, h])
            for m in M:
                same_server.add(model.y[j, h, m] <= most_y[j, h, m] * model.on[j, h])
            same_server.add(model.on[j, h] <= here)
        used = pyo.quicksum(model.on[j, h] for h in H)
        same_server.add(used <= 1 + (len(H) - 1) * (1 - model.q[j]))
        same_server.add(used >= 2 - model.q[j])
        # (2f): the selected pace fixes rho; d N rho >= E D K for integers is d >= its ceiling.
        mine = [index for index in paces if index[0] == j]
        pace = model.pace
        model.eq_2f.add(pyo.quicksum(pace[i] for i in mine) == 1)
        for m in M:
            model.eq_2f.add(pyo.quicksum(pace[i] for i in mine if i[1] == m) == model.is_m[j, m])
        if has_ps:
            for p in P:
                chosen = pyo.quicksum(pace[i] for i in mine if i[2] == p)
                model.eq_2f.add(chosen == model.is_p[j, p])
        model.eq_2f.add(pyo.quicksum(pace[i] for i in mine if i[3] == 1) == model.q[j])
        model.eq_2f.add(pyo.quicksum(i[4] * pace[i] for i in mine) == workers)
        least = pyo.quicksum(int(length[j][i[1], i[2], i[3], i[4] - 1]) * pace[i] for i in mine)
        model.eq_2f.add(model.d[j] >= least)
        model.eq_2g.add(workers <= chunks[j])
        if has_ps:
            _ps_bandwidth(model, instance, j, most_y, most_s)
        # (2h)/(15b): the job runs in t iff it has started and not ended by then.
        capacity.add(pyo.quicksum(model.end[j, t] for t in range(2, slots + 2)) == 1)
        begin = pyo.quicksum(t * model.x[j, t] for t in T)
        finish = pyo.quicksum(t * model.end[j, t] for t in range(2, slots + 2))
        capacity.add(finish == begin + model.d[j])
        for t in T:
            runs = pyo.quicksum(model.x[j, u] for u in range(1, t + 1)) - pyo.quicksum(
                model.end[j, u] for u in range(2, t + 1)
            )
            for h in H:
                for m in M:
                    most = most_y[j, h, m]
                    capacity.add(model.run_y[j, h, m, t] >= model.y[j, h, m] - most * (1 - runs))
                for p in P if has_ps else ():
                    most = most_s[j, h, p]
                    capacity.add(model.run_s[j, h, p, t] >= model.s[j, h, p] - most * (1 - runs))
    free = np.repeat(instance.server_capacity[None], slots, axis=0)
    for rows in fixed.values():
        for row in rows:
            free[row.first - 1 : row.last] -= row_use(instance, row)
    model.capacity_rows = {}
    for h in H:
        for r in range(len(instance.resources)):
            e, z = instance.worker_demand[:, r], instance.ps_demand[:, r]
            for t in T:
                load = [float(e[m]) * model.run_y[j, h, m, t] for j in jobs for m in M if e[m]]
                if has_ps:
                    load += [float(z[p]) * model.run_s[j, h, p, t] for j in jobs for p in P if z[p]]
                if load:
                    row = capacity.add(pyo.quicksum(load) <= float(free[t - 1, h, r]))
                    model.capacity_rows[h, r, t] = row
    cost = [
        float(job.weight) * (fixed[job.name][-1].last + 1)
        for job in instance.jobs
        if job.name in fixed
    ]
    for j in jobs:
        start = pyo.quicksum(t * model.x[j, t] for t in T)
        cost.append(float(instance.jobs[j].weight) * (start + model.d[j]))
    model.objective = pyo.Objective(expr=pyo.quicksum(cost), sense=pyo.minimize)


def _ps_bandwidth(
    model: Any,
    instance: BatchschedInstance,
    j: int,
    most_y: Mapping[tuple[int, int, int], int],
    most_s: Mapping[tuple[int, int, int], int],
) -> None:
    """(2i), for the servers that hold a PS."""
    H, M = range(len(instance.servers)), range(len(instance.worker_types))
    P = range(instance.num_ps_types)
    b, B = instance.worker_bandwidth, instance.ps_bandwidth
    most = instance.jobs[j].chunks * float(b.max())
    for h in H:
        for p in P:
            model.eq_2i.add(model.s[j, h, p] <= most_s[j, h, p] * model.holds_ps[j, h])
        sent = [float(b[m]) * model.y[j, k, m] for k in H if k != h for m in M]
        received = pyo.quicksum(float(B[p]) * model.s[j, h, p] for p in P)
        model.eq_2i.add(pyo.quicksum(sent) <= received + most * (1 - model.holds_ps[j, h]))


def extract_literal(model: pyo.ConcreteModel, instance: BatchschedInstance) -> BatchschedSolution:
    """Solution at the variables' values."""
    rows: dict[str, Any] = dict(model.fixed)
    servers = len(instance.servers)
    for j in model.d:
        start = round(sum(t * (model.x[j, t].value or 0.0) for t in range(1, model.slots + 1)))
        duration = round(model.d[j].value)
        m = int(np.argmax([item.value for item in model.is_m[j, :]]))
        workers = np.array([round(model.y[j, h, m].value) for h in range(servers)])
        ps, ps_type = np.zeros_like(workers), -1
        if instance.has_ps:
            ps_type = int(np.argmax([item.value for item in model.is_p[j, :]]))
            ps = np.array([round(model.s[j, h, ps_type].value) for h in range(servers)])
        rows[instance.jobs[j].name] = (
            BatchschedRow(start, start + duration - 1, m, ps_type, workers, ps),
        )
    return BatchschedSolution(instance, rows, "literal")


def load_literal(model: pyo.ConcreteModel, solution: BatchschedSolution) -> None:
    """Set every variable from a feasible solution."""
    instance: BatchschedInstance = model.instance
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    for j in model.d:
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


def literal_prices(model: pyo.ConcreteModel, duals: Mapping[Any, float], array: Array) -> Array:
    """Duals of the capacity rows, into an array of shape (H, R, slots)."""
    for (h, r, t), row in model.capacity_rows.items():
        array[h, r, t - 1] = max(0.0, -duals.get(row, 0.0))
    return array
