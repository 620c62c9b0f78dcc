"""Who is admitted and when each job ends (`build_ends`), and whether that can be (`build_packing`).

The program of the ends is the aggregated cumulative one (`block.py`) with fractional counts in the
convex hull of what each small server can hold, and of which whole PSs serve whole workers as far as
a convex function can say it: a relaxation of (1)-(13), whose optimum is far below the linear
relaxation's and mostly attained. With the ends given, a packing problem is left; all variables of
that are integer, so that a point is a schedule on real servers, and no point means that no schedule
keeps these promises.

==================================  ======================================  ==================
symbol                              meaning                                 indices
==================================  ======================================  ==================
``job[i].workers``                  workers of the job                      slot
``job[i].servers``                  parameter servers (PSs) of the job      slot
``on_workers.runs, on_ps.runs``     servers of a group that run a pattern   group, slot, no.
``on_workers.alone, on_ps.alone``   units on one server, of a group of      job, server, slot
                                    too many patterns
==================================  ======================================  ==================

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
from hindsched.models.algebra import Expr, Model, grouped, use_by_cell
from hindsched.models.oasis.block import Domains, add_ps_rules
from hindsched.models.oasis.offline import OasisRelaxation, write_rules
from hindsched.models.oasis.sets import Cell, OasisSets, Servers
from hindsched.solutions.oasis.solution import OasisSolution

Ends = dict[int, int]  # latest end slot by the position of each admitted job
FindPatterns = Callable[[Floats, Floats, Sequence[int]], Sequence[Sequence[int]] | None]
"""``find(capacity, demand, most)``: the maximal patterns of a server (R,) that holds at most so
many units of each demand (J, R); None if they are too many."""
Patterns = dict[int, tuple[int, ...]]  # of a group in a slot: units of each job in each pattern
Able = Mapping[Cell, Sequence[int]]  # jobs that may run, by group and slot


def add_patterns(
    b: Model, servers: Servers, able: Able, most: Sequence[int], find: FindPatterns, domain: Expr
) -> dict[Cell, Patterns]:
    """Let the servers of groups run patterns in slots, no more of them than servers.

    `most` is how many units of a job anybody would want. The block gets ``runs`` over (group, slot,
    pattern) and the expressions ``held`` over (job, group, slot), units that the patterns hold.
    Returned are the patterns, but where they are too many.
    """
    patterns_of, numbers = dict[Cell, Patterns](), dict[Cell, range]()
    for (g, t), jobs in able.items():
        patterns = find(servers.capacity[g], servers.demand[jobs], [most[i] for i in jobs])
        if patterns is not None:
            patterns_of[g, t] = dict(zip(jobs, zip(*patterns, strict=True), strict=True))
            numbers[g, t] = range(len(patterns))
    b.runs = pyo.Var(
        [(*cell, n) for cell, cell_range in numbers.items() for n in cell_range], domain=domain,
        doc="(ours) servers that run a pattern",
    )  # fmt: skip

    @b.Constraint(list(patterns_of), doc="(ours) no more patterns than servers")
    def limit(b: Model, g: int, t: int) -> Expr:
        return total(b.runs[g, t, n] for n in numbers[g, t]) <= int(servers.size[g])

    @b.Expression([(i, *cell) for cell, cell_range in patterns_of.items() for i in cell_range])
    def held(b: Model, i: int, g: int, t: int) -> Expr:
        return total(
            units * b.runs[g, t, n] for n, units in enumerate(patterns_of[g, t][i]) if units
        )

    return patterns_of


def add_whole_ps(
    b: Model, instance: OasisInstance, i: int, most: int, running: Mapping[int, Expr]
) -> None:
    """PSs of a job of up to so many workers; `running` by slot, 0 once it has ended."""
    needed = instance.ps_needed_up_to(instance.jobs[i], most)
    lines = lines_below(needed) if needed.any() else []

    @b.Constraint(
        [(t, n) for t in running for n in range(len(lines))],
        doc="(6) whole PSs serve whole workers; after its end a job needs none",
    )
    def eq_6_whole(b: Model, t: int, n: int) -> Expr:
        slope, at_none = lines[n]
        return b.servers[t] >= slope * b.workers[t] + at_none * running[t]


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
    slopes = [((m1 - m0) / (n1 - n0), n0, m0) for (n0, m0), (n1, m1) in pairwise(corners)]
    return [(slope, m0 - slope * n0) for slope, n0, m0 in slopes]


@dataclass(kw_only=True, eq=False, repr=False)
class EndsProgram(OasisRelaxation):
    """The program of the ends, with an empty list ``conflicts`` for cuts."""

    def promised(self) -> Ends:
        """Admitted jobs and their ends at the program's present point."""
        ends = [(i, e) for i, job in self.plan.jobs.items() for e in job.ends]
        return {i: e for i, e in ends if round(self.model.job[i].u[e].value or 0.0) == 1}

    def forbid(self, ends: Ends) -> None:
        """Forbid promises together: sum over jobs i, ends e <= E_i of u_ie <= number - 1."""
        jobs = self.plan.jobs
        pairs = [(i, e) for i, latest in ends.items() for e in jobs[i].ends if e <= latest]
        self.model.conflicts.add(total(self.model.job[i].u[e] for i, e in pairs) <= len(ends) - 1)


def build_ends(instance: OasisInstance, find: FindPatterns) -> EndsProgram:
    """Build the program of the ends; `find` enumerates the patterns of a server."""
    plan = OasisSets.of(instance, grouped=True)
    m = write_rules(instance, plan, Domains(pyo.NonNegativeReals, pyo.Binary))
    m.on_workers, m.on_ps = pyo.Block(), pyo.Block()
    for i, job in plan.jobs.items():
        add_whole_ps(m.job[i], instance, i, max(job.most.values()), m.job[i].running)
    may_run = [i for i, job in plan.jobs.items() if job.ends]
    most = [job.chunks for job in instance.jobs]
    for b, name, servers, room in (
        (m.on_workers, "y", plan.workers, {i: plan.jobs[i].worker_room for i in may_run}),
        (m.on_ps, "z", plan.ps, {i: plan.jobs[i].ps_room for i in may_run}),
    ):
        able = grouped((cell, i) for i, cells in room.items() for cell in cells)
        shared = {cell: jobs for cell, jobs in able.items() if len(jobs) > 1}
        add_patterns(b, servers, shared, most, find, pyo.NonNegativeReals)
        b.packed = pyo.Constraint(
            list(b.held), doc="(ours) counts that the servers of a group can hold",
            rule=lambda b, i, g, t, name=name: m.job[i].component(name)[g, t] <= b.held[i, g, t],
        )  # fmt: skip
    m.conflicts = pyo.ConstraintList(doc="(ours) promises that no schedule keeps together")
    return EndsProgram(
        instance=instance, formulation=instance.check_formulation(None), form="cumulative",
        relaxed=False, model=m, plan=plan,
    )  # fmt: skip


class PackedUnits(NamedTuple):
    """Workers or PSs to pack: units that jobs run in a slot, and what holds them."""

    demand: Mapping[Cell, Expr]
    block: Model
    servers: Servers
    patterns: dict[Cell, Patterns]

    def deployed(self, horizon: int) -> dict[int, Ints]:
        """Units of each job by slot and server at the variables' values, no more than run."""
        shape, members = (horizon, int(self.servers.size.sum())), self.servers.members
        held = {i: np.zeros(shape, dtype=np.int64) for i, _ in self.demand}
        for (i, server, t), units in self.block.alone.items():
            held[i][t - 1, server] = round(units.value)
        places = {(g, t): iter(members[g]) for g, t in self.patterns}
        for (g, t, n), count in self.block.runs.items():
            for _ in range(round(count.value)):
                place = next(places[g, t])
                for i, units in self.patterns[g, t].items():
                    held[i][t - 1, place] = units[n]
        for (i, t), running in self.demand.items():
            counts = held[i][t - 1]
            before = np.cumsum(counts) - counts
            counts[:] = np.clip(round(running.value) - before, 0, counts)
        return held


@dataclass(frozen=True)
class PackingProgram:
    """The feasibility program of given ends: any point of it will do."""

    instance: OasisInstance
    model: Model
    sides: list[PackedUnits]  # of workers and of PSs

    def extract(self) -> OasisSolution:
        """The schedule at the variables' values: patterns go to the servers of their group."""
        jobs, horizon = self.instance.jobs, self.instance.horizon
        workers, ps = (
            {jobs[i].name: counts for i, counts in side.deployed(horizon).items()}
            for side in self.sides
        )
        return OasisSolution(self.instance, workers, ps)


def build_packing(
    instance: OasisInstance, ends: Mapping[int, int], find: FindPatterns
) -> PackingProgram:
    """Build the program of the promises `ends`: these jobs finish by then, no other job runs."""
    plan = OasisSets.of(instance, grouped=True)

    def finishes(b: Model, i: int) -> None:
        job, slots = plan.jobs[i], range(plan.jobs[i].first, ends[i] + 1)
        b.workers = pyo.Var(
            slots, domain=pyo.NonNegativeIntegers, bounds=lambda _, t: (0, job.most[t]),
            doc="(12) workers of a job",
        )  # fmt: skip
        b.servers = pyo.Var(slots, domain=pyo.NonNegativeIntegers, doc="(13) PSs of a job")

        @b.Constraint(doc="(2) exactly the work is done by the end")
        def eq_2(b: Model) -> Expr:
            return total(b.workers.values()) == job.work

        add_ps_rules(b, job, slots if job.ps_per_worker else (), slots)
        add_whole_ps(b, instance, i, max(job.most.values()), dict.fromkeys(slots, 1.0))

    m = pyo.ConcreteModel(name=f"given ends of {instance.name}")
    m.job = pyo.Block(sorted(ends), rule=finishes)
    m.eq_1 = pyo.Objective(expr=0.0)
    m.on_workers, m.on_ps, sides = pyo.Block(), pyo.Block(), list[PackedUnits]()
    most = [job.chunks for job in instance.jobs]
    for b, name, servers, rooms in (
        (m.on_workers, "workers", plan.workers, {i: plan.jobs[i].worker_room for i in m.job}),
        (m.on_ps, "servers", plan.ps, {i: plan.jobs[i].ps_room for i in m.job}),
    ):
        demand = {(i, t): n for i, block in m.job.items() for t, n in block.component(name).items()}
        able = grouped(
            (cell, i) for i, cells in rooms.items() for cell in cells if cell[1] <= ends[i]
        )
        patterns = add_patterns(b, servers, able, most, find, pyo.NonNegativeIntegers)
        room = {
            (i, server, t): rooms[i][g, t] // int(servers.size[g])
            for (g, t), jobs in able.items() if (g, t) not in patterns
            for i in jobs for server in servers.members[g]
        }  # fmt: skip
        _place_units(b, demand, servers, room)
        sides.append(PackedUnits(demand, b, servers, patterns))
    return PackingProgram(instance, m, sides)


def _place_units(
    b: Model,
    demand: Mapping[Cell, Expr],
    servers: Servers,
    room: Mapping[tuple[int, int, int], int],
) -> None:
    """Put what is asked for on servers: in patterns, or one by one where there is `room`."""
    b.alone = pyo.Var(
        list(room), domain=pyo.NonNegativeIntegers, bounds=lambda _, *key: (0, room[key]),
        doc="(ours) units of a job on one server",
    )  # fmt: skip
    group_of = {server: g for g, members in enumerate(servers.members) for server in members}
    shares = servers.demand[:, None, :] / servers.scale
    used = use_by_cell(
        (units, server, (t,), shares[i, group_of[server]])
        for (i, server, t), units in b.alone.items()
    )  # fmt: skip
    held: dict[Cell, list[Expr]] = {cell: [] for cell in demand}
    for units in (b.held, b.alone):
        for (i, _, t), count in units.items():
            held[i, t].append(count)

    @b.Constraint(list(used), doc="(4), (5) units within what a server has")
    def eq_4_5(_: Model, server: int, r: int, t: int) -> Expr:
        return total(used[server, r, t]) <= 1

    @b.Constraint(list(held), doc="(ours) units that the servers hold")
    def placed(_: Model, i: int, t: int) -> Expr:
        return demand[i, t] <= total(held[i, t])
