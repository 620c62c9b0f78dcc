"""The program that decides who is admitted and when each job ends, and nothing else.

The aggregated cumulative program (`block.py`) with fractional counts, which lie in the convex hull
of what each small server can hold (`patterns.py`), and of which whole PSs serve whole workers as
far as a convex function can say it: a relaxation of (1)-(13). Its optimum is an upper bound, far
below the linear relaxation's, and mostly attained: `leaf.py` decides whether.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.oasis.block import Domains
from hindsched.models.oasis.offline import OasisRelaxation, write_rules
from hindsched.models.oasis.patterns import FindPatterns, add_patterns
from hindsched.models.oasis.sets import Cell, Plan

Ends = dict[int, int]
"""Latest end slot by the position of each admitted job."""


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
        relaxed=False, model=m, plan=plan, again=partial(build_ends, instance, find),
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
