"""Problem (3) of astraea as printed, one rule a sentence, numbered, and linearised exactly.

What it shares with batchsched's (2) stands in `windows/printed.py`; beside it

======================  ========================================================================
``o[j]``                1 iff the job is scheduled (4a); 1 where every job must complete
``begin, end[j, t]``    1 iff t is t- (3n) or t+ (3m)
``run[j, t]``           1 iff t- <= t <= t+: begins up to t minus ends before t
======================  ========================================================================

Repair: (3f) and (3h) hold for t up to t+ - 1 only (as printed no job ends).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.astraea.modes import durations, most_workers
from hindsched.models.declared import Symbol
from hindsched.models.windows.block import Expr
from hindsched.models.windows.printed import (
    Paper,
    PrintedSets,
    add_hosting,
    add_pace,
    add_standing,
    add_variables,
    printed_symbols,
    workers,
)
from hindsched.solutions.capacity_timeline import Room
from hindsched.solutions.window_row import WindowRow

PAPER = Paper("z", "zeta", "3", "3i", "3j", "3k")
REVENUE = "revenue"
PER_WORKER, PER_PS = f"{REVENUE} a worker", f"{REVENUE} a PS"
PRINTED_SYMBOLS = {
    **printed_symbols(
        PAPER, ("worker type", "PS type"), ", slot", {"eq_3i": PER_WORKER, "eq_3i_z": PER_PS}
    ),
    "o": Symbol("job", "jobs"),
    **dict.fromkeys(["begin", "end", "run"], Symbol("job, slot", "jobs")),
    "eq_3a": Symbol("worker type, slot", PER_WORKER),
    "eq_3b": Symbol("PS type, slot", PER_PS),
    "eq_3e": Symbol("job, slot", PER_WORKER),
    "eq_3f": Symbol("job, server, worker type, slot, side", PER_WORKER),
    "eq_3g": Symbol("job, slot", PER_PS),
    "eq_3h": Symbol("job, server, PS type, slot, side", PER_PS),
    **dict.fromkeys(["eq_3j_o", "eq_3m", "eq_3n"], Symbol("job")),
    **dict.fromkeys(["eq_3k_y", "eq_3k_all"], Symbol("job, worker type, slot")),
    "eq_3k_z": Symbol("job, PS type, slot"),
    "eq_3l_y": Symbol("job, server, worker type, slot"),
    "eq_3l_z": Symbol("job, server, PS type, slot"),
    "eq_3m_run": Symbol("job, slot"),
    "eq_4a": Symbol("job | "),
}
"""Indices and units of the components that the form of modes does not have, or has otherwise."""


def printed_sets(instance: AstraeaInstance, jobs: list[int]) -> PrintedSets:
    """The sets of the printed program."""
    return PrintedSets.of(
        instance, jobs, instance.horizon, instance.worker_count, instance.ps_count, durations,
        most_workers, by_slot=True,
    )  # fmt: skip


def add_printed(
    model: Any,
    instance: AstraeaInstance,
    sets: PrintedSets,
    now: int,
    free: Room[Floats],
    must: bool,
    relax: bool,
) -> Expr:
    """Fill a model with the printed program but for its objective, whose open part is returned.

    Parameters
    ----------
    model : ConcreteModel
        An empty model.
    instance : AstraeaInstance
        The instance.
    sets : PrintedSets
        Index sets.
    now : int
        First slot still open.
    free : Room
        Workers and PSs that fixed rows leave.
    must : bool
        Whether every job must complete, as (3k) reads literally.
    relax : bool
        The linear relaxation.
    """
    binary = pyo.UnitInterval if relax else pyo.Binary
    model.o = pyo.Var(sets.jobs, domain=binary, doc="(4a) the job is scheduled")
    add_variables(model, sets, PAPER, relax)
    for letter, doc in (
        ("begin", "(3n) the job begins in this slot"),
        ("end", "(3m) the job ends in this slot"),
        ("run", "(3) the job runs in this slot"),
    ):
        model.add_component(letter, pyo.Var(sets.jobs, sets.T, domain=binary, doc=doc))
    _add_window(model, instance, sets, now, must)
    _add_counts(model, sets)
    add_hosting(model, sets, PAPER)
    add_standing(model, sets, PAPER, scheduled=lambda j: model.o[j])
    add_pace(model, sets, PAPER, scheduled=lambda j: model.o[j])
    _add_work(model, instance, sets)
    _add_capacities(model, instance, sets, free)
    return pyo.quicksum(
        instance.revenue(instance.jobs[j], t) * model.end[j, t]
        for j in sets.jobs
        for t in sets.T
        if t > instance.jobs[j].arrival
    )


def _add_window(
    model: Any, instance: AstraeaInstance, sets: PrintedSets, now: int, must: bool
) -> None:
    """(3m), (3n), and run; nothing before the arrival (3l); o (4a)."""
    jobs, T = sets.jobs, sets.T
    early = [(j, t) for j in jobs for t in T if t < max(instance.jobs[j].arrival + 1, now)]

    @model.Constraint(jobs if must else [], doc="(4a) every job is scheduled")
    def eq_4a(m: Any, j: int) -> Expr:
        return m.o[j] == 1

    @model.Constraint(jobs, doc="(3j) only a scheduled job stands anywhere")
    def eq_3j_o(m: Any, j: int) -> Expr:
        return m.zeta[j] <= m.o[j]

    @model.Constraint(jobs, doc="(3n) a scheduled job begins once")
    def eq_3n(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.begin[j, t] for t in T) == m.o[j]

    @model.Constraint(jobs, doc="(3m) a scheduled job ends once")
    def eq_3m(m: Any, j: int) -> Expr:
        return pyo.quicksum(m.end[j, t] for t in T) == m.o[j]

    @model.Constraint(jobs, T, doc="(3m) it runs from its begin to its end")
    def eq_3m_run(m: Any, j: int, t: int) -> Expr:
        begun = pyo.quicksum(m.begin[j, u] for u in range(1, t + 1))
        return m.run[j, t] == begun - pyo.quicksum(m.end[j, u] for u in range(1, t))

    @model.Constraint(early, doc="(3l) no begin before the arrival")
    def eq_3l(m: Any, j: int, t: int) -> Expr:
        return m.begin[j, t] == 0


def _add_counts(model: Any, sets: PrintedSets) -> None:
    """(3e)-(3h), (3l): how many workers and PSs run, unchanged from begin to end."""
    jobs, S, W, P, T = sets.jobs, sets.H, sets.M, sets.P, sets.T
    sides = (1, -1)

    @model.Constraint(jobs, T, doc="(3e) no more workers than chunks")
    def eq_3e(m: Any, j: int, t: int) -> Expr:
        return workers(m, sets, j, t) <= sets.chunks[j]

    @model.Constraint(jobs, T, doc="(3g) a running job has a PS")
    def eq_3g(m: Any, j: int, t: int) -> Expr:
        return pyo.quicksum(m.z[j, s, p, t] for s in S for p in P) >= m.run[j, t]

    @model.Constraint(jobs, S, W, T, doc="(3l) workers only while the job runs")
    def eq_3l_y(m: Any, j: int, s: int, w: int, t: int) -> Expr:
        return m.y[j, s, w, t] <= sets.most_y[j, s, w] * m.run[j, t]

    @model.Constraint(jobs, S, P, T, doc="(3l) PSs only while the job runs")
    def eq_3l_z(m: Any, j: int, s: int, p: int, t: int) -> Expr:
        return m.z[j, s, p, t] <= sets.most_ps[j, s, p] * m.run[j, t]

    def still(m: Any, j: int, t: int) -> Expr:
        return 2 - m.run[j, t] - m.run[j, t + 1]

    @model.Constraint(jobs, S, W, T[:-1], sides, doc="(3f) workers do not change on the way")
    def eq_3f(m: Any, j: int, s: int, w: int, t: int, side: int) -> Expr:
        change = m.y[j, s, w, t] - m.y[j, s, w, t + 1]
        return side * change <= sets.most_y[j, s, w] * still(m, j, t)

    @model.Constraint(jobs, S, P, T[:-1], sides, doc="(3h) PSs do not change on the way")
    def eq_3h(m: Any, j: int, s: int, p: int, t: int, side: int) -> Expr:
        change = m.z[j, s, p, t] - m.z[j, s, p, t + 1]
        return side * change <= sets.most_ps[j, s, p] * still(m, j, t)


def _add_work(model: Any, instance: AstraeaInstance, sets: PrintedSets) -> None:
    """(3k): the types and the number of the pace are those of y and z; its duration passes."""
    jobs, S, W, P, T = sets.jobs, sets.H, sets.M, sets.P, sets.T
    total_ps = instance.ps_count.sum(axis=0).tolist()

    @cache
    def count(j: int, w: int) -> Expr:
        return pyo.quicksum(pace[4] * model.pace[pace] for pace in sets.paces(j, m=w))

    @model.Constraint(jobs, doc="(3k) the job runs as long as its pace asks for")
    def eq_3k(m: Any, j: int) -> Expr:
        least = pyo.quicksum(sets.length[pace] * m.pace[pace] for pace in sets.paces(j))
        return pyo.quicksum(m.run[j, t] for t in T) >= least

    @model.Constraint(jobs, W, T, doc="(3k) no more workers than the pace has")
    def eq_3k_y(m: Any, j: int, w: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, s, w, t] for s in S) <= count(j, w)

    @model.Constraint(jobs, W, T, doc="(3k) all workers of the pace while the job runs")
    def eq_3k_all(m: Any, j: int, w: int, t: int) -> Expr:
        there = pyo.quicksum(m.y[j, s, w, t] for s in S)
        return there >= count(j, w) - sets.most_workers[j] * (1 - m.run[j, t])

    @model.Constraint(jobs, P, T, doc="(3k) PSs of the pace's type only")
    def eq_3k_z(m: Any, j: int, p: int, t: int) -> Expr:
        chosen = pyo.quicksum(m.pace[pace] for pace in sets.paces(j, p=p))
        return pyo.quicksum(m.z[j, s, p, t] for s in S) <= int(total_ps[p]) * chosen


def _add_capacities(
    model: Any, instance: AstraeaInstance, sets: PrintedSets, free: Room[Floats]
) -> None:
    """(3a)-(3d), with what fixed rows take off the right sides.

    In (3a), (3b) the others' use is moved to the left: every tenant then has the same row.
    """
    jobs, S, W, P = sets.jobs, sets.H, sets.M, sets.P
    T = sets.T if jobs else range(0)
    split = len(W)
    quota = [*instance.worker_quota.sum(axis=0), *instance.ps_quota.sum(axis=0)]

    def shared(t: int, kind: int) -> float:
        taken = (free.capacity[:, kind] - free.at(t)[:, kind]).sum()
        return float(quota[kind] - taken)

    @model.Constraint(W, T, doc="(3a) workers within the quotas of all tenants")
    def eq_3a(m: Any, w: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, s, w, t] for j in jobs for s in S) <= shared(t, w)

    @model.Constraint(P, T, doc="(3b) PSs within the quotas of all tenants")
    def eq_3b(m: Any, p: int, t: int) -> Expr:
        return pyo.quicksum(m.z[j, s, p, t] for j in jobs for s in S) <= shared(t, split + p)

    @model.Constraint(S, W, T, doc="(3c) workers of a server")
    def eq_3c(m: Any, s: int, w: int, t: int) -> Expr:
        return pyo.quicksum(m.y[j, s, w, t] for j in jobs) <= float(free.at(t)[s, w])

    @model.Constraint(S, P, T, doc="(3d) PSs of a server")
    def eq_3d(m: Any, s: int, p: int, t: int) -> Expr:
        return pyo.quicksum(m.z[j, s, p, t] for j in jobs) <= float(free.at(t)[s, split + p])


def read_span(model: Any, sets: PrintedSets, j: int) -> tuple[int, int] | None:
    """First and last slot of a job at the variables' values; None if it is not scheduled."""
    slots = [t for t in sets.T if (model.run[j, t].value or 0.0) > 0.5]
    return (slots[0], slots[-1]) if slots else None


def write_own(model: Any, sets: PrintedSets, j: int, row: WindowRow) -> None:
    """Set the variables of a job that only this program has."""
    model.o[j].value = model.begin[j, row.first].value = model.end[j, row.last].value = 1
    for t in range(row.first, row.last + 1):
        model.run[j, t].value = 1
