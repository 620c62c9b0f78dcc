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
``on_y.runs``          servers of a group that run a pattern of workers     group, slot, no.
``on_z.runs``          and of PSs                                           group, slot, no.
=====================  ===================================================  ==================

A pattern says how many units of each job a server holds; it is maximal if no further unit fits. In
a slot the servers of a group of n_g identical ones run at most n_g patterns, so that

    y_ig(t) <= sum over patterns l of l_i r_gl(t),    sum_l r_gl(t) <= n_g

holds with integer r for exactly those counts that the servers can hold, and with fractional r for
their convex hull: much tighter than (4) added up, where a 3-GPU and a 2-GPU worker share a 4-GPU
server once and a quarter times. A server that is large beside the workers has too many patterns;
there (4) and (5), kept as printed, are nearly as tight, and exact for integers where a leaf has
each server of the group by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.base import Commitments
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

    jobs: list[int]
    patterns: Sequence[Sequence[int]]  # none if they are too many


Found = dict[Cell, Patterns]


def _sides(instance: OasisInstance, plan: Plan) -> Iterator[tuple[str, Servers, Floats]]:
    """Of workers and of PSs the variable, the servers and the demand of one."""
    yield "y", plan.workers, instance.worker_demand
    yield "z", plan.ps, instance.ps_demand


def _find_all(
    instance: OasisInstance, plan: Plan, find: FindPatterns, least: int
) -> dict[str, Found]:
    """Patterns by variable, group and slot, where at least so many jobs may run."""
    found = dict[str, Found]()
    for name, servers, demand in _sides(instance, plan):
        able: dict[Cell, list[int]] = {}
        for i, job in plan.jobs.items():
            for cell in (job.worker_room if name == "y" else job.ps_room) if job.ends else ():
                able.setdefault(cell, []).append(i)
        found[name] = {
            (g, t): Patterns(
                own, find(servers.capacity[g], demand[own], [plan.jobs[i].chunks for i in own])
                or (),
            )
            for (g, t), own in able.items() if len(own) >= least
        }  # fmt: skip
    return found


def _write_program(
    instance: OasisInstance, plan: Plan, found: dict[str, Found], domains: Domains, must_run: bool
) -> Model:
    """The cumulative form, in the hull of the patterns and of whole PSs for whole workers."""
    m = write_rules(instance, plan, "cumulative", domains, must_run=must_run)
    lines = {i: ps_lines(instance, i, max(job.most.values(), default=0))
             for i, job in plan.jobs.items()}  # fmt: skip

    @m.Constraint(
        [(i, t, n) for i, own in lines.items() for t in m.job[i].running for n in range(len(own))],
        doc="(6) whole PSs serve whole workers; after its end a job needs none",
    )
    def eq_6_whole(m: Model, i: int, t: int, n: int) -> Expr:
        b, (slope, at_none) = m.job[i], lines[i][n]
        return b.servers[t] >= slope * b.workers[t] + at_none * b.running[t]

    for name, servers, _ in _sides(instance, plan):
        b = pyo.Block()
        m.add_component(f"on_{name}", b)
        few = {cell: own for cell, own in found[name].items() if own.patterns}
        b.runs = pyo.Var(
            [(*cell, n) for cell, own in few.items() for n in range(len(own.patterns))],
            domain=domains.count, doc="(ours) servers that run a pattern",
        )  # fmt: skip

        @b.Constraint(list(few), doc="(ours) no more patterns than servers")
        def limit(b: Model, g: int, t: int, few: Found = few, size: Ints = servers.size) -> Expr:
            runs = (b.runs[g, t, n] for n in range(len(few[g, t].patterns)))
            return total(runs) <= int(size[g])

        @b.Constraint(
            [(i, *cell) for cell, own in few.items() for i in own.jobs],
            doc="(ours) counts that the servers of a group can hold",
        )
        def packed(b: Model, i: int, g: int, t: int, few: Found = few, name: str = name) -> Expr:
            units = np.array(few[g, t].patterns)[:, few[g, t].jobs.index(i)].tolist()
            held = total(own * b.runs[g, t, n] for n, own in enumerate(units) if own)
            return m.job[i].component(name)[g, t] <= held

    return m


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
    found = _find_all(instance, plan, find, least=2)
    domains = Domains(pyo.NonNegativeReals, pyo.Binary)
    m = _write_program(instance, plan, found, domains, must_run=False)
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
    found: dict[str, Found]

    def extract(self) -> OasisSolution:
        """Read the schedule at the variables' values: patterns go to the servers of their group."""
        deployed, jobs = [], self.instance.jobs
        for name, servers, _ in _sides(self.instance, self.plan):
            shape = self.instance.horizon, int(servers.size.sum())
            counts = {i: np.zeros(shape, dtype=np.int64) for i in self.plan.jobs}
            runs = self.model.component(f"on_{name}").runs
            for (g, t), own in self.found[name].items():
                wanted = [round(self.model.job[i].component(name)[g, t].value) for i in own.jobs]
                running = [  # what each server may hold; without patterns it stands by itself
                    pattern for n, pattern in enumerate(own.patterns)
                    for _ in range(round(runs[g, t, n].value))
                ] if own.patterns else [wanted]  # fmt: skip
                for server, pattern in zip(servers.members[g], running, strict=False):
                    for k, i in enumerate(own.jobs):
                        units = counts[i][t - 1, server] = min(wanted[k], pattern[k])
                        wanted[k] -= units
            deployed.append({jobs[i].name: own for i, own in counts.items()})
        workers, ps = deployed
        return OasisSolution(self.instance, workers, ps)


def build_leaf(instance: OasisInstance, ends: Mapping[int, int], find: FindPatterns) -> Leaf:
    """Build the program of the promises `ends`: these jobs finish by then, no other job runs."""
    others = frozenset(job.name for i, job in enumerate(instance.jobs) if i not in ends)
    given = Commitments(rejected=others)

    def planned(*apart: set[int]) -> tuple[Plan, dict[str, Found]]:
        plan = Plan.of(instance, given, grouped=True, apart=apart)
        plan = replace(plan, jobs={i: job.done_by(ends[i]) for i, job in plan.jobs.items()})
        return plan, _find_all(instance, plan, find, least=1)

    plan, found = planned(set(), set())
    plan, found = planned(*(
        {server for (g, _), own in found[name].items() if not own.patterns
         for server in servers.members[g]}
        for name, servers, _ in _sides(instance, plan)
    ))  # fmt: skip
    m = _write_program(instance, plan, found, Domains(), must_run=True)
    return Leaf(instance, m, plan, found)
