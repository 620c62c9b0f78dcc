"""Problem (2) and its Ring-AllReduce form (15) as printed, one constraint component a number.

What they share with astraea's (3) stands in `windows/printed.py`; beside it

====================  ==========================================================================
``x[j, t]``           job j starts in slot t                   ``d[j]``  its duration
``is_m, is_p``        which types are used: the sets of (2b), (2c) have one element
``end[j, t]``         1 iff t = start + d, so that job j runs in slot t iff starts - ends up to t
``run_y, run_s``      y and s in the slots in which the job runs, for the product in (2h)/(15b)
====================  ==========================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import durations
from hindsched.instances.modes import units
from hindsched.models.declared import Symbol
from hindsched.models.windows.block import Expr
from hindsched.models.windows.printed import (
    Paper,
    PrintedSets,
    add_hosting,
    add_pace,
    add_standing,
    add_variables,
    numbered,
    printed_symbols,
    workers,
)
from hindsched.solutions.capacity_timeline import Room
from hindsched.solutions.window_row import WindowRow

PS, RING = Paper("s", "q", "2k", "2i", "2d", "2f"), Paper("s", "q", "2k", "2i", "15a", "2f")
WORDS = ("worker type", "PS type")
PRINTED_SYMBOLS = {
    **printed_symbols(PS, WORDS, "", {}),
    **printed_symbols(RING, WORDS, "", {}),
    **dict.fromkeys(["x", "end"], Symbol("job, slot", "jobs")),
    "d": Symbol("job", "slots"),
    "is_m": Symbol("job, worker type", "jobs"),
    "is_p": Symbol("job, PS type", "jobs"),
    "run_y": Symbol("job, server, worker type, slot", "workers"),
    "run_s": Symbol("job, server, PS type, slot", "PSs"),
    **dict.fromkeys(
        ["eq_2a", "eq_2b_one", "eq_2b_some", "eq_2c_one", "eq_2e", "eq_2f", "eq_2f_count",
         "eq_2g", "eq_2h_end", "eq_2h_last", "eq_15b_end", "eq_15b_last"],
        Symbol("job"),
    ),
    **dict.fromkeys(["eq_2b"], Symbol("job, server, worker type")),
    **dict.fromkeys(["eq_2c"], Symbol("job, server, PS type")),
    "eq_2f_m": Symbol("job, worker type"),
    "eq_2f_p": Symbol("job, PS type"),
    "eq_2h_y": Symbol("job, server, worker type, slot"),
    "eq_15b_y": Symbol("job, server, worker type, slot"),
    "eq_2h_s": Symbol("job, server, PS type, slot"),
    "eq_2j": Symbol("job, slot"),
}  # fmt: skip


def paper_of(instance: BatchschedInstance) -> Paper:
    """Numbers of the instance's architecture."""
    return PS if instance.has_ps else RING


def printed_sets(instance: BatchschedInstance, jobs: list[int], slots: int) -> PrintedSets:
    """The sets of the printed program."""

    def chunks(_: BatchschedInstance, job: BatchschedJob) -> int:
        return job.chunks

    room = units(instance.server_capacity, instance.worker_demand)
    none = np.zeros((len(room), 0), dtype=np.int64)
    ps_room = units(instance.server_capacity, instance.ps_demand) if instance.has_ps else none
    return PrintedSets.of(instance, jobs, slots, room, ps_room, durations, chunks, by_slot=False)


def add_printed(
    model: Any,
    instance: BatchschedInstance,
    sets: PrintedSets,
    now: int,
    free: Room[Floats],
    relax: bool,
) -> Expr:
    """Fill a model with the printed program but for its objective, whose open part is returned.

    Parameters
    ----------
    model : ConcreteModel
        An empty model.
    instance : BatchschedInstance
        The instance.
    sets : PrintedSets
        Index sets.
    now : int
        First slot still open.
    free : Room
        What fixed rows leave of the capacities.
    relax : bool
        The linear relaxation.
    """
    paper = paper_of(instance)
    add_variables(model, sets, paper, relax)
    _add_own_variables(model, sets, relax)
    _add_starts_and_counts(model, instance, sets, now)
    _add_worker_types(model, sets)
    if instance.has_ps:
        _add_ps_types(model, sets)
        add_hosting(model, sets, paper)
    add_standing(model, sets, paper, scheduled=lambda _: 1)
    add_pace(model, sets, paper, scheduled=lambda _: 1)
    _add_duration(model, sets)
    _add_running(model, sets, "2h" if instance.has_ps else "15b")
    _add_capacity(model, instance, sets, free)
    return pyo.quicksum(
        float(instance.jobs[j].weight)
        * (pyo.quicksum(t * model.x[j, t] for t in sets.T) + model.d[j])
        for j in sets.jobs
    )


def _add_own_variables(model: Any, sets: PrintedSets, relax: bool) -> None:
    jobs, H, M, P, T = sets.jobs, sets.H, sets.M, sets.P, sets.T
    binary = pyo.UnitInterval if relax else pyo.Binary
    whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
    positive = pyo.NonNegativeReals
    model.x = pyo.Var(jobs, T, domain=binary, doc="(2a) the job starts in this slot")
    model.end = pyo.Var(jobs, _ends(sets), domain=binary, doc="(2h) the job has just ended")
    model.d = pyo.Var(jobs, domain=whole, bounds=(1, len(T)), doc="(2f) duration")
    model.is_m = pyo.Var(jobs, M, domain=binary, doc="(2b) the job's worker type")
    model.run_y = pyo.Var(jobs, H, M, T, domain=positive, doc="(2h) workers that run in a slot")
    if P:
        model.is_p = pyo.Var(jobs, P, domain=binary, doc="(2c) the job's PS type")
        model.run_s = pyo.Var(jobs, H, P, T, domain=positive, doc="(2h) PSs that run in a slot")


def _ends(sets: PrintedSets) -> range:
    return range(2, len(sets.T) + 2)


def _add_starts_and_counts(
    model: Any, instance: BatchschedInstance, sets: PrintedSets, now: int
) -> None:
    """(2a), (2g), (2j)."""
    early = [(j, t) for j in sets.jobs for t in sets.T if t < max(instance.jobs[j].arrival, now)]

    @model.Constraint(sets.jobs, doc="(2a) every job starts once")
    def eq_2a(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.x[j, t] for t in sets.T) == 1

    @model.Constraint(sets.jobs, doc="(2g) no more workers than chunks")
    def eq_2g(m: Any, j: int) -> Expr:
        return workers(m, sets, j) <= sets.chunks[j]

    @model.Constraint(early, doc="(2j) no start before the arrival")
    def eq_2j(m: Any, j: int, t: int) -> Expr:
        return m.x[j, t] == 0


def _add_worker_types(model: Any, sets: PrintedSets) -> None:
    """(2b): one worker type with a worker, which is that of the pace (2f)."""
    jobs, H, M = sets.jobs, sets.H, sets.M

    @model.Constraint(jobs, doc="(2b) one worker type")
    def eq_2b_one(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.is_m[j, k] for k in M) == 1

    @model.Constraint(jobs, doc="(2b) at least one worker")
    def eq_2b_some(m: Any, j: int) -> Expr:
        return workers(m, sets, j) >= 1

    @model.Constraint(jobs, H, M, doc="(2b) workers of the job's type only")
    def eq_2b(m: Any, j: int, h: int, k: int) -> Expr:
        return m.y[j, h, k] <= sets.most_y[j, h, k] * m.is_m[j, k]

    @model.Constraint(jobs, M, doc="(2f) the pace is that of the worker type")
    def eq_2f_m(m: Any, j: int, k: int) -> Expr:
        return pyo.quicksum(m.pace[pace] for pace in sets.paces(j, m=k)) == m.is_m[j, k]


def _add_ps_types(model: Any, sets: PrintedSets) -> None:
    """(2c), (2e): one PS type with a PS, which is that of the pace (2f)."""
    jobs, H, P = sets.jobs, sets.H, sets.P

    @model.Constraint(jobs, doc="(2c) one PS type")
    def eq_2c_one(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.is_p[j, p] for p in P) == 1

    @model.Constraint(jobs, H, P, doc="(2c) PSs of the job's type only")
    def eq_2c(m: Any, j: int, h: int, p: int) -> Expr:
        return m.s[j, h, p] <= sets.most_ps[j, h, p] * m.is_p[j, p]

    @model.Constraint(jobs, doc="(2e) at least one PS")
    def eq_2e(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.s[j, h, p] for h in H for p in P) >= 1

    @model.Constraint(jobs, P, doc="(2f) the pace is that of the PS type")
    def eq_2f_p(m: Any, j: int, p: int) -> Expr:
        return pyo.quicksum(m.pace[pace] for pace in sets.paces(j, p=p)) == m.is_p[j, p]


def _add_duration(model: Any, sets: PrintedSets) -> None:
    """(2f): the selected pace fixes rho; d N rho >= E D K for integers is d >= its ceiling."""

    @model.Constraint(sets.jobs, doc="(2f) the pace is that of the number of workers")
    def eq_2f_count(m: Any, j: int) -> Expr:
        return pyo.quicksum(p[4] * m.pace[p] for p in sets.paces(j)) == workers(m, sets, j)

    @model.Constraint(sets.jobs, doc="(2f) the job runs as long as its pace asks for")
    def eq_2f(m: Any, j: int) -> Expr:
        return m.d[j] >= pyo.quicksum(sets.length[p] * m.pace[p] for p in sets.paces(j))


def _add_running(model: Any, sets: PrintedSets, number: str) -> None:
    """The product in (2h)/(15b): the job runs in t iff it has started and not ended by then."""
    jobs, H, M, P, T = sets.jobs, sets.H, sets.M, sets.P, sets.T

    def runs(m: Any, j: int, t: int) -> Expr:
        begun = pyo.quicksum(m.x[j, u] for u in range(1, t + 1))
        return begun - pyo.quicksum(m.end[j, u] for u in range(2, t + 1))

    def one_end(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.end[j, t] for t in _ends(sets)) == 1

    def last(m: Any, j: int) -> Expr:
        begin = pyo.quicksum(t * m.x[j, t] for t in T)
        return pyo.quicksum(t * m.end[j, t] for t in _ends(sets)) == begin + m.d[j]

    def workers_run(m: Any, j: int, h: int, k: int, t: int) -> Expr:
        return m.run_y[j, h, k, t] >= m.y[j, h, k] - sets.most_y[j, h, k] * (1 - runs(m, j, t))

    def ps_run(m: Any, j: int, h: int, p: int, t: int) -> Expr:
        return m.run_s[j, h, p, t] >= m.s[j, h, p] - sets.most_ps[j, h, p] * (1 - runs(m, j, t))

    numbered(model, number, "_end", [jobs], one_end, "every job ends once")
    numbered(model, number, "_last", [jobs], last, "it ends its duration after the start")
    numbered(model, number, "_y", [jobs, H, M, T], workers_run, "workers of a running job")
    if P:
        numbered(model, number, "_s", [jobs, H, P, T], ps_run, "PSs of a running job")


def _add_capacity(
    model: Any, instance: BatchschedInstance, sets: PrintedSets, free: Room[Floats]
) -> None:
    """(2h)/(15b): what runs on a server in a slot."""
    worker, ps = instance.worker_demand.tolist(), instance.ps_demand.tolist()
    resources = range(len(instance.resources))
    needed = [
        r for r in resources if any(demand[r] for demand in (*worker, *(ps if sets.P else ())))
    ]

    def used(m: Any, h: int, r: int, t: int) -> Expr:
        of_workers = [
            worker[k][r] * m.run_y[j, h, k, t] for j in sets.jobs for k in sets.M if worker[k][r]
        ]
        of_ps = [ps[p][r] * m.run_s[j, h, p, t] for j in sets.jobs for p in sets.P if ps[p][r]]
        return pyo.quicksum(of_workers + of_ps) <= float(free.at(t)[h, r])

    index = [sets.H, needed, sets.T if sets.jobs else []]
    numbered(
        model, "2h" if instance.has_ps else "15b", "", index, used, "what runs fits on its server"
    )


def read_span(model: Any, sets: PrintedSets, j: int) -> tuple[int, int]:
    """First and last slot of a job at the variables' values."""
    start = round(sum(t * (model.x[j, t].value or 0.0) for t in sets.T))
    return start, start + round(model.d[j].value) - 1


def write_own(model: Any, sets: PrintedSets, j: int, row: WindowRow) -> None:
    """Set the variables of a job that only this program has."""
    model.x[j, row.first].value = 1
    model.d[j].value = row.slots
    model.end[j, row.last + 1].value = 1
    model.is_m[j, row.worker_type].value = 1
    if sets.P:
        model.is_p[j, row.ps_type].value = 1
    for h, t in ((h, t) for h in sets.H for t in range(row.first, row.last + 1)):
        model.run_y[j, h, row.worker_type, t].value = int(row.workers[h])
        if sets.P:
            model.run_s[j, h, row.ps_type, t].value = int(row.ps[h])
