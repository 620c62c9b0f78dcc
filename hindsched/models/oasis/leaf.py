"""Whether given jobs can all be finished by given ends, on the servers as they are.

=====================  ===================================================  ==================
symbol                 meaning                                              indices
=====================  ===================================================  ==================
``workers``            workers of the job                                   job, slot
``ps``                 parameter servers (PSs) of the job                   job, slot
``on_workers/ps.runs`` servers of a group that run a packing pattern        group, slot, no.
``on_.....alone``      units on one server, of a group of many patterns     job, server, slot
=====================  ===================================================  ==================

With the admissions and ends given, the offline program is a packing problem. Servers that hold few
units run patterns (`patterns.py`), whose linear relaxation almost decides; the others keep (4) and
(5) as printed. All variables are integer, so a point is a schedule on real servers, and no point
means that no schedule keeps these promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model, Variable
from hindsched.models.oasis.ends import ps_lines
from hindsched.models.oasis.patterns import FindPatterns, Patterns, add_patterns
from hindsched.models.oasis.sets import Cell, Plan, Servers
from hindsched.solutions.oasis.solution import OasisSolution


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
    b: Model, asked: Variable, servers: Servers, demand: Floats,
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
    asked: Variable, b: Model, servers: Servers, patterns: Mapping[Cell, Patterns], horizon: int
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
