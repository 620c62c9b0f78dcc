"""Who is admitted and when each job ends (`build_ends`), and whether that can be (`build_leaf`).

The program of the ends is the aggregated cumulative one (`block.py`) with fractional counts in the
convex hull of what each small server can hold, and of which whole PSs serve whole workers as far as
a convex function can say it: a relaxation of (1)-(13), whose optimum is far below the linear
relaxation's and mostly attained. With the ends given, a packing problem is left; all variables of
that are integer, so that a point is a schedule on real servers, and no point means that no schedule
keeps these promises.

=====================  ===================================================  ==================
symbol                 meaning                                              indices
=====================  ===================================================  ==================
``workers``            workers of the job                                   job, slot
``ps``                 parameter servers (PSs) of the job                   job, slot
``on_workers/ps.runs`` servers of a group that run a packing pattern        group, slot, no.
``on_.....alone``      units on one server, of a group of many patterns     job, server, slot
=====================  ===================================================  ==================

A pattern says how many units of each job a server holds; it is maximal if no further unit fits. In
a slot the servers of a group of n_g identical ones run at most n_g patterns, so that

    y_ig(t) <= sum over patterns l of l_i r_gl(t),    sum_l r_gl(t) <= n_g

holds with integer r for exactly those counts that the servers can hold, and with fractional r for
their convex hull: much tighter than (4) added up, where a 3-GPU and a 2-GPU worker share a 4-GPU
server once and a quarter times. A server that is large beside the workers has too many patterns;
there (4) and (5), kept as printed, are nearly as tight anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.oasis.block import Domains
from hindsched.models.oasis.offline import OasisRelaxation, write_rules
from hindsched.models.oasis.sets import Cell, Plan, Servers
from hindsched.solutions.oasis.solution import OasisSolution

Ends = dict[int, int]
"""Latest end slot by the position of each admitted job."""
FindPatterns = Callable[[Floats, Floats, Sequence[int]], Sequence[Sequence[int]] | None]
"""``find(capacity, demand, most)``: the maximal patterns of a server (R,) that holds at most so
many units of each demand (J, R); None if they are too many."""


class Patterns(NamedTuple):
    """Jobs that may run on a group in a slot, and the patterns of one server over them."""

    jobs: tuple[int, ...]
    patterns: Sequence[Sequence[int]]


def add_patterns(
    b: Model, servers: Servers, able: Mapping[Cell, Sequence[int]], demand: Floats,
    most: Sequence[int], find: FindPatterns, domain: Expr,
) -> dict[Cell, Patterns]:  # fmt: skip
    """Let the servers of groups run patterns in slots, no more of them than servers.

    `able` are the jobs that may run by group and slot, `demand` (I, R) is of a unit of each job,
    `most` how many of them anybody would want. The block gets ``runs`` over (group, slot, pattern)
    and the expressions ``held`` over (job, group, slot), units that the patterns hold. Returned are
    the patterns by group and slot, but where they are too many.
    """
    found = dict[Cell, Patterns]()
    for (group, t), jobs in able.items():
        own = list(jobs)
        patterns = find(servers.capacity[group], demand[own], [most[i] for i in own])
        if patterns is not None:
            found[group, t] = Patterns(tuple(own), patterns)
    numbers = {cell: range(len(own.patterns)) for cell, own in found.items()}
    b.runs = pyo.Var(
        [(*cell, n) for cell, own in numbers.items() for n in own], domain=domain,
        doc="(ours) servers that run a pattern",
    )  # fmt: skip

    @b.Constraint(list(found), doc="(ours) no more patterns than servers")
    def limit(b: Model, g: int, t: int) -> Expr:
        return total(b.runs[g, t, n] for n in numbers[g, t]) <= int(servers.size[g])

    @b.Expression([(i, *cell) for cell, own in found.items() for i in own.jobs])
    def held(b: Model, i: int, g: int, t: int) -> Expr:
        units = np.array(found[g, t].patterns)[:, found[g, t].jobs.index(i)].tolist()
        return total(units[n] * b.runs[g, t, n] for n in numbers[g, t] if units[n])

    return found


@dataclass(kw_only=True, eq=False, repr=False)
class EndsProgram(OasisRelaxation):
    """The program of the ends, with an empty list ``conflicts`` for cuts."""

    def promised(self) -> Ends:
        """Admitted jobs and their ends at the program's present point."""
        ends = [(i, e) for i, job in self.plan.jobs.items() for e in job.ends]
        return {i: e for i, e in ends if round(self.model.job[i].u[e].value or 0.0) == 1}

    def last(self) -> Ends:
        """The last end of each job."""
        return {i: max(job.ends) for i, job in self.plan.jobs.items() if job.ends}

    def forbid(self, conflict: Ends) -> None:
        """Forbid promises together: sum over jobs i, ends e <= E_i of u_ie <= number - 1."""
        jobs = self.plan.jobs
        pairs = [(i, e) for i, latest in conflict.items() for e in jobs[i].ends if e <= latest]
        together = total(self.model.job[i].u[e] for i, e in pairs)
        self.model.conflicts.add(together <= len(conflict) - 1)


def build_ends(instance: OasisInstance, find: FindPatterns) -> EndsProgram:
    """Build the program of the ends; `find` enumerates the patterns of a server."""
    plan = Plan.of(instance, grouped=True)
    m = write_rules(instance, plan, "cumulative", Domains(pyo.NonNegativeReals, pyo.Binary))
    most = [job.chunks for job in instance.jobs]
    lines = {i: ps_lines(instance, i, max(job.most.values())) for i, job in plan.jobs.items()}
    served = [(i, t) for i in plan.jobs for t in m.job[i].running if lines[i]]

    @m.Constraint(
        [(i, t, n) for i, t in served for n in range(len(lines[i]))],
        doc="(6) whole PSs serve whole workers; after its end a job needs none",
    )
    def eq_6_whole(m: Model, i: int, t: int, n: int) -> Expr:
        b, (slope, at_none) = m.job[i], lines[i][n]
        return b.servers[t] >= slope * b.workers[t] + at_none * b.running[t]

    m.on_workers, m.on_ps = pyo.Block(), pyo.Block()
    for b, name, servers, demand in (
        (m.on_workers, "y", plan.workers, instance.worker_demand),
        (m.on_ps, "z", plan.ps, instance.ps_demand),
    ):
        able: dict[Cell, list[int]] = {}
        for i, job in plan.jobs.items():
            for cell in (job.worker_room if name == "y" else job.ps_room) if job.ends else ():
                able.setdefault(cell, []).append(i)
        shared = {cell: jobs for cell, jobs in able.items() if len(jobs) > 1}
        add_patterns(b, servers, shared, demand, most, find, pyo.NonNegativeReals)
        b.packed = pyo.Constraint(
            list(b.held), doc="(ours) counts that the servers of a group can hold",
            rule=lambda b, i, g, t, name=name: m.job[i].component(name)[g, t] <= b.held[i, g, t],
        )  # fmt: skip
    m.conflicts = pyo.ConstraintList(doc="(ours) promises that no schedule keeps together")
    return EndsProgram(
        instance=instance, formulation=instance.check_formulation(None), form="cumulative",
        relaxed=False, model=m, plan=plan,
    )  # fmt: skip


def ps_lines(instance: OasisInstance, i: int, most: int) -> list[tuple[float, float]]:
    """`lines_below` the PSs that up to so many workers of a job need; none if they need none."""
    needed = instance.ps_needed_up_to(instance.jobs[i], most)
    return lines_below(needed) if needed.any() else []


def lines_below(needed: Ints) -> list[tuple[float, float]]:
    """The largest convex function below ``needed[n]``: slopes and values at 0 of its lines.

    A job that runs n workers in a slot needs a whole number of PSs. That function is steeper than
    b / B: with b / B = 0.4 two workers need a PS, so that no worker is served by less than a half.
    """
    corners: list[tuple[int, int]] = []
    for here in enumerate(needed.tolist()):
        while len(corners) > 1:
            (n0, m0), (n1, m1) = corners[-2:]
            if (m1 - m0) * (here[0] - n0) < (here[1] - m0) * (n1 - n0):
                break
            corners.pop()
        corners.append(here)
    lines = []
    for (n0, m0), (n1, m1) in pairwise(corners):
        slope = (m1 - m0) / (n1 - n0)
        lines.append((slope, m0 - slope * n0))
    return lines


@dataclass(frozen=True)
class Leaf:
    """The feasibility program of given ends: any point of it will do."""

    instance: OasisInstance
    model: Model
    plan: Plan
    on_workers: dict[Cell, Patterns]  # patterns by group and slot
    on_ps: dict[Cell, Patterns]

    def extract(self) -> OasisSolution:
        """Read the schedule at the variables' values: patterns go to the servers of their group."""
        m, horizon = self.model, self.instance.horizon
        workers = _deployed(m.workers, m.on_workers, self.plan.workers, self.on_workers, horizon)
        ps = _deployed(m.ps, m.on_ps, self.plan.ps, self.on_ps, horizon)
        names = [job.name for job in self.instance.jobs]
        return OasisSolution(
            self.instance, {names[i]: counts for i, counts in workers.items()},
            {names[i]: counts for i, counts in ps.items()},
        )  # fmt: skip


def build_leaf(instance: OasisInstance, ends: Mapping[int, int], find: FindPatterns) -> Leaf:
    """Build the program of the promises `ends`: these jobs finish by then, no other job runs."""
    m = pyo.ConcreteModel(name=f"given ends of {instance.name}")
    plan = Plan.of(instance, grouped=True)
    jobs = {i: plan.jobs[i] for i in sorted(ends)}
    cells = [(i, t) for i, job in jobs.items() for t in range(job.first, ends[i] + 1)]
    lines = {i: ps_lines(instance, i, max(job.most.values())) for i, job in jobs.items()}
    m.workers = pyo.Var(
        cells, domain=pyo.NonNegativeIntegers, bounds=lambda _, i, t: (0, jobs[i].most[t]),
        doc="(12) workers of a job",
    )  # fmt: skip
    m.ps = pyo.Var(cells, domain=pyo.NonNegativeIntegers, doc="(13) PSs of a job")
    m.eq_1 = pyo.Objective(expr=0.0 * m.workers[cells[0]] if cells else 0.0)

    @m.Constraint(list(jobs), doc="(2) exactly the work is done by the end")
    def eq_2(m: Model, i: int) -> Expr:
        return total(m.workers[i, t] for t in range(jobs[i].first, ends[i] + 1)) == jobs[i].work

    served = [(i, t) for i, t in cells if lines[i]]

    @m.Constraint(served, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(m: Model, i: int, t: int) -> Expr:
        return jobs[i].ps_per_worker * m.workers[i, t] <= m.ps[i, t]

    @m.Constraint(
        [(i, t, n) for i, t in served for n in range(len(lines[i]))],
        doc="(6) whole PSs serve whole workers",
    )
    def eq_6_whole(m: Model, i: int, t: int, n: int) -> Expr:
        slope, at_none = lines[i][n]
        return slope * m.workers[i, t] + at_none <= m.ps[i, t]

    @m.Constraint(cells, doc="(7) no more PSs than workers")
    def eq_7(m: Model, i: int, t: int) -> Expr:
        return m.ps[i, t] <= m.workers[i, t]

    m.on_workers, m.on_ps = pyo.Block(), pyo.Block()
    most = [job.chunks for job in instance.jobs]
    found = [
        _place(b, asked, servers, demand, rooms, most, find)
        for b, asked, servers, demand, rooms in (
            (m.on_workers, m.workers, plan.workers, instance.worker_demand,
             {i: job.worker_room for i, job in jobs.items()}),
            (m.on_ps, m.ps, plan.ps, instance.ps_demand,
             {i: job.ps_room for i, job in jobs.items()}),
        )
    ]  # fmt: skip
    return Leaf(instance, m, plan, *found)


def _place(
    b: Model, asked: Expr, servers: Servers, demand: Floats,
    rooms: Mapping[int, Mapping[Cell, int]], most: list[int], find: FindPatterns,
) -> dict[Cell, Patterns]:  # fmt: skip
    """Put what is asked for on servers: by patterns where there are few enough, else one by one."""
    able: dict[Cell, list[int]] = {}
    for i, t in asked:
        for group in range(len(servers.members)):
            if (group, t) in rooms[i]:
                able.setdefault((group, t), []).append(i)
    found = add_patterns(b, servers, able, demand, most, find, pyo.NonNegativeIntegers)
    room = {
        (i, server, t): rooms[i][group, t] // int(servers.size[group])
        for (group, t), jobs in able.items() if (group, t) not in found
        for i in jobs for server in servers.members[group]
    }  # fmt: skip
    b.alone = pyo.Var(
        list(room), domain=pyo.NonNegativeIntegers, bounds=lambda _, *key: (0, room[key]),
        doc="(ours) units of a job on one server",
    )  # fmt: skip
    held: dict[Cell, list[Expr]] = {cell: [] for cell in asked}
    for units in (b.held, b.alone):
        for (i, _, t), count in units.items():
            held[i, t].append(count)
    group_of = {server: group for group, own in enumerate(servers.members) for server in own}
    used: dict[tuple[int, int, int], list[Expr]] = {}
    for (i, server, t), units in b.alone.items():
        for r in np.flatnonzero(demand[i]).tolist():
            share = float(demand[i, r] / servers.capacity[group_of[server], r])
            used.setdefault((server, r, t), []).append(share * units)

    @b.Constraint(list(used), doc="(4), (5) units within what a server has")
    def eq_4_5(b: Model, server: int, r: int, t: int) -> Expr:
        return total(used[server, r, t]) <= 1

    @b.Constraint(list(held), doc="(ours) units that the servers hold")
    def placed(b: Model, i: int, t: int) -> Expr:
        return asked[i, t] <= total(held[i, t])

    return found


def _deployed(
    asked: Expr, b: Model, servers: Servers, patterns: Mapping[Cell, Patterns], horizon: int
) -> dict[int, Ints]:
    """Units by slot and server of each job: what is asked for, within what is held."""
    held: dict[int, Ints] = {}
    for i, _ in asked:
        held.setdefault(i, np.zeros((horizon, int(servers.size.sum())), dtype=np.int64))
    for (i, server, t), units in b.alone.items():
        held[i][t - 1, server] = round(units.value)
    for (group, t), own in patterns.items():
        server = iter(servers.members[group])
        for number, pattern in enumerate(own.patterns):
            for _ in range(round(b.runs[group, t, number].value)):
                place = next(server)
                for i, count in zip(own.jobs, pattern, strict=True):
                    held[i][t - 1, place] = count
    for (i, t), wanted in asked.items():
        counts = held[i][t - 1]
        before = np.cumsum(counts) - counts
        counts[:] = np.clip(round(wanted.value) - before, 0, counts)
    return held
