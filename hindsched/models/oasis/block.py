"""One oasis job as a Pyomo block, tighter than printed; the way from its variables to counts.

Exactly the work is done by the end slot, and no worker runs after it: dropping a worker keeps a
schedule feasible and never delays it. The work done and the share that has ended are accumulated
over the slots, so that there are as many rows as slots. (A row for every end and slot gives a
linear bound that is at most 0.05 % better on small instances.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Ints
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.algebra import Expr, Model, grouped
from hindsched.models.oasis import printed
from hindsched.models.oasis.printed import RUNNING
from hindsched.models.oasis.sets import Cell, OasisJobSets, OasisSets
from hindsched.solutions.oasis.solution import OasisSolution

NOTATION = {
    key: said for key, said in printed.NOTATION.items() if key not in ("x_i", "u_i(t)")
} | {
    r"e \in \mathcal{E}_i": ("end", "slot by which the job may end; of equal utility the last"),
    r"\mathcal{T}_i": ("slot", "slots in which the job has room"),
    "u_i(e)": ("u", "1 if the job ends by slot e"),
    r"\bar n_i(t)": ("most", "most workers at once: N_i, or what fits with its PSs"),
    r"\omega_i(t)": ("done", "workers up to and with slot t"),
    r"\epsilon_i(t)": ("ended", "share of the job that has ended by slot t"),
}  # fmt: skip
ADMITTED = r"\sum_{e \in \mathcal{E}_i} u_i(e)"
EACH_SLOT = r"\quad \forall i \in [I], t \in \mathcal{T}_i"
EQUATIONS = {name: printed.EQUATIONS[name] for name in ("eq_4", "eq_5", "eq_6", "eq_7")} | {
    "eq_1": r"\max \sum_{i \in [I]} \sum_{e \in \mathcal{E}_i} f_i(e - a_i) u_i(e)",
    "eq_2": rf"\omega_i(t) \ge W_i \epsilon_i(t), {EACH_SLOT}",
    "eq_2_all": rf"\omega_i(\max \mathcal{{T}}_i) \ge W_i {ADMITTED}, \quad \forall i \in [I]",
    "eq_2_sum": rf"\omega_i(t) = \omega_i(t - 1) + {RUNNING}, {EACH_SLOT}",
    "eq_3": rf"{RUNNING} \le \bar n_i(t) \Bigl( {ADMITTED} - \epsilon_i(t - 1) \Bigr),"
    rf" {EACH_SLOT}",
    "eq_8_sum": r"\epsilon_i(t) = \epsilon_i(t - 1) + \sum_{t - 1 < e \le t} u_i(e),"
    rf" {EACH_SLOT}",
    "eq_11": rf"{ADMITTED} \le 1, \quad \forall i \in [I]",
}  # fmt: skip
"""Slot t - 1 is the one before t in the job's slots, and (4), (5) are scaled by c."""


class Domains(NamedTuple):
    """Which values variables may take, (11)-(13): workers and PSs, and admissions and ends."""

    count: Any = pyo.NonNegativeIntegers
    choice: Any = pyo.Binary


RELAXED = Domains(pyo.NonNegativeReals, pyo.UnitInterval)


def add_job(
    b: Model, job: OasisJobSets, domains: Domains, *, must_run: bool = False,
    may_give_up: bool = False,
) -> None:  # fmt: skip
    """Fill a block with a job's ``y``, ``z``, ``u``, ``admitted``, ``utility`` and rules by number.

    In the subproblem it `must_run`. Where it `may_give_up` it may begin and be dropped, which is
    never worth it to who knows the future.
    """
    b.y = pyo.Var(
        list(job.worker_room), domain=domains.count, doc="(12) workers of a job",
        bounds=lambda _, h, t: (0, job.worker_room[h, t]),
    )  # fmt: skip
    b.z = pyo.Var(
        list(job.ps_room), domain=domains.count, doc="(13) parameter servers of a job",
        bounds=lambda _, k, t: (0, job.ps_room[k, t]),
    )  # fmt: skip
    add_totals(b, job.horizon)
    b.u = pyo.Var(list(job.ends), domain=domains.choice, doc="(11) the job ends by this slot")
    b.admitted = pyo.Expression(expr=total(b.u[e] for e in job.ends))
    b.utility = pyo.Expression(expr=total(utility * b.u[e] for e, utility in job.ends.items()))

    add_ps_rules(b, job, job.worker_slots, job.ps_slots)
    if may_give_up:
        _end_or_give_up(b, job)
    else:
        _end_by_sums(b, job)
    if must_run and not job.ends:
        b.eq_11 = pyo.Constraint(expr=pyo.Constraint.Infeasible, doc="(11) the job cannot run")
    elif must_run:
        b.eq_11 = pyo.Constraint(expr=b.admitted == 1, doc="(11) the job runs")
    elif job.ends:
        b.eq_11 = pyo.Constraint(expr=b.admitted <= 1, doc="(11) the job runs at most once")


def add_totals(b: Model, horizon: int) -> None:
    """``workers[t]`` and ``servers[t]``: workers and PSs on all servers, as expressions."""
    slots = range(1, horizon + 1)
    for name, counts in (("workers", b.y), ("servers", b.z)):
        in_slot = grouped((t, count) for (_, t), count in counts.items())
        sums = {t: total(in_slot[t]) for t in slots}
        b.add_component(name, pyo.Expression(slots, initialize=sums))


def add_ps_rules(
    b: Model, job: OasisJobSets, worker_slots: Iterable[int], ps_slots: Iterable[int]
) -> None:
    """(6) and (7), where there may be workers, and PSs."""

    @b.Constraint(worker_slots, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(b: Model, t: int) -> Expr:
        return job.ps_per_worker * b.workers[t] <= b.servers[t]

    @b.Constraint(ps_slots, doc="(7) no more PSs than workers")
    def eq_7(b: Model, t: int) -> Expr:
        return b.servers[t] <= b.workers[t]


def _end_or_give_up(b: Model, job: OasisJobSets) -> None:
    """Without (8): workers may be there without admission, and more than are needed."""

    @b.Constraint(list(job.ends), doc="(2) enough is done by the end, if the job ends")
    def eq_2(b: Model, e: int) -> Expr:
        done = total(b.workers[t] for t in job.worker_slots if t <= e)
        return done >= job.work * total(b.u[f] for f in job.ends if f <= e)

    @b.Constraint(job.worker_slots, doc="(3) no more workers at once than chunks")
    def eq_3(b: Model, t: int) -> Expr:
        return b.workers[t] <= job.most[t]


def _end_by_sums(b: Model, job: OasisJobSets) -> None:
    """The work done keeps ahead of the share of the job that has ended."""
    slots = [t for t in job.worker_slots if t <= max(job.ends, default=0)]
    before = dict(zip(slots[1:], slots, strict=False))
    b.done = pyo.Var(slots, bounds=(0, job.work), doc="(ours) workers up to and with this slot")
    b.ended = pyo.Var(slots, bounds=(0, 1), doc="(ours) share that has ended by this slot")
    done_before = {t: b.done[before[t]] if t in before else 0 for t in slots}
    ended_before = {t: b.ended[before[t]] if t in before else 0 for t in slots}
    running = {t: b.admitted - ended_before[t] for t in slots}
    b.running = pyo.Expression(slots, initialize=running)

    @b.Constraint(slots, doc="(2) the work done, slot by slot")
    def eq_2_sum(b: Model, t: int) -> Expr:
        return b.done[t] == done_before[t] + b.workers[t]

    @b.Constraint(slots, doc="(8) the share that has ended, slot by slot")
    def eq_8_sum(b: Model, t: int) -> Expr:
        since = before.get(t, 0)
        return b.ended[t] == ended_before[t] + total(b.u[e] for e in job.ends if since < e <= t)

    @b.Constraint(slots, doc="(2) what has ended has done its work")
    def eq_2(b: Model, t: int) -> Expr:
        return b.done[t] >= job.work * b.ended[t]

    @b.Constraint(slots, doc="(3) no more workers at once than chunks, none after the end")
    def eq_3(b: Model, t: int) -> Expr:
        return b.workers[t] <= job.most[t] * b.running[t]

    if slots:
        b.eq_2_all = pyo.Constraint(
            expr=b.done[slots[-1]] >= job.work * b.admitted, doc="(2) an admitted job does its work"
        )


Counts = tuple[Ints, Ints]  # workers and PSs of a job by slot and server, (T, H) and (T, K)


def counts_of(solution: OasisSolution, job: OasisJob) -> Counts:
    """What runs of a job in a solution, to be changed."""
    instance = solution.instance
    if job.name in solution.workers:
        return solution.workers[job.name].copy(), solution.ps[job.name].copy()
    servers = len(instance.worker_servers), len(instance.ps_servers)
    workers, ps = (np.zeros((instance.horizon, count), dtype=np.int64) for count in servers)
    return workers, ps


def planned(
    sets: OasisJobSets, solution: OasisSolution, job: OasisJob, given_up: bool = False
) -> tuple[Ints, Ints, int | None]:
    """Workers and PSs of a job from its first open slot on, and its last slot if it is completed.

    Exactly the work that is left is done; a job that is not completed has nothing, unless it is
    `given_up`: then it has what ran of it.
    """
    workers, ps = counts_of(solution, job)
    workers[: sets.first - 1], ps[: sets.first - 1] = 0, 0
    completed = solution.completion(job.name) is not None
    if completed or not given_up:
        _keep_first(workers, sets.work if completed else 0)
    drop_idle_ps(solution.instance, job, workers, ps)
    busy = np.flatnonzero(workers.any(axis=1))
    return workers, ps, int(busy[-1]) + 1 if completed and busy.size else None


def load_job(block: Model, workers: Ints, ps: Ints, last: int | None, plan: OasisSets) -> None:
    """Set a block's variables from what is `planned`."""
    for variable, counts, servers in ((block.y, workers, plan.workers), (block.z, ps, plan.ps)):
        for (server, t), var in variable.items():
            var.set_value(int(counts[t - 1, servers.members[server]].sum()))
    in_slot = workers.sum(axis=1)
    end = None if last is None else min((e for e in block.u if e >= last), default=None)
    for e, var in block.u.items():
        var.set_value(int(e == end))
    if block.component("done") is not None:  # not where jobs may be given up
        done = np.cumsum(in_slot)
        for t in block.done:
            block.done[t].set_value(int(done[t - 1]))
            block.ended[t].set_value(int(end is not None and end <= t))


def drop_idle_ps(instance: OasisInstance, job: OasisJob, workers: Ints, ps: Ints) -> None:
    """Drop PSs beyond what (6) needs, slot by slot."""
    for row, running in zip(ps, workers.sum(axis=1).tolist(), strict=True):
        _keep_first(row, instance.ps_needed(job, running))


def _keep_first(counts: Ints, number: int) -> None:
    """Keep so many units at most, those of the first slots and servers."""
    flat = counts.reshape(-1)
    flat[:] = np.clip(number - (np.cumsum(flat) - flat), 0, flat)


def counts_at(
    instance: OasisInstance, job: OasisJob, y: Mapping[Cell, Expr], z: Mapping[Cell, Expr]
) -> Counts:
    """A job's workers and PSs at the variables' values, no PS of them idle."""
    workers = _whole_counts(y, len(instance.worker_servers), instance.horizon)
    ps = _whole_counts(z, len(instance.ps_servers), instance.horizon)
    drop_idle_ps(instance, job, workers, ps)
    return workers, ps


def _whole_counts(variables: Mapping[Cell, Expr], servers: int, horizon: int) -> Ints:
    counts = np.zeros((horizon, servers), dtype=np.int64)
    for (server, t), variable in variables.items():
        counts[t - 1, server] = round(variable.value or 0.0)
    return counts
